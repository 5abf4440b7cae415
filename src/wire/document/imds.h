/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_IMDS_H
#define NACRE_WIRE_IMDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"

/*
 * The metadata service of a pod: its page, and the rules by which requests are answered, as those
 * of EC2's second version (IMDSv2). A codec: bytes of a request in, those of the answer out.
 *
 * A page is a list of paths with values ("meta-data/instance-id"); whatever is in front of a '/' is
 * a directory, whose answer is the list of what is in it. The same page stands below each version:
 * "/latest/meta-data/instance-id".
 *
 * PUT /latest/api/token with IMDS_TTL_FIELD, IMDS_TTL_MIN to IMDS_TTL_MAX seconds, makes a token;
 * GET and HEAD of anything else need one in IMDS_TOKEN_FIELD. A token is its end and a checksum
 * (HMAC-SHA256) by the key of the page, so nothing is kept of it, and none of another page holds.
 *
 * Refused, whatever else is right: a Host that is not one of the addresses (a name that somebody
 * made point here), a request that somebody has passed on (X-Forwarded-For and the like), a body.
 * Each answer ends its connection.
 */

#define IMDS_KEY_SIZE 32
#define IMDS_PAGE_MAX ((size_t)65536) /* bytes */
#define IMDS_TTL_FIELD "X-aws-ec2-metadata-token-ttl-seconds"
#define IMDS_TOKEN_FIELD "X-aws-ec2-metadata-token"
#define IMDS_TTL_MIN 1
#define IMDS_TTL_MAX 21600
#define IMDS_USER_DATA "user-data"
/* A value that is asked for each time, in place of one in the page (imds_answer()). */
#define IMDS_SVID "dynamic/identity/svid"

/* Adds a value to a page: -EINVAL where the path is none (an empty part, or no UTF-8 without
 * control characters), -EFBIG past IMDS_PAGE_MAX, -ENOMEM. */
int imds_put(struct buf *page, const char *path, const void *data, size_t len) _must_check_;
/* Whether that is a page. */
int imds_check(const uint8_t *page, size_t len) _must_check_;

struct imds {
	const uint8_t *page; /* imds_check() */
	size_t len;
	const uint8_t *key; /* IMDS_KEY_SIZE random bytes, of this page alone */
	uint64_t now;       /* seconds of a clock that nobody sets */
};

enum imds_verdict {
	IMDS_MORE,       /* the request is not there whole */
	IMDS_ANSWERED,   /* the answer is in *ret */
	IMDS_WANTS_SVID, /* a request for IMDS_SVID, which the page has, is allowed */
};

/* Reads the request in data. A verdict, or -ENOMEM. */
int imds_answer(struct buf *ret, const struct imds *d, const uint8_t *data,
		size_t len) _must_check_;
/* An answer that is made elsewhere: status as "200 OK". */
int imds_reply(struct buf *ret, const char *status, const char *type, const void *body,
	       size_t len) _must_check_;

#endif
