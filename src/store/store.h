/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STORE_STORE_H
#define NACRE_STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/text/id.h"
#include "base/text/parse.h"

/*
 * The records of the node, in two SQLite files (architecture 9.1): only this area writes them. This
 * header is run.db, store/root.h is root.db.
 *
 * run.db, in the run directory: what means nothing after a reboot. Written by the loop thread as
 * things change, never synced; it survives the daemon, not the machine. Room for it is put aside
 * (store/room.h), so that workloads start and end on a full disk too. root.db, in the root
 * directory: images. synchronous=FULL, written on the pool in groups; a write is told to its caller
 * when it lies on the disk. Both can be read with `sqlite3` while the daemon runs.
 *
 * The records are plain: no domain type is known here. Strings of a record that is handed out live
 * until the callback returns. Every function returns 0 or a negative errno with err set (-ENOSPC
 * and -EIO are kept apart from other faults).
 */

struct run_store;

struct run_instance {
	const char *id;
	const char *path; /* name path, "a/b/c" */
	const char *kind;
	int state; /* the number of its enum, with its word beside it in the file */
	const char *state_word;
	int64_t pid;         /* as the daemon sees it, 0 where it does not */
	uint64_t start_time; /* of that pid, clock ticks */
	const char *cgroup;  /* path below the v2 root */
	bool host_network;
	const char *owner; /* id of the workload that it was made for, or "" */
	const char *reason;
	uint64_t created_at;
	const char *request;  /* base/text/request.h */
	const char *settings; /* as those of a container */
	const char *handle;   /* instance/model.h; "": the last label of its path */
	const char *kind_reason;
	const char *kernel;                    /* release, where it is its own; or "" */
	uint64_t machine_memory, machine_room; /* bytes; 0: no machine of its own */
	unsigned machine_cpus;
};

struct run_workload {
	const char *id;
	const char *path;
	const char *kind;
	const char *instance; /* id of the instance that it lives in (the node has one too); "":
				 none yet */
	int state;
	const char *state_word;
	const char *network;
	bool auto_remove;
	const char *reason;
	uint64_t created_at;
	const char *request; /* base/text/request.h */
	const char *handle;  /* pod/workload/model.h; "": the last label of its path */
	const char *comment;
	const char *settings;      /* as those of a container */
	const char *instance_kind; /* of the instance that is made for it; "": none is */
	const char *kind_reason;
	const char *attachment; /* network/attachment.h; "": none */
	bool lasts;             /* it is a sandbox */
	bool drops_volumes;     /* the volumes that were made for it go with it */
	uint64_t stop_by; /* of CLOCK_MONOTONIC: a stop that goes on kills it then; 0: none does */
	bool stays;       /* it has files of its own: it is there again where a start fails */
	const char *restart; /* pod/restart/restart.h: the word of its policy */
	unsigned restart_max, restart_count;
	uint64_t restart_delay; /* ns, before the last one */
	bool stopped;           /* by somebody: no policy starts it */
	/* Of its user namespace: the user and group that 0 is outside, and how many; 0: none. */
	unsigned ids_uid, ids_gid, ids_count;
};

/* The request that a workload was made by, kept to make it again. */
struct run_wish {
	const char *id; /* of the workload */
	const char *text;
};

struct run_container {
	const char *id;
	const char *workload; /* id */
	unsigned position;
	const char *name;
	const char *image;      /* id, or "" */
	const char *image_name; /* as the user said it */
	const char *command;    /* for people: the words joined by blanks */
	const char *user;
	bool stdin_open, tty;
	const char *settings; /* the rest of its request; not read here */
	int state;
	const char *state_word;
	int64_t pid;
	int exit_code;
	int signal;
	const char *reason;
	uint64_t created_at, started_at, finished_at;
	uint64_t log_lost; /* bytes of its output that are not in its log */
	bool own_log;      /* which is a file of whoever asked for it */
	/* Ids of the node's volumes that it has, joined by blanks; a '+' is in front of those that
	 * were made for it. Beside them the images that it mounts, with a '@' in front, and the
	 * names of shares of its machine, with a '%'. */
	const char *volumes;
	const char *health;  /* pod/workload/health.h: the word of its state, or "" */
	const char *role;    /* "init", "debug", or "" for any other */
	const char *restart; /* the word of its own policy */
	unsigned restart_max, restart_count;
	bool stopped; /* somebody stopped it alone */
};

/* A volume of a workload whose files are given to its machine (pod/storage/mirror.h). */
struct run_mirror {
	const char *id;       /* workload/name */
	const char *workload; /* id */
	const char *name;
	const char *source; /* path */
};

