/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_TRANSFER_H
#define NACRE_REGISTRY_TRANSFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "registry/challenge.h"
#include "registry/endpoint.h"
#include "registry/url.h"

/*
 * One request of HTTP and its answer, on libcurl, which knows nothing here but how to speak TLS,
 * HTTP/1.1 and HTTP/2 to one host: it follows no redirect, reads no file, no environment and no
 * cookie, and is shown no credentials but in the headers of this one request.
 */

struct transfer;

struct transfer_ops {
	/* The head of the answer is whole. A negative errno ends the transfer. */
	int (*on_head)(struct transfer *t, struct error *err);
	int (*on_data)(struct transfer *t, const void *data, size_t len, struct error *err);
	/* Last and once; the transfer may be freed here. err: what was said above, or what happened
	 * on the way; NULL: the answer came whole, whatever its status. */
	void (*on_end)(struct transfer *t, const struct error *err);
};

/* The fields of an answer's head that are used. */
struct transfer_head {
	unsigned status;
	bool has_length;
	uint64_t length;
	char content_type[256];
	char digest[128]; /* Docker-Content-Digest */
	char location[URL_SIZE];
	char next[URL_SIZE]; /* of Link */
	char range[64];
	char content_range[96];
	char retry_after[64];
	char upload_minimum[32];
	char subject[128]; /* OCI-Subject */
	bool challenged;
	struct challenge challenge;
};

/* Why a transfer failed, as far as it decides what is done next. */
enum transfer_fault {
	TRANSFER_FAULT_OURS,    /* on_head or on_data said so, or memory is out */
	TRANSFER_FAULT_CONNECT, /* nothing was heard from there at all */
	TRANSFER_FAULT_TRUST,   /* its certificate, or ours */
	TRANSFER_FAULT_CUT,     /* the answer ended, stalled or broke its form: worth another try */
};

struct transfer_request {
	const char *method;
	const struct url *url;
	char *const *headers;            /* "Name: value" */
	const struct endpoint *endpoint; /* its certificates and time-outs count */
	const struct buf *system_ca;
	bool stranger;     /* the URL came from an answer: nothing on this machine or link */
	bool loopback_ok;  /* but loopback */
	const char *proxy; /* with its credentials; NULL or "": none */
	uint32_t connect_ms, stall_ms, min_rate, total_ms; /* total: 0: no bound */
	/* The body, for a method that has one: of a file, or of memory where body_fd is negative.
	 */
	bool has_body;
	int body_fd;
	uint64_t body_at;
	const void *body;
	uint64_t body_len;
};

struct transfers;

struct transfer {
	const struct transfer_ops *ops;
	struct transfers *owner;
	struct transfer_head head;
	enum transfer_fault fault;
	void *easy;
	void *headers;
	bool begun; /* on_head was called */
	bool stranger, loopback_ok;
	bool kept_out;                /* from an address of this machine or link */
	char proxy[URL_HOST_MAX + 8]; /* host and port for errors; "": none */
	size_t n_head;
	int body_fd;
	const uint8_t *body;
	uint64_t body_at, body_begin, body_left, body_len;
	uint64_t n_sent;
	struct error err;
	char text[256]; /* curl's words for a failure */
};

/* All that go on at once. */
struct transfers {
	void *multi;
	unsigned n;
};

/* Before the sandbox closes: libcurl and libssl get ready, without their configuration files. */
int transfers_prepare(struct error *err);
int transfers_init(struct transfers *all, struct error *err);
void transfers_done(struct transfers *all);
/*
 * Goes on with all of them, and waits for at most wait_ms for something to go on with, or for
 * fd (negative: none) to be readable.
 */
int transfers_turn(struct transfers *all, int fd, int wait_ms, bool *ret_readable,
		   struct error *err);

/* All that the request points to must live until on_end, but for URL and headers. */
int transfer_start(struct transfer *t, struct transfers *all, const struct transfer_request *q,
		   const struct transfer_ops *ops, struct error *err);
/* Without a word; does nothing where none goes on. */
void transfer_stop(struct transfer *t);

#endif
