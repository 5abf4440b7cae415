/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_NETMSG_H
#define NACRE_NET_NETMSG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * The form of netlink's messages (netlink(7)), without a socket: a request is written into a value
 * of fixed size, an answer is taken apart in place. Lengths are checked before anything is read,
 * and no read depends on how the bytes are aligned.
 */

/* ---- a request ---- */

#define NETMSG_MAX 1024

struct netmsg {
	_Alignas(4) uint8_t data[NETMSG_MAX];
	size_t len;
	bool full; /* something did not fit: the message is not to be sent */
};

/* Starts over: type RTM_*, flags NLM_F_*, and the fixed part that the type has. */
void netmsg_begin(struct netmsg *m, uint16_t type, uint16_t flags, const void *body, size_t len);
/* Attributes. An attribute that does not fit is left out, and marks the message as full. */
void netmsg_put(struct netmsg *m, uint16_t type, const void *data, size_t len);
void netmsg_put_u8(struct netmsg *m, uint16_t type, uint8_t value);
void netmsg_put_u32(struct netmsg *m, uint16_t type, uint32_t value);
void netmsg_put_str(struct netmsg *m, uint16_t type, const char *value);
/* Bytes without a head, as some attributes begin with. */
void netmsg_put_raw(struct netmsg *m, const void *data, size_t len);
/* Open and close an attribute of that type: all that is put in between is nested in it. open
 * returns the argument of close. */
size_t netmsg_open(struct netmsg *m, uint16_t type);
void netmsg_close(struct netmsg *m, size_t at);
/* Sets the sender's port, and the sequence number that the answer will carry. */
void netmsg_stamp(struct netmsg *m, uint32_t seq, uint32_t port);

/* ---- answers ---- */

/* Bytes of somebody else that are still to be read. */
struct netmsg_bytes {
	const uint8_t *at;
	size_t len;
};

struct netmsg_head {
	uint16_t type, flags;
	uint32_t seq, port;
	struct netmsg_bytes body; /* all behind the head */
};

struct netattr {
	uint16_t type; /* without the bits for nesting and byte order */
	struct netmsg_bytes value;
};

/* The next message of a datagram: 1, 0 at its end, -EBADMSG. */
int netmsg_next(struct netmsg_bytes *rest, struct netmsg_head *ret) _must_check_;
/* Takes the fixed part of `len` bytes off the front: 0 or -EBADMSG. */
int netmsg_take(struct netmsg_bytes *rest, void *ret, size_t len) _must_check_;
/* The next attribute: 1, 0 at the end, -EBADMSG. */
int netattr_next(struct netmsg_bytes *rest, struct netattr *ret) _must_check_;
/* The value of exactly that many bytes: 0 or -EBADMSG. */
int netattr_bytes(const struct netattr *a, void *ret, size_t len) _must_check_;
int netattr_u32(const struct netattr *a, uint32_t *ret) _must_check_;
/* A string with its NUL in at most `size` bytes: 0 or -EBADMSG. */
int netattr_str(const struct netattr *a, char *ret, size_t size) _must_check_;

#define NETMSG_TEXT_MAX 160

/* The kernel's verdict on a request as a whole. */
struct netmsg_verdict {
	int code;                   /* 0, or a negative errno */
	char text[NETMSG_TEXT_MAX]; /* the kernel's message about it, or "" */
	bool is_about_attr;         /* `offset` is that of the faulty attribute in the request */
	uint32_t offset;
};

/* Of a message of type NLMSG_ERROR or NLMSG_DONE: 0 or -EBADMSG. Words that are longer are cut. */
int netmsg_verdict(const struct netmsg_head *head, struct netmsg_verdict *ret) _must_check_;

#endif
