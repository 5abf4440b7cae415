/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_SPEC_H
#define NACRE_CELL_SPEC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <linux/seccomp.h>
#include <sys/types.h>

#include "base/file/fd.h"
#include "base/log/error.h"
#include "base/text/id.h"
#include "base/time/clock.h"
#include "isolate/plan/plan.h"
#include "isolate/user/cap_name.h"

/*
 * The requests to a keeper, and its answers: the types that the node and its keepers share,
 * whatever the kind of isolation between them.
 */

/* Where the processes of a cell find their network. */
enum cell_network {
	CELL_NETWORK_OWN,      /* a namespace of the cell, with a loopback device */
	CELL_NETWORK_INSTANCE, /* that of the keeper: a pod's cell */
};

#define CELL_LIMITS_FIELD "cell_limits."

struct cell_spec {
	const char *name; /* a label */
	/* Shares net, ipc and uts namespaces and /dev/shm with the keeper; else they are the cell's
	 * own. */
	bool shares_instance;
	/* The hostname of the cell, 1 to 64 bytes. With shares_instance it is that of its keeper
	 * too from then on. NULL or "": the name of the cell; with shares_instance the hostname of
	 * its keeper. */
	const char *hostname;
	/* Its containers are in a user namespace with these ids, which all that is its own belongs
	 * to; with shares_instance that which the keeper's namespaces belong to. count 0: none. */
	struct isolate_ids ids;
	bool host_network; /* the cell's own ipc and uts, but the keeper's net namespace */
	/* Likewise, but the net namespace that container_fds.network is. */
	bool given_network;
	/* isolate/cgroup/limits_words.h, of its group; with its first container. NULL: none. The
	 * field of an error that is about them begins with CELL_LIMITS_FIELD. */
	char *const *limits;
};

/* Of a terminal, in characters; 0: unknown. */
struct terminal_size {
	uint16_t width, height;
};
#define TERMINAL_SIDE_MAX UINT16_MAX

/* How much of a container's output is kept, and what happens where it cannot be written. */
struct log_policy {
	uint64_t max_bytes; /* of a file, then a new one begins; 0: one file without an end */
	uint32_t max_files; /* the one that is written among them */
	bool drop;          /* drop output at once, else the container waits */
	/* So long a log that cannot be written may hold the container up before its output is
	 * dropped; NSEC_NEVER: as long as it takes. Not with `drop`. */
	nsec_t block_for;
};

#define LOG_BYTES_MIN ((uint64_t)64 * 1024)
#define LOG_BYTES_MAX ((uint64_t)1 << 40)
#define LOG_FILES_MAX 1000
#define LOG_BLOCK_MAX (24 * 3600 * NSEC_PER_SEC) /* but for NSEC_NEVER */

#define CONTAINER_GROUPS_MAX 32
#define CONTAINER_MOUNTS_MAX 32

/* A mount in a container's root. */
struct container_mount {
	const char *target; /* mounts_check_target() */
	uint64_t token;     /* see container_fds.mounts */
	/* Of a new tmpfs alone; anything else comes with its attributes. */
	uint64_t size; /* bytes; 0: as the kernel has it */
	unsigned mode; /* of its root; 0: 01777 */
	uid_t uid;     /* likewise */
	gid_t gid;
	bool no_exec;
	/* Of a descriptor: what is mounted on the host later appears in it too; and the other way
	 * round. */
	enum mount_propagation { MOUNT_PRIVATE, MOUNT_FROM_HOST, MOUNT_BOTH_WAYS } propagation;
	/* Not a tmpfs but the volume that the keeper's machine is given under this name; NULL or
	 * "": none. */
	const char *share;
	bool read_only; /* of a share */
	/* Of a share: one of the machine's own, which is empty at first; and that a file is
	 * mounted, not a directory (isolate/mount/scratch_dir.h). */
	bool scratch, one_file;
	/* Of a descriptor: the device that it is of, or those in the directory, may be opened so
	 * (isolate/cgroup/devices.h); 0: what every container may open. */
	unsigned access;
};

/* A block device of the keeper's machine that a container has as its root, under a layer in memory.
 */
struct container_disk {
	const char *serial;   /* that the machine says of it */
	const char *fs;       /* the file system on it: CONTAINER_DISK_FS */
	uint64_t upper_bytes; /* of the layer; 0: half of the memory */
};