/* A directory or file of the node that the machine of a sandbox has (pod/storage/shares.h). */
struct run_share {
	const char *id;       /* workload/name */
	const char *workload; /* id */
	const char *name;
	const char *source; /* path, or the id of an image */
	bool read_only;
	uint64_t dev, ino; /* of what that was then */
};

/* The result of a health check (pod/workload/health_record.h). */
struct run_health {
	const char *id;        /* container.N: a place that is used again */
	const char *container; /* id */
	uint64_t started_at, ended_at;
	int exit_code;
	const char *output; /* in hexadecimal digits */
};

/* A link of the host whose forwarding this node has turned on (net/filter/forward.h). */
struct run_forward {
	const char *id;     /* family/link */
	const char *family; /* "ipv4", "ipv6" */
	unsigned link;      /* index; 0: all links at once */
};

/* A workload as root.db keeps it (store/root.h): all its rows in one text. */
struct run_kept {
	struct run_workload workload;
	struct run_container *containers;
	size_t n_containers;
	struct run_wish wish;
};

struct arena;
struct buf;
/* -ENOMEM. */
int run_kept_write(struct buf *b, const struct run_kept *kept);
/* All in the arena. -EBADMSG: it is none, or of a later release. */
int run_kept_read(struct arena *a, const char *text, struct run_kept *ret, struct error *err);

/* Whether what root.db keeps was brought into this run.db, or need not be: once for each boot of
 * the host. */
int run_store_is_restored(struct run_store *s, bool *ret, struct error *err);
int run_store_set_restored(struct run_store *s, struct error *err);

int run_store_open(struct run_store **ret, int dir_fd, const char *name, struct error *err);
struct run_store *run_store_close(struct run_store *s);

/* Insert or replace by id; several puts between begin and commit are one transaction. Where one of
 * them failed, the commit undoes all of them and gives that error again. */
int run_store_begin(struct run_store *s, struct error *err);
int run_store_commit(struct run_store *s, struct error *err);
int run_store_put_instance(struct run_store *s, const struct run_instance *r, struct error *err);
int run_store_put_workload(struct run_store *s, const struct run_workload *r, struct error *err);
int run_store_put_container(struct run_store *s, const struct run_container *r, struct error *err);
int run_store_put_mirror(struct run_store *s, const struct run_mirror *r, struct error *err);
int run_store_put_share(struct run_store *s, const struct run_share *r, struct error *err);
int run_store_put_health(struct run_store *s, const struct run_health *r, struct error *err);
int run_store_put_forward(struct run_store *s, const struct run_forward *r, struct error *err);
int run_store_put_wish(struct run_store *s, const struct run_wish *r, struct error *err);
int run_store_drop_instance(struct run_store *s, const char *id, struct error *err);
/* Takes the workload's containers, mirrors, shares and wish along. */
int run_store_drop_workload(struct run_store *s, const char *id, struct error *err);
/* Takes its results of health checks along. */
int run_store_drop_container(struct run_store *s, const char *id, struct error *err);
/* All of a container. */
int run_store_drop_health(struct run_store *s, const char *container, struct error *err);
int run_store_drop_share(struct run_store *s, const char *id, struct error *err);

/* In order of creation (containers: by position). fn returns 0 to go on, or a negative errno that
 * ends the walk. */
int run_store_each_instance(struct run_store *s,
			    int (*fn)(void *data, const struct run_instance *r), void *data,
			    struct error *err);
int run_store_each_workload(struct run_store *s,
			    int (*fn)(void *data, const struct run_workload *r), void *data,
			    struct error *err);
int run_store_each_container(struct run_store *s, const char *workload,
			     int (*fn)(void *data, const struct run_container *r), void *data,
			     struct error *err);
/* At most one. */
int run_store_each_wish(struct run_store *s, const char *workload,
			int (*fn)(void *data, const struct run_wish *r), void *data,
			struct error *err);
/* The oldest first. */
int run_store_each_health(struct run_store *s, const char *container,
			  int (*fn)(void *data, const struct run_health *r), void *data,
			  struct error *err);
int run_store_each_forward(struct run_store *s, int (*fn)(void *data, const struct run_forward *r),
			   void *data, struct error *err);
int run_store_each_mirror(struct run_store *s, const char *workload,
			  int (*fn)(void *data, const struct run_mirror *r), void *data,
			  struct error *err);
int run_store_each_share(struct run_store *s, const char *workload,
			 int (*fn)(void *data, const struct run_share *r), void *data,
			 struct error *err);

#endif
