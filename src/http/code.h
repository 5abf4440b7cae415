/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_HTTP_CODE_H
#define NACRE_HTTP_CODE_H

/* Error codes (RFC 9113, section 7) that somebody names. */
enum http_code {
	HTTP_NO_ERROR = 0x0,
	HTTP_PROTOCOL_ERROR = 0x1,
	HTTP_INTERNAL_ERROR = 0x2,
	HTTP_STREAM_CLOSED = 0x5,
	HTTP_REFUSED_STREAM = 0x7,
	HTTP_CANCEL = 0x8,
	HTTP_ENHANCE_YOUR_CALM = 0xb,
	HTTP_INADEQUATE_SECURITY = 0xc,
};

#endif
