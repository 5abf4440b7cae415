/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_PEER_H
#define NACRE_INSTANCE_PEER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "cell/layer/keeper.h"
#include "cell/spec.h"
#include "isolate/cgroup/process.h"
#include "isolate/cgroup/usage.h"

/*
 * A keeper as its parent sees it, whatever kind of wall and how many hops stand between: what floor
 * 5 asks, answered by src/keeper over gRPC. All calls are asynchronous; a completion never comes
 * before the call has returned, and comes exactly once, with err NULL for success, also when the
 * connection is lost (ERROR_UNAVAILABLE). peer->ops->free() ends what is open without calling back;
 * a call that was passed on undecoded (keeper/server/passing.h) is none of the peer's, and goes on
 * to its end.
 */

struct peer;
struct tree_list;

/* The size of the serial that a keeper finds a disk by. */
#define INSTANCE_SERIAL_SIZE 21

typedef void (*peer_done_fn)(void *userdata, const struct error *err);
/* view NULL: err says why (it never came to the keeper). A program that could not be started is a
 * view in state CONTAINER_FAILED. */
typedef void (*peer_started_fn)(void *userdata, const struct container_view *view,
				const struct error *err);

/* Events that a peer tells on its own. */
struct peer_events {
	/* A container's state. Before on_synced: what was there before. */
	void (*on_container)(void *userdata, const struct container_view *view);
	/* A nested instance has ended without being told to. */
	void (*on_child_end)(void *userdata, const char *name, const char *reason);
	void (*on_synced)(void *userdata);
	/* The connection (or the watch) is lost; the last event. */
	void (*on_lost)(void *userdata, const struct error *err);
	/* May be NULL. Of a peer that was open: it is lost, and opened again within a bound. What
	 * was asked fails, what is asked waits. Followed by on_back (then what there is is told
	 * again), or on_lost (ERROR_PRECONDITION: the keeper is another program now, without a
	 * common protocol). */
	void (*on_gap)(void *userdata, const struct error *err);
	void (*on_back)(void *userdata);
	/* Connects to both sockets again; only for a peer of one's own keeper, where it may be NULL
	 * for one that is not to be opened again. */
	int (*connect)(void *userdata, int *ret_rpc_fd, int *ret_fd_fd, struct error *err);
};

/* The answer to hello. */
struct peer_hello {
	char build[65]; /* base/process/build_id.h; "" : unknown */
	char version[32];
	bool can_upgrade;
};

/*
 * The log that a keeper keeps of a container (container_spec.keep_log): lines of
 * wire/format/crilog.h, at places that are bytes of output. There is one reader of a log, the last
 * one.
 */
struct peer_log;

struct peer_log_ops {
	/* Whole lines, the first of which stands at `at`. */
	void (*on_lines)(void *userdata, uint64_t at, const uint8_t *lines, size_t len);
	/* Nothing will be written behind `at`. */
	void (*on_eof)(void *userdata, uint64_t at);
	/* Last, and the peer_log is gone: all of it was taken (err NULL), or the call was lost
	 * (ERROR_UNAVAILABLE: it can be opened again), or was refused. */
	void (*on_end)(void *userdata, const struct error *err);
};

/* The program that a keeper is to go on as. */
struct peer_upgrade {
	int exe_fd; /* instance_open_exe(); not taken over */
	const char *build;
};

/* The usage of a group of a keeper's layer, as the keeper tells it; with neither id nor cell: of
 * the layer itself. */
struct peer_group {
	const char *id, *cell;
	struct usage usage;
};

#define PEER_LOOK_TIMEOUT (5 * NSEC_PER_SEC)
#define PEER_FILES_TIMEOUT (30 * NSEC_PER_SEC)
/* Of one piece, over a network that may be slow. */
#define PEER_DISK_TIMEOUT (60 * NSEC_PER_SEC)
#define PEER_PIECE_MAX ((size_t)1 << 20)

/* Of a disk; all of it is read before put_disk() returns. */
struct peer_piece {
	const char *serial;
	uint64_t offset, size; /* size: of the whole */
	const uint8_t *data;
	size_t len;
};

