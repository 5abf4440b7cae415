/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_HELPER_H
#define NACRE_IMAGE_HELPER_H

#include <stdbool.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"
#include "wire/message/fetchmsg.h"

/*
 * One run of nacre-fetch or nacre-transfer: spawned with one request, in namespaces of its own,
 * with two or three descriptors. It may be told more while it runs; its answers come as checked
 * messages, its end comes last and once. A value; it must not move meanwhile.
 */

struct helper;

struct helper_ops {
	/* A message that is no ERROR. A negative errno (with err) kills the helper and ends the
	 * run. */
	int (*on_message)(struct helper *h, const struct fetchmsg *m, struct error *err);
	/* There is room again (helper_await_room()). Errors as those of on_message. May be NULL. */
	int (*on_room)(struct helper *h, struct error *err);
	/* The process is gone. err: what it said, or how it died; NULL where it ended well. */
	void (*on_end)(struct helper *h, const struct error *err);
};

#define HELPER_NAME_SIZE 32

struct helper {
	const struct helper_ops *ops;
	char name[HELPER_NAME_SIZE]; /* of the program, for people */
	struct isolate_child child;
	int sock_fd;
	struct loop_fd sock;
	struct loop_fd report;
	struct loop_child watch;
	bool running;
	bool reported; /* report_fd was read */
	struct error err;
};

struct helper_config {
	struct loop *loop;
	const char *path;    /* of the program */
	const char *command; /* "read", "unpack", "pull", ... */
	uint64_t caps;       /* capabilities that it needs until it has closed its sandbox */
	int from_fd;
	int to_fd;
	int more_fd;     /* a third descriptor, or -1 */
	bool network;    /* in the network namespace of the daemon */
	int net_ns_fd;   /* otherwise: -1 a new one, or this one */
	int mount_ns_fd; /* -1: in a new one; otherwise it goes to this one, its fourth descriptor
			  */
	const struct fetchmsg *request;
};

#define HELPER_FDS_MAX 2 /* of one message */

/* The descriptors of the config are still the caller's afterwards. */
int helper_start(struct helper *h, const struct helper_config *config, const struct helper_ops *ops,
		 struct error *err);
/*
 * Tells a running one something more, with copies of descriptors. Never waits: -EAGAIN with err
 * where it has not read what it was told before (some hundred messages fit). Where none runs
 * nothing is told, and 0.
 */
int helper_tell(struct helper *h, const struct fetchmsg *m, const int *fds, size_t n_fds,
		struct error *err);
/* on_room follows when it has read what it was told, or some of it. */
void helper_await_room(struct helper *h);
/* on_end follows. Does nothing where none runs. */
void helper_kill(struct helper *h);
/* Kills it without a word. */
void helper_done(struct helper *h);

#endif
