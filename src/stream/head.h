/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_HEAD_H
#define NACRE_STREAM_HEAD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "wire/format/httphead.h"

/*
 * The head of a request of HTTP/1.1 that asks for another protocol (RFC 9110, 9112). A codec. Only
 * what the streaming server looks at is kept.
 */

#define HEAD_MAX HTTPHEAD_MAX /* bytes of it */
#define HEAD_PATH_MAX 256
#define HEAD_WORD_MAX 64
#define HEAD_PROTOCOLS_MAX 8

/* Words of a field that is a list, of all of its lines, in order. */
struct head_words {
	char words[HEAD_PROTOCOLS_MAX][HEAD_WORD_MAX];
	size_t n;
	bool is_cut; /* one past the limit, or too long, was left out */
};

struct head {
	char method[16];
	bool is_old;              /* HTTP/1.0 */
	char path[HEAD_PATH_MAX]; /* without what is behind a "?" */
	bool is_upgrade;          /* Connection names it */
	char upgrade[HEAD_WORD_MAX];
	struct head_words protocols;    /* X-Stream-Protocol-Version */
	struct head_words subprotocols; /* Sec-WebSocket-Protocol */
	/* Sec-WebSocket-Key and -Version; "" where it is missing, or too long to be any. */
	char websocket_key[HEAD_WORD_MAX], websocket_version[HEAD_WORD_MAX];
};

/* 1: it is there, *used bytes long with the empty line; 0: more is needed. -EPROTO: that is none,
 * or names one of those two twice; -ENOBUFS: it is longer than HEAD_MAX. */
int head_take(const uint8_t *data, size_t len, size_t *used, struct head *ret);

#endif
