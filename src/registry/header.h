/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_HEADER_H
#define NACRE_REGISTRY_HEADER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"

/* Values of headers of HTTP. Pure; each takes any text. */

/* Whether a name, or another word without case, is `lower`, which is in lower case. */
bool header_is(const char *name, const char *lower);
/* A whole decimal number up to max. */
bool header_number(const char *text, uint64_t max, uint64_t *ret);
/* The media type without its parameters, in lower case; "" where it is none or too long. */
void header_media_type(const char *text, char *ret, size_t size);
/* The target of rel="next" in a Link; false where there is none or it does not fit. */
bool header_next_link(const char *text, char *ret, size_t size);
/* Retry-After: seconds or a date (RFC 9110). Milliseconds from now, bounded by max; false where it
 * is neither. */
bool header_retry_after(const char *text, nsec_t now, uint64_t max_ms, uint64_t *ret_ms);

struct header_range {
	uint64_t first, last, total;
};
/* Content-Range: "bytes FIRST-LAST/TOTAL", with the three numbers consistent. */
bool header_content_range(const char *text, struct header_range *ret);
/* The Range of an upload ("0-LAST"): how many bytes are there; "0-0" may mean none: 1. */
bool header_upload_range(const char *text, uint64_t *ret_n);

#endif
