/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_DISK_WATCH_H
#define NACRE_POD_DISK_WATCH_H

struct image_store;
struct loop;
struct pool;
struct workloads;

/*
 * Keeps containers from filling the disk of the root directory (doc/decisions/disk-watch.md), and
 * knows what each of them has written (struct pod_container, `written`). It looks at the free room
 * while anything runs: the sooner again the less there is. Where less than the floor (struct
 * image_room) is free because of what containers write, the workload that has written most since
 * it was measured last is killed, with the reason in its record; then the next, until it ends.
 */

struct disk_watch;

struct disk_watch_config {
	struct loop *loop;
	struct pool *pool;
	struct workloads *workloads;
	const struct image_store *images;
	int logs_fd; /* kept open by the caller */
};

int disk_watch_new(struct disk_watch **ret, const struct disk_watch_config *config);
/* Before the workloads are freed; nothing is looked at any more. */
void disk_watch_stop(struct disk_watch *d);
/* Behind the end of the pool. */
struct disk_watch *disk_watch_free(struct disk_watch *d);
/* Something has begun to run. */
void disk_watch_wake(struct disk_watch *d);

#endif
