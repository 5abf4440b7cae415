/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/message/status_detail.h"

#include <errno.h>

#include "unit.h"

static void the_field_goes_there_and_back(void)
{
	static const char *const fields[] = { "", "a", "ab", "abc", "containers[12].image" };
	char text[STATUS_DETAIL_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(fields); i++) {
		struct error err = ERROR_INIT, back = ERROR_INIT;

		(void)error_field(&err, ERROR_INVALID, fields[i], "required");
		CHECK_INT(status_detail_encode(text, sizeof(text), RPC_INVALID_ARGUMENT, &err), 0);
		CHECK(!strchr(text, '='));
		status_detail_decode(&back, text);
		CHECK_STR(back.field, fields[i]);
	}
}

/* Code 3, message "x: no", a BadRequest and an ErrorInfo, as other people's libraries encode it. */
static void the_bytes_are_those_of_google_rpc(void)
{
	char text[STATUS_DETAIL_SIZE];
	struct error err = ERROR_INIT;

	(void)error_field(&err, ERROR_INVALID, "x", "no");
	CHECK_INT(status_detail_encode(text, sizeof(text), RPC_INVALID_ARGUMENT, &err), 0);
	CHECK_STR(text,
		  "CAMSBXg6IG5vGjYKKXR5cGUuZ29vZ2xlYXBpcy5jb20vZ29vZ2xlLnJwYy5CYWRSZXF1ZXN0EgkK"
		  "BwoBeBICbm8aSAoodHlwZS5nb29nbGVhcGlzLmNvbS9nb29nbGUucnBjLkVycm9ySW5mbxIcCgdJ"
		  "TlZBTElEEgVuYWNyZRoKCgVmaWVsZBIBeA");
}

static void the_longest_fits(void)
{
	char long_field[2 * ERROR_FIELD_MAX], long_text[2 * ERROR_TEXT_MAX];
	char text[STATUS_DETAIL_SIZE];
	struct error err = ERROR_INIT, back = ERROR_INIT;

	memset(long_field, 'f', sizeof(long_field) - 1);
	long_field[sizeof(long_field) - 1] = '\0';
	memset(long_text, 't', sizeof(long_text) - 1);
	long_text[sizeof(long_text) - 1] = '\0';
	(void)error_field(&err, ERROR_INVALID, long_field, "%s", long_text);
	CHECK_INT(strlen(err.field), ERROR_FIELD_MAX - 1);
	CHECK_INT(status_detail_encode(text, sizeof(text), RPC_INVALID_ARGUMENT, &err), 0);
	status_detail_decode(&back, text);
	CHECK_STR(back.field, err.field);
	CHECK_INT(status_detail_encode(text, 64, RPC_INVALID_ARGUMENT, &err), -ENOBUFS);
}

static void nonsense_changes_nothing(void)
{
	static const char *const bad[] = { "", "=", "!", "A", "AAAA", "CAMSBXg6IG5v", "////////" };
	char text[STATUS_DETAIL_SIZE];
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		status_detail_decode(&err, bad[i]);
		CHECK_STR(err.field, "");
	}
	(void)error_field(&err, ERROR_INVALID, "target", "required");
	CHECK_INT(status_detail_encode(text, sizeof(text), RPC_INVALID_ARGUMENT, &err), 0);
	for (size_t n = strlen(text); n > 0; n--) {
		text[n - 1] = '\0';
		status_detail_decode(&err, text);
		CHECK_STR(err.field, "target");
	}
}

UNIT_MAIN({ "the field goes there and back", the_field_goes_there_and_back },
	  { "the bytes are those of google.rpc", the_bytes_are_those_of_google_rpc },
	  { "the longest fits", the_longest_fits },
	  { "nonsense changes nothing", nonsense_changes_nothing })