/* A network device of a machine, for the network of its pod. */
struct peer_link {
	const uint8_t *device; /* six bytes: the MAC that it begins with */
	bool gone;             /* it is to be what it was, and only `name` says more */
	const char *name;      /* "eth1" */
	const uint8_t *mac;    /* that it gets */
	uint32_t mtu;          /* likewise */
	const char *settings;  /* lines (net/port/setup.h), in the place of none that are there */
};
#define PEER_GROUPS_MAX ((size_t)2048)
#define PEER_PROCESSES_MAX ((size_t)10000)

/* A process of its layer, without a pid and a parent. id: of the container; "": the keeper. */
struct peer_process {
	const char *id;
	struct process process;
};

struct peer_machine {
	const char *name, *tools;
	uint64_t memory;
	unsigned cpus;
};

/* kernel: its release. */
typedef void (*peer_machine_fn)(void *userdata, const char *kernel, const struct error *err);

/* err: why nothing is told. All lasts until the function returns. */
typedef void (*peer_usage_fn)(void *userdata, const struct peer_group *groups, size_t n,
			      const struct error *err);
typedef void (*peer_processes_fn)(void *userdata, const struct peer_process *processes, size_t n,
				  bool truncated, const struct error *err);

/* The namespaces of its keeper that a nested one has, in place of its own. */
struct peer_shares {
	bool network, pids, ipc, uts;
};

