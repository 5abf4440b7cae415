/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_MODEL_H
#define NACRE_INSTANCE_MODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/memory/map.h"
#include "base/text/id.h"
#include "base/text/parse.h"
#include "base/text/request.h"
#include "instance/nic.h"
#include "instance/peer.h"
#include "loop/loop.h"

/*
 * The nested instances of a node as its daemon sees them, at every depth, and the keeper of the
 * node itself, which is the instance with the empty path. The parent of an instance of depth one is
 * this daemon, which makes it by the provider of its kind; that of a deeper one is the keeper above
 * it, which is asked through its peer.
 *
 * SPAWNING  recorded; its keeper is being made or has not said hello yet. Nothing can be run in it.
 * READY     hello was said; `peer` works. One whose keeper was made ahead (spare.h) begins so:
 *           what is asked of it follows behind hello.
 * STOPPING  told to end. The peer works until the keeper is gone.
 * GONE      ended as it was told to, or its record was dropped; everything of it is cleaned up. Its
 *           name is free again, and it is freed when the loop turns.
 * FAILED    ended by itself, `reason` says why. Holds only its record, until instance_remove(), and
 *           for an instant (`clean_delay`) what the kernel does not let go of yet.
 */
enum instance_state {
	INSTANCE_SPAWNING,
	INSTANCE_READY,
	INSTANCE_STOPPING,
	INSTANCE_GONE,
	INSTANCE_FAILED,
	INSTANCE_STATE_COUNT
};

/* The kind of isolation of an instance (instance/provider.h). */
enum instance_kind {
	INSTANCE_CELL,
	INSTANCE_VM,
	INSTANCE_EC2,
	INSTANCE_GCE,
	INSTANCE_VSPHERE,
	INSTANCE_KIND_COUNT
};

/* What instances of a kind have of the node, and what can be done with them. The table of kinds
 * (model.c) says it of each; only this area and the providers tell one kind from another. */
enum instance_ability {
	/* Descriptors reach its keeper. */
	INSTANCE_PASSES_FDS = 1 << 0,
	/* Its processes and namespaces are of this kernel. */
	INSTANCE_LOCAL_PROCESS = 1 << 1,
	/* What it costs this node is counted in its group here. */
	INSTANCE_LOCAL_CGROUP = 1 << 2,
	/* Root file systems outlive it; else they are disks below the memory of its machine. */
	INSTANCE_KEEPS_ROOTS = 1 << 3,
	/* Directories of the node are mounted in it; else their files are sent, if they are few. */
	INSTANCE_NODE_MOUNTS = 1 << 4,
	/* It can be on the networks of this node. */
	INSTANCE_NODE_NETWORKS = 1 << 5,
	/* A device on a bridge of the node can be put into it. */
	INSTANCE_TAKES_NICS = 1 << 6,
	/* Its containers may have all privilege of its kernel, and its pod may set sysctls. */
	INSTANCE_KERNEL_GRANTED = 1 << 7,
};

#define INSTANCE_KIND_REASON_MAX 192

/* The choice that instances_choose() has made. */
struct instance_choice {
	enum instance_kind kind;
	char reason[INSTANCE_KIND_REASON_MAX]; /* why, in a sentence */
	bool cold; /* of kind vm: it boots, and does not go on from what others go on from */
};

/* The room that a request needs in an instance with a kernel of its own; 0: as the configuration
 * has it. */
struct instance_size {
	uint64_t memory; /* bytes of a limit that is to hold in there */
	unsigned cpus;
	/* Of limits of single containers, where there is none of the whole: as the configuration
	 * has it, or more. */
	uint64_t memory_of_parts;
	unsigned cpus_of_parts;
};

/* The size of its machine; zeroes: it has none of its own, or was made before this was recorded. */
struct instance_machine {
	uint64_t memory; /* bytes of its RAM */
	uint64_t room;   /* the highest limit of memory that fits beside its kernel and keeper */
	unsigned cpus;
};

#define INSTANCE_REASON_MAX 512
#define INSTANCE_KERNEL_MAX 65

struct instances;
struct provider;

struct instance {
	struct list link; /* in order of creation */
	struct instances *all;
	struct instance *parent;   /* NULL: the node, or the parent is gone */
	struct provider *provider; /* of one that this daemon makes itself */
	struct instance_choice choice;
	char kernel[INSTANCE_KERNEL_MAX]; /* release of its own; "" : it has that of its parent */
	char id[ID_SIZE];
	char path[NAME_PATH_MAX + 1];
	/* Its name for the keeper above and the cgroups: the last label of the path that it was
	 * made with, unless an instance that was renamed has that. */
	char handle[NAME_LABEL_MAX + 1];
	char owner[ID_SIZE]; /* the workload that it was made for, or "" */
	enum instance_state state;
	char reason[INSTANCE_REASON_MAX];
	char request[REQUEST_KEY_SIZE]; /* that it was made for, or "" */
	bool host_network;
	bool host_pids, host_ipc, host_uts; /* until it is made */
	int *joins;                         /* likewise: instance_spec; NULL: none */
	struct isolate_ids ids;             /* likewise */
	bool volumes;                  /* of the node are to be had in it: only while it is made */
	struct instance_nic nic;       /* until it is made */
	struct instance_link pod_link; /* likewise */
	char *settings; /* the rest of its request, in the words of the API that was called; NULL:
			   none */
	struct instance_size size; /* as it was asked for */
	struct instance_machine machine;
	char address[46]; /* of its machine, on a network that is none of the node's; "" : none, or
			     not known yet */
	/* isolate/cgroup/limits_words.h, of all that is in it, where its keeper sets them: before
	 * it is READY. NULL: none. */
	char **limits;
	char **sysctls; /* instance_spec; until it is made */
	uint64_t created_at;
	pid_t pid; /* of its keeper, as the daemon sees it; 0: unknown */
	unsigned long long start_time;
	bool synced; /* everything that its keeper had at the connection was told */
	struct peer *peer;
	/* Its keeper and this daemon have no protocol in common: it can be listed, and stopped by
	 * the kernel's means (its cgroup), and that is all; `note` says so. */
	bool mute;
	char note[INSTANCE_REASON_MAX]; /* why its keeper is another build than this daemon, or ""
					 */
	char cgroup[1024];              /* path below the v2 root */

