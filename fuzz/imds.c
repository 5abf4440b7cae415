/* SPDX-License-Identifier: Apache-2.0 */

/* Requests of a pod to its metadata service, and the service's pages. */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "wire/document/imds.h"
#include "wire/format/httphead.h"

static const char secret[] = "the user data of a pod";

static int has_secret(const struct buf *answer)
{
	return memmem(buf_data(answer), answer->len, secret, strlen(secret)) != NULL;
}

/* Without a token that this page has given nothing of it is told. */
static void try_request(const uint8_t *data, size_t size)
{
	static const uint8_t key[IMDS_KEY_SIZE] = "a key that no input knows";
	_cleanup_(buf_done) struct buf page = BUF_INIT;
	_cleanup_(buf_done) struct buf answer = BUF_INIT;
	struct imds d = { .key = key, .now = 1000 };
	int r;

	if (imds_put(&page, IMDS_USER_DATA, secret, strlen(secret)) < 0 ||
	    imds_put(&page, "meta-data/tags/instance/a/b", secret, strlen(secret)) < 0)
		return;
	d.page = buf_data(&page);
	d.len = page.len;
	r = imds_answer(&answer, &d, data, size);
	fuzz_need(r == IMDS_MORE || r == IMDS_ANSWERED || r == -ENOMEM);
	fuzz_need(r != IMDS_MORE || (answer.len == 0 && size < HTTPHEAD_MAX));
	fuzz_need(r != IMDS_ANSWERED || !has_secret(&answer));
}

/* With one anything may be asked for. */
static void try_path(const uint8_t *data, size_t size)
{
	static const uint8_t key[IMDS_KEY_SIZE];
	static const char ask[] = "PUT /latest/api/token HTTP/1.1\r\nHost: 169.254.169.254\r\n" //
		IMDS_TTL_FIELD ": 5\r\n\r\n";
	_cleanup_(buf_done) struct buf token = BUF_INIT;
	_cleanup_(buf_done) struct buf request = BUF_INIT;
	_cleanup_(buf_done) struct buf answer = BUF_INIT;
	const struct imds d = { .page = data, .len = size, .key = key, .now = 1000 };
	const char *at;

	if (imds_check(data, size) < 0 ||
	    imds_answer(&token, &d, (const uint8_t *)ask, strlen(ask)) != IMDS_ANSWERED ||
	    buf_add(&token, "", 1) < 0)
		return;
	at = strstr((const char *)buf_data(&token), "\r\n\r\n");
	fuzz_need(at != NULL);
	if (buf_addf(&request,
		     "GET /latest/%s HTTP/1.1\r\nHost: 169.254.169.254\r\n" IMDS_TOKEN_FIELD
		     ": %s\r\n\r\n",
		     size > 0 && memchr(data, '\0', size) ? (const char *)data : "", at + 4) < 0)
		return;
	fuzz_need(imds_answer(&answer, &d, buf_data(&request), request.len) != IMDS_MORE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_request(data, size);
	try_path(data, size);
	return 0;
}
