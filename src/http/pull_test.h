/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_HTTP_PULL_TEST_H
#define NACRE_HTTP_PULL_TEST_H

#include "http/session.h"

/* Appends to `to` what the session has to send: about `max` bytes. 0 or a negative errno. */
static inline int pull_into(struct http_session *h, struct buf *to, size_t max)
{
	struct http_out out = HTTP_OUT_INIT;
	int r = http_session_pull(h, &out, max);

	if (r == 0)
		r = http_out_rest(&out, 0, to);
	http_out_done(&out);
	if (r == 0)
		http_session_pulled(h);
	return r;
}

#endif
