/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IO_UNIX_H
#define NACRE_IO_UNIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"

/*
 * Unix sockets by directory descriptor and name (through /proc/self/fd/N/NAME, so that no long path
 * meets the 108 bytes of sun_path), never abstract. Types: SOCK_STREAM or SOCK_SEQPACKET.
 */

/* A listening socket NAME in dir_fd, mode 0600, non-blocking; an old socket of that name is
 * replaced. dir_fd may be AT_FDCWD, then NAME is a path of at most 107 bytes. */
int unix_listen(int dir_fd, const char *name, int type, struct error *err);
/* The same of another mode; for the loop's thread, since it changes the umask for a moment. */
int unix_listen_mode(int dir_fd, const char *name, int type, mode_t mode, struct error *err);
/* A connected, non-blocking socket. -ECONNREFUSED and -ENOENT say that nobody listens. */
int unix_connect(int dir_fd, const char *name, int type, struct error *err);
/*
 * Claims a name for this process in its network namespace: the socket that is returned has the
 * abstract name, until it is closed. -EADDRINUSE: another one has it, *ret_pid is that, or 0 where
 * it is not of this pid namespace.
 */
int unix_claim(const char *name, int *ret_pid, struct error *err);
/* Whether a living process listens there: who called listen(), not who has got the socket from it.
 * A process that was killed may have a child between clone and exec, which holds a copy. One that
 * we cannot see (it is of another pid namespace), or whose queue is full, counts as living. */
bool unix_is_served(int dir_fd, const char *name, int type);

/*
 * Which process has connected, or made a pair: its id in *ret_pid, and a pidfd, which is the
 * caller's. The id is only its own until it ends, which the pidfd tells. -ENOPROTOOPT: this kernel
 * does not say (before Linux 6.5); -ESRCH: it is in a pid namespace that we do not see.
 */
int unix_peer_process(int fd, pid_t *ret_pid);

/*
 * The second socket beside a gRPC connection (architecture 9.2): each packet is a fixed header and
 * one descriptor. `token` is drawn by the sender and named in a message of the gRPC stream
 * afterwards; `target` is the instance below the receiver that the descriptor is for ("" for the
 * receiver). A sender sends the descriptor first, so it is in the socket when the message is read.
 */
#define FDCHAN_TARGET_MAX 512

struct fdchan_packet {
	uint64_t token;
	char target[FDCHAN_TARGET_MAX];
	int fd;
};

/* Blocks at most briefly (the socket's buffer holds hundreds): 0, -EAGAIN where it is full, or
 * another negative errno. Does not take fd over. */
int fdchan_send(int sock_fd, uint64_t token, const char *target, int fd);
/* The same of each of n that is not -1, in one call as far as they are FDCHAN_TOGETHER: the
 * receiver wakes once and finds them all. What was sent before an error stays so. */
#define FDCHAN_TOGETHER 8
int fdchan_send_all(int sock_fd, const uint64_t *tokens, const char *target, const int *fds,
		    size_t n);
/* 1 with a packet (its fd is the caller's), 0 where nothing waits, -EPIPE at the end of the
 * connection, -EPROTO for anything that is not such a packet (nothing leaks), -EMFILE where the
 * packet is lost because this process may hold no more descriptors. */
int fdchan_receive(int sock_fd, struct fdchan_packet *ret);

#endif
