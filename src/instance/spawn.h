/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_SPAWN_H
#define NACRE_INSTANCE_SPAWN_H

#include <stdbool.h>

#include "base/log/error.h"
#include "isolate/disk/disk.h"
#include "isolate/spawn/spawn.h"

/*
 * How a keeper comes to be, the same way at every depth: used by the node's daemon and by keepers.
 * The parent binds the sockets in a directory that it keeps, outside of the keeper's mount
 * namespace, so it can connect again after it was restarted (architecture 9.3):
 *
 *   rpc.sock  gRPC
 *   fd.sock   descriptors by token
 *   end       the keeper's last message (text, one line)
 */

/* The descriptors that a keeper finds open. */
enum instance_fd {
	INSTANCE_FD_RPC = 3, /* listening: gRPC */
	INSTANCE_FD_CHANNEL, /* listening: descriptors by token */
	INSTANCE_FD_CGROUP,  /* directory of its layer's group */
	INSTANCE_FD_EXE,     /* the program, to make further keepers from */
	INSTANCE_FD_END,     /* the file for its last words */
	INSTANCE_FD_END_OF_LIST,
	/* Only with --disks (instance_spawn.disks). */
	INSTANCE_FD_DISKS_SYS = INSTANCE_FD_END_OF_LIST,
	INSTANCE_FD_DISKS_DEV,
	INSTANCE_FD_DISKS_BUS, /* may be missing */
	INSTANCE_FD_DISKS_END
};

/* The last words are one line of at most this many bytes. */
#define INSTANCE_LAST_WORDS_MAX 256

struct instance_spawn {
	const char *title; /* for `ps`: "pod/web", "node", "a/b" */
	int dir_fd;        /* an empty directory of its own, 0700 */
	int cgroup_fd;     /* the layer's group; the leaf "keeper" is made in it */
	int exe_fd;        /* the program: instance_open_exe() */
	bool unnamed;      /* title is for now: hello brings another, of at most a label */
	bool walled;       /* namespaces and a root of its own; false: the keeper of the node */
	bool in_guest;     /* not walled, and not the node either: the walls are the machine's */
	/* Only with walled: these namespaces are those of its parent. */
	bool host_network, host_pids, host_ipc, host_uts;
	/* Likewise: the network and UTS namespaces that it is in, of ISOLATE_NS_COUNT descriptors,
	 * -1: none; NULL: none at all. Not with ids. */
	const int *joins;
	/* Likewise: "NAME=VALUE" each, of the namespaces that it gets; NULL: none. */
	char *const *sysctls;
	/* Likewise: what it gets belongs to a new user namespace with these ids, which it is not in
	 * itself: its containers will be. */
	struct isolate_ids ids;
	int death_signal; /* 0, or SIGKILL where its parent is a keeper */
	/* With walled, in a guest: where its machine has the disks, which it cannot see from behind
	 * its walls; not owned. NULL: not in a guest. */
	const struct disk_places *disks;
};

/* This program as a detached read-only mount that can be executed and handed on (architecture 9.5).
 */
int instance_open_exe(struct error *err);

/* Whether such sysctls are of namespaces that a keeper with walls gets. Pure. ERROR_INVALID with
 * "sysctls: NAME". */
int instance_check_sysctls(char *const *sysctls, bool host_network, bool host_ipc, bool host_uts,
			   struct error *err);

/* Returns when the process was cloned; it listens from the first instant (the sockets are bound
 * before). */
int instance_spawn(const struct instance_spawn *spec, struct isolate_child *ret, struct error *err);

/* Connects to a keeper's two sockets. ERROR_UNAVAILABLE where nobody listens: it has ended. */
int instance_connect(int dir_fd, int *ret_rpc_fd, int *ret_fd_fd, struct error *err);

/* The last words, "" where there are none. */
void instance_last_words(int dir_fd, char *ret, size_t size);

#endif
