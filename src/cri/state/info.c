/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/state/info.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>

int cri_info_open(struct cri_info *i)
{
	*i = (struct cri_info){ .text = NULL };
	i->json = (struct json){ .to = open_memstream(&i->text, &i->len), .compact = true };
	if (!i->json.to)
		return -ENOMEM;
	json_put_object(&i->json, NULL);
	return 0;
}

char *cri_info_close(struct cri_info *i, struct arena *a)
{
	char *text = NULL;
	bool failed;

	json_put_end(&i->json);
	failed = ferror(i->json.to) != 0;
	failed = fclose(i->json.to) != 0 || failed;
	if (!failed)
		text = arena_strndup(a, i->text, i->len);
	free(i->text);
	return text;
}
