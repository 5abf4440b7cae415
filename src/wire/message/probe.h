/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_PROBE_H
#define NACRE_WIRE_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * The request of a health check to a port of a pod over HTTP/1.1 or gRPC, and as much of the answer
 * as decides: the status line of the one; of the other the heads of HTTP/2 frames and one message
 * of a few bytes. No header is decoded (no HPACK), nothing is allocated, and nothing that a pod
 * sends is kept or handed on but a number. Bytes come in pieces of any size.
 */

#define PROBE_PATH_MAX 1024
#define PROBE_SERVICE_MAX 100
/* Of either request. */
#define PROBE_REQUEST_MAX 1536
/* Bytes of an answer that are looked at. */
#define PROBE_ANSWER_MAX 65536

enum probe_verdict {
	PROBE_MORE, /* not decided: more bytes are needed */
	PROBE_GOOD,
	PROBE_BAD,
};

/* The length. path: with a '/' in front, of at most PROBE_PATH_MAX bytes of printable ASCII without
 * blanks. */
size_t probe_http_request(uint8_t ret[PROBE_REQUEST_MAX], unsigned port, const char *path);
/* The length. service: at most PROBE_SERVICE_MAX bytes. */
size_t probe_grpc_request(uint8_t ret[PROBE_REQUEST_MAX], const char *service);

/* Values; all zero in the beginning. */
struct probe_http {
	uint8_t head[13]; /* "HTTP/1.1 200 " */
	unsigned n;
	unsigned status; /* once it is decided; 0: that was no HTTP */
};

struct probe_grpc {
	uint8_t head[9];
	unsigned n_head;
	uint32_t left;    /* bytes of the frame that are to come */
	uint32_t padding; /* of these at its end */
	bool pads;        /* the first byte says how many that are */
	bool begun;       /* a frame was seen */
	bool is_answer;   /* the frame is DATA of the answer */
	bool is_last;     /* nothing of the answer follows behind it */
	uint8_t body[64]; /* the message with its head */
	unsigned n_body;
	uint32_t total;
	uint64_t status; /* of HealthCheckResponse, once `answered` */
	bool answered;
};

enum probe_verdict probe_http_feed(struct probe_http *p, const uint8_t *data, size_t len);
enum probe_verdict probe_grpc_feed(struct probe_grpc *p, const uint8_t *data, size_t len);

#endif
