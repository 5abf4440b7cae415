/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_FRONT_H
#define NACRE_GATES_FRONT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "wire/message/gatemsg.h"

/*
 * One address at which users from elsewhere reach this node: a listening socket, made here, and the
 * process of nacre-gate that serves it (gate/front.h), started again where it ends. An address that
 * cannot be had now (it is in use, or is none of this host yet) is tried until it can.
 */

struct front;
struct issuer;
struct loop;

struct front_visitor {
	const char *id; /* "spiffe://DOMAIN/user/NAME" */
	const char *address;
	const uint8_t *serial; /* GATE_SERIAL_SIZE bytes */
	uint64_t not_after;
};

struct front_config {
	struct loop *loop;
	struct issuer *issuer; /* must outlive the front */
	const char *program;   /* path of nacre-gate */
	const char *address;   /* "ADDRESS:PORT", or a path */
	const char *names;     /* by which it is reached besides, parted by commas; or "" */
	uid_t uid;
	gid_t gid;
	/* A user has connected, and speaks HTTP/2 through fd, which is the callee's. */
	void (*on_visitor)(void *userdata, int fd, const struct front_visitor *visitor);
	void *userdata;
};

#define FRONT_NAME_MAX 253
/* Addresses of interfaces in one certificate, which has a bound. */
#define FRONT_INTERFACES_MAX 32

/* Whether a certificate can be for the name: a DNS name in small letters, or an address. */
bool front_name_is_valid(const char *name);
/* Reads "192.0.2.1:7443", "[2001:db8::1]:7443", "[::]:7443", or the absolute path of a unix socket:
 * 0 or -EINVAL. Port 0 is none. */
int front_address_read(const char *text, struct sockaddr_storage *ret, socklen_t *ret_len);
/* A wildcard: of all interfaces. */
bool front_address_is_any(const struct sockaddr_storage *address);
/* A listening TCP socket, non-blocking, or a negative errno. */
int front_listen_at(const struct sockaddr_storage *address, socklen_t len);
/* The names that a certificate for the address has: it, or those of the interfaces where it is a
 * wildcard, localhost where it is reached so, the host's own name, and `more`. */
int front_names(const struct sockaddr_storage *address, const char *more,
		char ret[GATE_NAMES_MAX + 1]);

/* All of config is copied. Begins in the loop. 0, -EINVAL or -ENOMEM. */
int front_new(struct front **ret, const struct front_config *config);
/* Ends the process, and with it each connection. */
struct front *front_free(struct front *f);

/* Sets the serials of all revoked certificates, GATE_SERIAL_SIZE bytes each; replaces the former
 * list. The connections of their users end. 0 or -ENOMEM; then the process is ended and serves
 * again when the list is told. */
int front_set_revoked(struct front *f, const uint8_t *serials, size_t len);
bool front_is_listening(const struct front *f);
const char *front_address(const struct front *f);

#endif