	/* Of a machine in a machine (nested.h): the serial of its disk in the outer one. */
	char tools[INSTANCE_SERIAL_SIZE];
	bool has_tools;
	void (*nested_done)(struct instance *i, const struct error *err);

	/* Private to this area and to its provider. */
	void *own; /* its provider's */
	int dir_fd, pidfd, cgroup_fd;
	int report_fd; /* of the steps of its own keeper's process, until it said hello */
	struct loop_child child;
	struct loop_timer timer;
	struct loop_defer defer;
	struct list waiters;
	unsigned n_asked;        /* calls that name it and the peer above has not answered */
	struct error last_error; /* code 0: none */
	nsec_t clean_delay;      /* > 0 while the cgroup is still being removed */
	bool ahead;              /* its keeper was made before it had a name */
	bool lost;               /* the connection to its keeper is */
	bool ended;              /* its keeper is no more */
	bool told_end;           /* it has ended, last_error says why */
	bool broken;       /* it is being ended since it cannot be used, last_error says why */
	bool unwanted;     /* to be GONE once it is cleaned up */
	bool upgrading;    /* its keeper was asked to go on as this build */
	bool upgrade_over; /* it is not asked again */
	nsec_t upgrade_at, upgrade_delay; /* when it is asked again */
};

/* Of one node, those that are shown as pods included. */
#define INSTANCES_MAX 8192

typedef void (*instance_done_fn)(void *userdata, struct instance *i, const struct error *err);

struct instances_config {
	struct loop *loop;
	int run_fd;         /* the run directory: sockets go below i/ID and node/ */
	int cgroup_fd;      /* the node's base group */
	const char *cgroup; /* its path below the v2 root */
	int top_fd;         /* that root, for instance_spec.cgroup_parent; -1: there is none */
	/* Of each kind; NULL: there is none. That of kind cell is filled in here. */
	struct provider *providers[INSTANCE_KIND_COUNT];
	bool no_cells; /* none is ever made */
	/* Makes the peer for a connection (src/keeper). */
	int (*connect)(void *userdata, int rpc_fd, int fd_fd, struct peer **ret);
	/* Writes or drops the record; called before what it announces. */
	int (*save)(void *userdata, const struct instance *i, struct error *err);
	void (*forget)(void *userdata, const struct instance *i);
	void (*on_state)(void *userdata, struct instance *i);
	void (*on_container)(void *userdata, struct instance *i, const struct container_view *view);
	void (*on_synced)(void *userdata, struct instance *i);
	/* Its peer is freed next: what was opened over it is to be closed. May be NULL. */
	void (*on_close)(void *userdata, struct instance *i);
	/* `note` has changed, or its keeper has been asked to go on as this build. Also the only
	 * sign of one that is mute, instead of on_synced. */
	void (*on_note)(void *userdata, struct instance *i);
	void *userdata;
};

/* All of them: private to this area. */
struct instances {
	struct instances_config config;
	struct list list;
	struct map by_path;
	struct map by_id;
	int keepers_fd;      /* run directory's "i" */
	bool renamed;        /* one of them may have a handle that is not in its path */
	struct spare *spare; /* NULL: keepers are made when they are needed only */
	int exe_fd;
	struct loop_timer upgrade_timer;
	unsigned n_upgrading;
};

const char *instance_state_word(enum instance_state state);
const char *instance_kind_word(enum instance_kind kind);
/* INSTANCE_KIND_COUNT: it is the word of none. */
enum instance_kind instance_kind_of(const char *word);
/* Of one that the node makes itself. */
bool instance_kind_can(enum instance_kind kind, enum instance_ability what);
/* Another kernel's: its own, or that of an instance around it. No cgroup, pid or mount of what runs
 * in it is there on this one. */
bool instance_is_remote(const struct instance *i);
/* Closes the namespaces that it was to have; it has them, or never will. */
void instance_drop_joins(struct instance *i);
/* For an error that tells of its failure: the kind and the field of what it could not be made for.
 * It stays as it is where it ended by itself. Returns its code. */
int instance_blame(const struct instance *i, struct error *err);

/* The keeper of the node itself. */
static inline bool instance_is_node(const struct instance *i)
{
	return i->path[0] == '\0';
}

/* Whether this daemon, not another keeper, is what made its keeper. Its parent may be gone. */
static inline bool instance_is_own(const struct instance *i)
{
	return name_depth(i->path) <= 1;
}

static inline bool instance_has_ended(const struct instance *i)
{
	return i->state == INSTANCE_GONE || i->state == INSTANCE_FAILED;
}

#endif
