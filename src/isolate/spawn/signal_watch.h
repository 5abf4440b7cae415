/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SIGNAL_WATCH_H
#define NACRE_ISOLATE_SIGNAL_WATCH_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * Every signal that the kernel generates for a process of this host, from a BPF program of ours at
 * the tracepoint signal_generate, by a ring in memory that both share. It costs each signal on the
 * host a moment for as long as a watch is open.
 */
struct signal_watch;

#define SIGNAL_GROUPS 6

struct signal_event {
	/* The cgroup (v2) of the process that it is for, and those above that; 0: none. Numbers as
	 * st_ino of their directories. */
	uint64_t groups[SIGNAL_GROUPS];
	int32_t signal;
	int32_t pid; /* of the process, in the first pid namespace */
};

/* Reads megabytes of types of the kernel: not for a loop thread. ERROR_UNSUPPORTED says what the
 * kernel lacks, or that we may not. */
int signal_watch_open(struct signal_watch **ret, struct error *err);
/* Takes NULL, returns NULL. */
struct signal_watch *signal_watch_close(struct signal_watch *w);

/* Readable while there is something to read. */
int signal_watch_fd(const struct signal_watch *w);
/* 1, or 0 where there is none at the moment. */
int signal_watch_next(struct signal_watch *w, struct signal_event *ret);
/* How many found the ring full. */
uint64_t signal_watch_lost(const struct signal_watch *w);

#endif