struct peer_ops {
	/* Before open(): the path to say in hello, for a keeper that was made before it had one. It
	 * is this program, so that its answer need not be waited for: what is asked at once follows
	 * behind hello. 0 or -ENOMEM. */
	int (*name)(struct peer *p, const char *path);
	/* Says hello, then watches. done: hello was answered (pid as the keeper sees itself). */
	void (*open)(struct peer *p, const struct peer_events *events, void *userdata,
		     peer_done_fn done);
	/* Descriptors are taken over; tokens in spec are ignored and drawn here. */
	void (*start)(struct peer *p, const struct cell_spec *cell,
		      const struct container_spec *spec, struct container_fds *fds,
		      peer_started_fn done, void *userdata);
	/* Whether a start may be asked for before its descriptors are there (container_spec.late):
	 * those of its mounts come with it, the others by give(), which takes them over. Or else
	 * withdraw(): `done` is not called then. Neither does anything where it was answered. */
	bool (*late)(struct peer *p);
	void (*give)(struct peer *p, const char *id, struct container_fds *fds);
	void (*withdraw)(struct peer *p, const char *id);
	void (*signal)(struct peer *p, const char *id, int sig, bool all, peer_done_fn done,
		       void *userdata);
	/* The log of a container goes on in this file, which is taken over; done when nothing more
	 * is written to the old one. ERROR_PRECONDITION where it does not run, has none, or the
	 * keeper cannot; ERROR_ABORTED: a change is under way. */
	void (*change_log)(struct peer *p, const char *id, int fd, peer_done_fn done,
			   void *userdata);
	void (*remove)(struct peer *p, const char *id, peer_done_fn done, void *userdata);
	void (*remove_cell)(struct peer *p, const char *cell, peer_done_fn done, void *userdata);
	/* isolate/cgroup/limits_words.h, of the group of a container, of a cell, or with "" for
	 * both of the whole layer. What a keeper says of its groups, and which processes it sees:
	 * within PEER_LOOK_TIMEOUT. All three only for one whose kernel is another;
	 * ERROR_PRECONDITION where it cannot. */
	void (*limit)(struct peer *p, const char *id, const char *cell, char *const *words,
		      peer_done_fn done, void *userdata);
	/* "NAME=VALUE" each: sysctls of its namespaces, under the same conditions. */
	void (*set_sysctls)(struct peer *p, char *const *sysctls, peer_done_fn done,
			    void *userdata);
	void (*usage)(struct peer *p, peer_usage_fn done, void *userdata);
	void (*processes)(struct peer *p, peer_processes_fn done, void *userdata);
	/* Whether descriptors can be passed to it. Where they cannot, start() takes none
	 * (ERROR_PRECONDITION): root file systems come from disks, logs are kept and taken. */
	bool (*has_channel)(struct peer *p);
	/* Whether a volume can be given to it as the files that are in it; then put_files() gives
	 * all of them anew, and who reads there finds all old or all new ones. The list is not
	 * kept. ERROR_DEADLINE past PEER_FILES_TIMEOUT, whatever became of it. */
	bool (*takes_files)(struct peer *p);
	void (*put_files)(struct peer *p, const char *volume, const struct tree_list *files,
			  peer_done_fn done, void *userdata);
	/* Whether it replaces the names of pods in /etc/hosts of a container that runs; then
	 * put_hosts() has it do that (isolate/mount/hosts_block.h). ERROR_PRECONDITION where that
	 * container's cannot be replaced. */
	bool (*takes_hosts)(struct peer *p);
	void (*put_hosts)(struct peer *p, const char *id, const char *block, peer_done_fn done,
			  void *userdata);
	/* The configuration of a network device of the machine that it is in. ERROR_DEADLINE past
	 * PEER_FILES_TIMEOUT, whatever became of it; ERROR_UNSUPPORTED: it is older than that. */
	void (*put_link)(struct peer *p, const struct peer_link *link, peer_done_fn done,
			 void *userdata);
	/* A piece of a disk for the machine that it is in (1 MiB at most), in their order from the
	 * first on: with its last byte it is there by this serial. ERROR_EXHAUSTED without room,
	 * ERROR_PRECONDITION where it cannot take any, ERROR_EXISTS where it has that one. */
	void (*put_disk)(struct peer *p, const struct peer_piece *piece, peer_done_fn done,
			 void *userdata);
	/* Reads a kept log from a place on; what is before it is let go of. No op is called before
	 * this has returned. 0 or -ENOMEM. */
	int (*log_open)(struct peer *p, const char *id, uint64_t from,
			const struct peer_log_ops *ops, void *userdata, struct peer_log **ret);
	/* Everything before that place is safe with the reader. 0, or -ENOMEM: to be closed. */
	int (*log_take)(struct peer_log *log, uint64_t at);
	void (*log_pause)(struct peer_log *log, bool paused);
	/* No op is called any more. */
	void (*log_close)(struct peer_log *log);
	/* A nested instance below this one: done when it answers; then a peer for it works. */
	void (*spawn)(struct peer *p, const char *name, const struct peer_shares *shares,
		      void (*done)(void *userdata, int64_t pid, const struct error *err),
		      void *userdata);
	/* The same of one with a kernel of its own, which must be that of this one too: `tools` is
	 * the serial of the disk with what that takes, memory is in bytes. */
	void (*spawn_machine)(struct peer *p, const struct peer_machine *machine,
			      peer_machine_fn done, void *userdata);
	void (*end)(struct peer *p, const char *name, peer_done_fn done, void *userdata);
	void (*shutdown)(struct peer *p, peer_done_fn done, void *userdata);
	/* Whether the keeper answers: ERROR_DEADLINE where it has not within that time. */
	void (*ping)(struct peer *p, nsec_t within, peer_done_fn done, void *userdata);
	/* Of the last hello that was answered. Where hello is refused for its protocol
	 * (ERROR_PRECONDITION), nothing reaches the keeper: every call is answered with that. */
	const struct peer_hello *(*hello)(struct peer *p);
	/*
	 * The keeper goes on as another program, in place: done (err NULL) when that has said
	 * hello. The peer, and those below it, live on; their calls wait meanwhile, and what there
	 * is is told again. An err says why the keeper goes on as it was. ERROR_ABORTED, also at
	 * once (then done is not called): something is under way, to be asked again.
	 */
	int (*upgrade)(struct peer *p, const struct peer_upgrade *how, peer_done_fn done,
		       void *userdata, struct error *err);
	/* A peer for the instance `name` below this one, over the same connection. */
	int (*child)(struct peer *p, const char *name, struct peer **ret);
	struct peer *(*free)(struct peer *p);
};

struct peer {
	const struct peer_ops *ops;
};

#endif
