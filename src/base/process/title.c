/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/title.h"

#include <string.h>
#include <sys/prctl.h>

#include "base/macros.h"

static char *title_at;
static size_t title_size;

void title_init(int argc, char **argv)
{
	const char *end;

	if (argc < 1)
		return;
	/* The kernel lays the arguments out in one run of bytes. */
	end = argv[0];
	for (int i = 0; i < argc; i++)
		if (argv[i] == end)
			end = argv[i] + strlen(argv[i]) + 1;
	title_at = argv[0];
	title_size = (size_t)(end - argv[0]);
}

void title_set(const char *title)
{
	size_t n = strlen(title);

	(void)prctl(PR_SET_NAME, "nacre");
	if (title_size < 2)
		return;
	n = MIN(n, title_size - 1);
	memset(title_at, 0, title_size);
	memcpy(title_at, title, n);
}