#define CONTAINER_DISK_FS "erofs"
#define CONTAINER_SERIAL_MAX 20 /* of virtio */
#define CONTAINER_SHARE_MAX 64

/* A file of such a container, in the place of whatever the disk has there. */
struct container_file {
	const char *path; /* absolute */
	unsigned mode;
	const void *data;
	size_t len;
};

#define CONTAINER_FILES_MAX 32
#define CONTAINER_FILE_MAX ((size_t)65536) /* bytes of one */

/* A volume that is given as the files that are in it (struct peer_ops, put_files): so many beside
 * its directory, with so many bytes. */
#define VOLUME_FILES_MAX ((size_t)256)
#define VOLUME_BYTES_MAX ((uint64_t)1 << 20)

/* The descriptors of a container: -1 for none. A function that takes them over leaves -1. */
struct container_fds {
	int rootfs;  /* detached mount; of a CONTAINER_VISITOR its mount namespace */
	int log;     /* NAME.log, to append CRI log lines to */
	int log_dir; /* detached mount of the directory that it is in; without it nothing rotates */
	int network; /* net namespace of a cell with cell_spec.given_network */
	/* For each of container_spec.mounts a detached mount, or -1: a new tmpfs. */
	int mounts[CONTAINER_MOUNTS_MAX];
	size_t n_mounts;
};

#define CONTAINER_FDS_NONE                                                                         \
	{                                                                                          \
		.rootfs = -1, .log = -1, .log_dir = -1, .network = -1                              \
	}

static inline void container_fds_close(struct container_fds *fds)
{
	fds->rootfs = fd_close(fds->rootfs);
	fds->log = fd_close(fds->log);
	fds->log_dir = fd_close(fds->log_dir);
	fds->network = fd_close(fds->network);
	for (size_t i = 0; i < fds->n_mounts; i++)
		(void)fd_close(fds->mounts[i]);
	fds->n_mounts = 0;
}

static inline struct container_fds container_fds_take(struct container_fds *fds)
{
	struct container_fds taken = *fds;

	*fds = (struct container_fds)CONTAINER_FDS_NONE;
	return taken;
}

enum container_kind {
	CONTAINER_IMAGE,   /* walled off, on a root file system from an image */
	CONTAINER_PROCESS, /* a plain process of the keeper's system (RunExecutable) */
	/* A plain process in the keeper's namespaces, on a tree that its keeper does not have: that
	 * of a mount namespace, which comes in the place of a root file system. */
	CONTAINER_VISITOR,
};
#define CONTAINER_KIND_MAX CONTAINER_VISITOR

/* The processes that a container sees. */
enum container_pids {
	CONTAINER_PIDS_OWN,   /* its own; its program is number 1 */
	CONTAINER_PIDS_LAYER, /* all that its keeper sees: of the pod, or of the host */
	CONTAINER_PIDS_OTHER, /* those of a container that runs beside it, among them its own */
	CONTAINER_PIDS_COUNT
};

/* The security settings of a container from an image that differ from the default; zeroes: none. */
struct container_security {
	bool has_caps;   /* `caps` are its capabilities, in place of isolate_caps_default */
	uint64_t caps;   /* a bit for each number: bounding, and of root permitted and effective */
	bool may_gain;   /* set-user-ID programs and capabilities of files give what they promise */
	bool unfiltered; /* no filter of ours over its system calls */
	bool own_filter; /* container_spec.filter in the place of ours */
	int oom_score_adj; /* -1000 to 1000; what the kernel does not let it have is as near as can
			      be */
	/* Supplementary groups beside those that its /etc/group has for its user, or (exact) in
	 * their place; its primary group is always among them. */
	gid_t groups[CONTAINER_GROUPS_MAX];
	size_t n_groups;
	bool groups_exact;
	/* Over those that every container has; of execs in it too. */
	struct isolate_rlimit rlimits[ISOLATE_RLIMITS_MAX];
	size_t n_rlimits;
	/* Of /proc and /sys is hidden and read-only what container_spec.masks says, and nothing
	 * else. */
	bool own_masks;
	bool writable_sys;    /* /sys can be written to, and the groups in it */
	bool writable_groups; /* its own groups can; its limits cannot be lifted by that */
	bool all_devices;     /* of the host may be opened and made */
	enum container_pids pids;
	char pids_of[ID_SIZE]; /* the id of the container, of the same cell */
};

