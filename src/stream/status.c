/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/status.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/text/json.h"
#include "base/text/str.h"

char *status_text(const char *words, const int *exit_code)
{
	char *text = NULL;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	struct json j = { .to = to, .compact = true };
	char number[16];

	if (!to)
		return NULL;
	json_put_object(&j, NULL);
	json_put_string(&j, "status", words ? "Failure" : "Success");
	if (words)
		json_put_string(&j, "message", words);
	if (words)
		json_put_string(&j, "reason", exit_code ? "NonZeroExitCode" : "InternalError");
	if (exit_code) {
		(void)str_printf(number, sizeof(number), "%d", *exit_code);
		json_put_object(&j, "details");
		json_put_array(&j, "causes");
		json_put_object(&j, NULL);
		json_put_string(&j, "reason", "ExitCode");
		json_put_string(&j, "message", number);
		json_put_end(&j);
		json_put_end(&j);
		json_put_end(&j);
	}
	json_put_end(&j);
	if (fclose(to) == 0)
		return text;
	free(text);
	return NULL;
}
