/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_NAMES_H
#define NACRE_POD_NAMES_H

#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "loop/loop.h"
#include "pod/workload/model.h"

/*
 * Pods and cells of one network find each other by name: /etc/hosts of each has a block
 * (isolate/mount/hosts_block.h) with the addresses of all of them, by the name of the pod and by
 * NAME.NETWORK, for each network that it is on. It is written with the file, and again when
 * somebody came or went, within a second: on a thread, in the containers that run, or by the keeper
 * of a machine. No resolver is involved, and nothing parses what a pod sends.
 *
 * Sandboxes of Kubernetes have no names here, and get none: their /etc/hosts is the kubelet's.
 */

/* Changes within this time are written as one. */
#define NAMES_SETTLE (50 * NSEC_PER_MSEC)
/* The delay before another attempt, where a file could not be written for now. */
#define NAMES_AGAIN (5 * NSEC_PER_SEC)

struct map;
struct pool;
struct names_job;

/* A waiter for the files to match the networks: a value inside its owner. */
struct names_wait {
	struct list link;
	bool begun; /* the write that it waits for is under way */
	void (*done)(void *userdata);
	void *userdata;
};

/* A value: all of a daemon. */
struct names {
	struct loop *loop;
	const struct list *workloads;
	const struct map *containers; /* of these, by id */
	struct loop_timer timer;
	nsec_t due;            /* clock_mono() of the timer; 0: it is not set */
	struct pool *pool;     /* one thread, for one job: it changes its root */
	struct names_job *job; /* the job of that thread; NULL: none */
	struct list waits;     /* struct names_wait */
	struct list asked;     /* keepers of machines, that are writing */
};

void names_init(struct names *n, struct loop *l, const struct list *workloads,
		const struct map *containers);
/* Waits for the job of the thread. To be called before the workloads are freed. */
void names_done(struct names *n);

/* Somebody came to a network or left one, or a container began to run. */
void names_look(struct names *n);

/* The same at once: done is called, later, when all files that can be written are. Not where the
 * daemon ends before. */
void names_await(struct names *n, struct names_wait *wait);
/* It waits no more: done is not called. */
void names_forget(struct names_wait *wait);

/* The block of the networks that a workload is on, with all workloads that are on them, and
 * what stands for the block in pod_container.names. Nothing for one that gets no names: 0 and no
 * text. -ENOMEM. */
int names_block(const struct list *workloads, const struct workload *w, struct buf *b,
		uint64_t *ret);

#endif
