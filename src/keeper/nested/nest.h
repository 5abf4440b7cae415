/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_NEST_H
#define NACRE_KEEPER_NEST_H

#include <stdint.h>

#include "base/log/error.h"
#include "isolate/spawn/spawn.h"

/*
 * The process that keeps a machine below a keeper whose kernel is one of its own
 * (init/nest_main.h): to the keeper it stands in the place of the machine's keeper, lives as long
 * as the machine, and its last words say how that ended. The keeper finds rpc.sock in the directory
 * once it is READY.
 */

#define NEST_SERIAL_MAX 20

/* The descriptors that it finds open. */
enum nest_fd {
	NEST_FD_LINE = 3, /* connected: NEST_READY from it, NEST_END to it, each a packet */
	NEST_FD_DIR,      /* its directory */
	NEST_FD_CGROUP,   /* its group */
	NEST_FD_END,      /* the file for its last words */
	NEST_FD_END_OF_LIST
};

/* Behind it the release of the machine's kernel. */
#define NEST_READY 'R'
#define NEST_END 'E'
#define NEST_PACKET_MAX 128

struct nest {
	const char *tools; /* serial of the disk */
	uint64_t memory;   /* bytes */
	unsigned cpus;
};

struct nest_spawn {
	const struct nest *nest;
	const char *title; /* of the new instance: "a/b" */
	int dir_fd, cgroup_fd, exe_fd;
};

/* ret_line_fd: the keeper's end. */
int nest_spawn(const struct nest_spawn *spec, struct isolate_child *ret, int *ret_line_fd,
	       struct error *err);
/* Reads a message from the line: the release, "" where it is not READY; -EAGAIN, or -EPIPE behind
 * the last one. */
int nest_read(int line_fd, char *ret, size_t size);
/* Asks it to end the machine in order. */
void nest_end(int line_fd);

#endif