static inline bool container_security_is_set(const struct container_security *s)
{
	return s->has_caps || s->may_gain || s->oom_score_adj || s->unfiltered || s->own_filter ||
	       s->n_groups > 0 || s->groups_exact || s->n_rlimits > 0 || s->own_masks ||
	       s->writable_sys || s->writable_groups || s->all_devices || s->pids;
}

/* Whether it is just Kubernetes' baseline, which most containers have. */
static inline bool container_security_is_baseline(const struct container_security *s)
{
	struct container_security rest = *s;

	rest.has_caps = false;
	rest.may_gain = false;
	return s->has_caps && s->caps == cap_baseline && s->may_gain &&
	       !container_security_is_set(&rest);
}

#define CONTAINER_MASKS_MAX 256

/* Absolute paths in a container's tree; NULL: none. */
struct container_masks {
	char *const *hidden, *const *read_only;
};

/* A program of classic BPF over system calls, of struct sock_filter; the kernel checks it. */
struct container_filter {
	const void *insns; /* NULL: none */
	size_t len;        /* bytes */
	unsigned flags;    /* SECCOMP_FILTER_FLAG_*, of CONTAINER_FILTER_FLAGS */
};

#define CONTAINER_FILTER_MAX (BPF_MAXINSNS * sizeof(struct sock_filter))
/* LOG and SPEC_ALLOW; the others need a second thread, or somebody who listens. */
#define CONTAINER_FILTER_FLAGS (SECCOMP_FILTER_FLAG_LOG | SECCOMP_FILTER_FLAG_SPEC_ALLOW)

struct container_spec {
	char id[ID_SIZE];
	const char *name; /* a label, unique in its cell */
	enum container_kind kind;
	char *const *argv; /* not empty */
	char *const *env;  /* complete; PATH and HOME are added where they are missing */
	const char *cwd;   /* absolute, or "" for "/" */
	const char *user;  /* as isolate_user_find(); CONTAINER_PROCESS: "uid" (the gid
			      is the same number) or "uid:gid", numeric only */
	bool stdin_open;   /* keep a pipe to stdin; else it reads /dev/null */
	/* A terminal as stdin, stdout and stderr; stdin_open then says whether it can be typed to.
	 * Only for CONTAINER_IMAGE. */
	bool tty;
	struct terminal_size terminal;
	/* Output before the first keeper_attach() is kept: the container blocks rather than have
	 * the ring overflow, and its end is not told. Ends with that call, or ATTACH_PATIENCE after
	 * the start. */
	bool hold_output;
	/* Descriptors as tokens of the channel beside the connection; 0: none. */
	uint64_t rootfs_token, log_token, log_dir_token; /* see struct container_fds */
	struct log_policy log;
	/* Only for CONTAINER_IMAGE, like read_only_root. As many as container_fds has. */
	const struct container_mount *mounts;
	size_t n_mounts;
	bool read_only_root;
	char *const *limits; /* isolate/cgroup/limits_words.h; NULL: none */
	/* Digest of the image whose root file system it has, which nobody has written to; "" or
	 * NULL: unknown. */
	const char *image;
	/* In place of the descriptor of a root file system, for a keeper that no descriptor can be
	 * passed to; NULL: none. */
	const struct container_disk *root_disk;
	const struct container_file *files; /* with root_disk */
	size_t n_files;
	/* The keeper keeps its output until it is taken (struct peer_log), in place of a log that
	 * it writes. The container has not ended before that. */
	bool keep_log;
	struct container_security security; /* only for CONTAINER_IMAGE */
	struct container_filter filter;     /* with security.own_filter */
	struct container_masks masks;       /* with security.own_masks */
	bool late; /* its descriptors, but those of its mounts, come later (keeper_supply()) */
	/* CONTAINER_VISITOR: in a copy of that mount namespace, with a /proc of the keeper's pid
	 * namespace. */
	bool new_proc;
};

/*
 * The life of a container in its keeper.
 *
 *   STARTING  its descriptors are awaited; or cloned, its steps run. Ends in RUNNING or FAILED.
 *   RUNNING   the program was executed. Signals, execs and stdin are possible.
 *   DRAINING  the process has ended; its output is still being written to the log. No execs.
 *   EXITED    ended, and every byte of its output is in the log, or counted in log_lost. Holds
 *             only its record.
 *   FAILED    it never ran: `reason` says why, exit_code what a shell would say.
 *
 * EXITED and FAILED last until the container is removed.
 */
