/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VOLUMES_VOLUMES_H
#define NACRE_VOLUMES_VOLUMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/text/id.h"
#include "loop/pool.h"

/*
 * The volumes of a node: directories below volumes/ in its root directory, and a record of each in
 * root.db. A name is a column there and never a name on the disk. The directory is made before the
 * record and removed behind it, so that one without a record is what a killed daemon left: it goes
 * at the next start.
 *
 * The users of a volume are not known here: the code that removes one checks that it has none
 * (runtime/storage/volumes_call.h, pod/workload/workload.h). All of it belongs to the loop thread;
 * files in the directories are read and written by others (volumes/fill.h).
 */

struct root_store;
struct volumes;
struct volume_waiter;

/*
 * MAKING    its directory is there, its record is on its way to the disk
 * READY     recorded
 * REMOVING  its record is on its way out; then its directory is removed. The name is free when the
 *           record is gone
 */
enum volume_state { VOLUME_MAKING, VOLUME_READY, VOLUME_REMOVING, VOLUME_STATE_COUNT };

#define VOLUME_NAME_MAX 128
#define VOLUMES_MAX 65536
#define VOLUME_LABELS_MAX 64
#define VOLUME_LABEL_MAX 1024

struct volume {
	struct list link; /* in order of creation */
	struct volumes *all;
	char id[ID_SIZE];
	char name[VOLUME_NAME_MAX + 1];
	char *labels; /* "NAME=VALUE", each with a newline behind it */
	bool anonymous;
	uint64_t created_at; /* clock_real() */
	enum volume_state state;
	/* Of the calls that start containers with it: those that will have it, those of them that
	 * have opened it, and whether one of these fills it. */
	unsigned n_held, n_opened;
	bool filling;
	bool unwanted; /* the last holder removes it, unless a workload has it */

	/* Private. */
	bool doomed; /* to be removed as soon as it is recorded */
	struct list waiters;
	struct pool_work work;
};

/* Told once: when the volume that is being made is recorded, or when the one that is being removed
 * is gone; v is NULL then, and where it could not be made. To be taken off its list before it goes
 * (list_remove(), on an entry of no list too). */
struct volume_waiter {
	struct list link;
	void (*done)(struct volume_waiter *waiter, struct volume *v, const struct error *err);
};

struct volumes_config {
	struct pool *pool;
	struct root_store *store;
	int root_fd;      /* the node's root directory; kept open by the caller */
	const char *root; /* its path, for people */
};

/* Reads the records, and begins to remove what belongs to none. To be freed after the pool. */
int volumes_new(struct volumes **ret, const struct volumes_config *config, struct error *err);
/* Nobody is told any more: before those go who wait. NULL is fine. */
void volumes_stop(struct volumes *all);
struct volumes *volumes_free(struct volumes *all);

struct volume_spec {
	const char *name;    /* NULL or "": its id */
	const char *id;      /* NULL: one is drawn */
	char *const *labels; /* n_labels of "NAME=VALUE" or "NAME" */
	size_t n_labels;
	bool anonymous;
};

/* The form of a name, and of labels. ERROR_INVALID names the field ("labels[2]"). */
int volume_check_name(const char *field, const char *name, struct error *err);
int volume_check_labels(char *const *labels, size_t n, struct error *err);

/* Its directory is there, and its record on its way: `waiter` (may be NULL) is told. ERROR_INVALID
 * names `name` or `labels`; ERROR_EXISTS, ERROR_EXHAUSTED. */
int volumes_create(struct volumes *all, const struct volume_spec *spec,
		   struct volume_waiter *waiter, struct volume **ret, struct error *err);
/* Also told when one that somebody else makes is recorded. */
void volume_await(struct volume *v, struct volume_waiter *waiter);
/* Nobody has it. One that is being made goes once it is recorded. */
int volume_remove(struct volume *v, struct volume_waiter *waiter, struct error *err);

/* By name or id; one that is being removed is none. */
struct volume *volumes_find(const struct volumes *all, const char *name);
/* One of that name is there, or on its way out. */
bool volumes_has_name(const struct volumes *all, const char *name);
/* In order of creation: struct volume.link. */
const struct list *volumes_list(const struct volumes *all);
size_t volumes_count(const struct volumes *all);
/* The directory that fill.h takes; stays theirs. */
int volumes_dir(const struct volumes *all);
/* Where its files are, for people. -ENAMETOOLONG. */
int volume_path(const struct volume *v, char *ret, size_t size);

#endif
