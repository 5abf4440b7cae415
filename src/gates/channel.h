/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_CHANNEL_H
#define NACRE_GATES_CHANNEL_H

#include "base/log/error.h"
#include "base/memory/list.h"
#include "isolate/spawn/spawn.h"
#include "loop/loop.h"
#include "wire/message/gatemsg.h"

/*
 * Messages to and from a process of nacre-gate over a socket (SOCK_SEQPACKET), as all its roles
 * that a daemon has to do with need it. A value inside its owner.
 */

/* Packets that wait because the socket is full. */
#define CHANNEL_QUEUE_MAX 64

struct channel;

struct channel_ops {
	/* The channel may be done in it. *c->passed_fd is the descriptor that came with the
	 * message, or -1; it is closed afterwards unless it was taken (TAKE_FD). */
	void (*on_message)(struct channel *c, const struct gatemsg *m);
	/* Once: the other end is gone, or has said what is no message. The channel is to be done.
	 */
	void (*on_end)(struct channel *c, const struct error *err);
};

struct channel {
	const struct channel_ops *ops;
	struct loop_fd source;
	int fd, *passed_fd; /* the second only in on_message */
	struct list queue;
	unsigned n_queued;
	bool *gone; /* of the call that is on its way */
};

#define CHANNEL_INIT                                                                               \
	{                                                                                          \
		.fd = -1                                                                           \
	}

/* The two ends of one: ours does not block. The caller closes both, also where this fails. */
int channel_pair(int *ours, int *theirs, struct error *err);
/* Takes fd, which does not block, over. */
void channel_init(struct channel *c, struct loop *loop, int fd, const struct channel_ops *ops);
void channel_done(struct channel *c);
/* 0, ERROR_INVALID (gatemsg_encode()), -ENOBUFS, -ENOMEM. Messages keep their order. */
int channel_send(struct channel *c, const struct gatemsg *m, struct error *err);
/* The same with a descriptor, which stays the caller's: at once, or -EAGAIN. */
int channel_send_fd(struct channel *c, const struct gatemsg *m, int fd, struct error *err);

/* Takes what is there already, of a process that has ended. */
void channel_drain(struct channel *c);

struct channel_spawn {
	char *const *argv; /* [0]: the path of the program */
	int net_fd;        /* -1: the daemon's own namespace */
	int cgroup_fd;     /* -1: the daemon's own group */
	const int *fds;
	size_t n_fds;
};

/* Starts the program with no more privilege than its first steps need. The child is the caller's.
 */
int channel_spawn(const struct channel_spawn *spec, struct isolate_child *ret, struct error *err);
/* The same for a program of the daemon's own namespaces, which is told its role (NULL: it has one
 * alone), and the user and group that it becomes. */
int channel_spawn_role(const char *program, const char *role, uid_t uid, gid_t gid, const int *fds,
		       size_t n_fds, struct isolate_child *ret, struct error *err);

#endif