enum container_state {
	CONTAINER_STARTING,
	CONTAINER_RUNNING,
	CONTAINER_DRAINING,
	CONTAINER_EXITED,
	CONTAINER_FAILED,
	CONTAINER_STATE_COUNT
};

#define CONTAINER_REASON_MAX 512
/* The reason of one that was killed so, beside signal 9; programs know its first word. */
#define CONTAINER_OUT_OF_MEMORY "OOMKilled: the kernel killed it for want of memory"

/* The reason of a program beside that of a container whose time was over. */
#define KEEPER_EXEC_TIME_OVER "killed, since its time was over"

struct container_status {
	enum container_state state;
	int64_t pid;                      /* in the keeper's pid namespace; 0 before and after */
	int exit_code;                    /* of the program; 128 + n where signal n ended it */
	int signal;                       /* that ended it, or 0 */
	uint64_t started_at, finished_at; /* wall clock, nanoseconds; 0: not yet */
	uint64_t log_lost;                /* bytes of output that are not in the log (log_policy) */
	/* Of the groups of its cell and its own, where these have numbers
	 * (isolate/cgroup/cgroup_name.h); 0: they have the names. */
	unsigned cell_group, group;
	char reason[CONTAINER_REASON_MAX];
};

/* A program beside that of a running container (keeper_exec()). */
struct keeper_exec_spec {
	const char *id;    /* of the container */
	char *const *argv; /* not empty */
	char *const *env;  /* over the container's; may be NULL */
	const char *cwd;   /* "" : the container's */
	const char *user;  /* "" : the container's */
	nsec_t timeout;    /* NSEC_NEVER: none */
	bool stdin_open;   /* a pipe to stdin; else it reads /dev/null */
	bool tty;          /* a terminal of the container's as all three; its output is stream 1 */
	struct terminal_size terminal;
};

struct keeper_exec_ops {
	/* stream 1 or 2; at most 64 KiB a call. */
	void (*on_output)(void *userdata, int stream, const void *data, size_t len);
	/* Last: both streams are at their end and the process is reaped. The exec is gone
	 * afterwards. */
	void (*on_exit)(void *userdata, int exit_code, int sig, const char *reason);
	/* The program was executed; not where that failed, or it has ended already (on_exit). May
	 * be NULL. */
	void (*on_start)(void *userdata);
};

struct keeper_attach_spec {
	const char *id;
	bool stdin_open; /* keeper_attach_write() will be called */
	bool replay;     /* first what the ring still has */
	struct terminal_size terminal;
};

struct keeper_attach_ops {
	/* stream 1 or 2; at most 16 KiB a call. */
	void (*on_output)(void *userdata, int stream, const void *data, size_t len);
	/* So many bytes are missing here. */
	void (*on_skipped)(void *userdata, uint64_t n);
	/* Last, one of the two: it has ended, and all of its output was told; or it is told no
	 * more. */
	void (*on_exit)(void *userdata, const struct container_status *status);
	void (*on_error)(void *userdata, const struct error *err);
};

/* The reader of a log that is kept (container_spec.keep_log). */
struct keeper_log_ops {
	/* Whole lines of wire/format/crilog.h, at most KEEPER_LOG_MAX bytes; at: the first one's
	 * place. */
	void (*on_lines)(void *userdata, uint64_t at, const void *lines, size_t len);
	/* Nothing follows behind that place. */
	void (*on_eof)(void *userdata, uint64_t at);
	/* Last: all was taken and the container has ended (err NULL), or why it is told no more. */
	void (*on_end)(void *userdata, const struct error *err);
};

#define KEEPER_LOG_MAX ((size_t)65536)

/* How long who takes nothing may hold a container's output, or its end, back. */
#define ATTACH_PATIENCE (10 * NSEC_PER_SEC)

/* Limits; past one of them the answer is ERROR_INVALID with the field. */
#define SPEC_BYTES_MAX ((size_t)1 << 20) /* argv and env together, as execve(2) counts them */
#define SPEC_ENV_MAX 2048                /* entries */
#define SPEC_PATH_MAX 4095               /* cwd */
#define SPEC_USER_MAX 255
#define SPEC_IMAGE_MAX 127
/* ERROR_EXHAUSTED. */
#define CONTAINER_EXECS_MAX 64
#define CONTAINER_STDIN_MAX ((size_t)1 << 20) /* bytes of one write */
#define CONTAINER_ATTACH_MAX 64

#endif
