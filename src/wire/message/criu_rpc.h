/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CRIU_RPC_H
#define NACRE_WIRE_CRIU_RPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"

/*
 * Requests to criu and its answers, one message of protobuf (proto2) in each packet: requests as
 * bytes, and bytes as answers. Only the fields that are used here; unknown ones of an answer are
 * passed over, as protobuf wants. The numbers are those of criu's own rpc.proto.
 */

#define CRIU_MESSAGE_MAX ((size_t)64 << 10) /* of an answer */

enum criu_type {
	CRIU_DUMP = 1,
	CRIU_RESTORE = 2,
	CRIU_PRE_DUMP = 4,
	CRIU_NOTIFY = 6,
	CRIU_FEATURE_CHECK = 9,
	CRIU_VERSION = 10,
};

enum criu_groups {
	CRIU_GROUPS_IGNORE = 0,
	CRIU_GROUPS_SOFT = 3,
	CRIU_GROUPS_FULL = 4,
	CRIU_GROUPS_STRICT = 5,
};

struct criu_pair {
	const char *key, *value;
};

struct criu_descriptor {
	const char *key;
	int fd; /* as criu has it */
};

/* A false, a NULL, a 0 and an empty list are left out; images_fd and work_fd never. */
struct criu_options {
	int images_fd, work_fd; /* as the caller has them: criu opens them through /proc */
	pid_t pid;
	bool leave_running, ext_unix_sk, tcp_established, evasive_devices, shell_job, file_locks;
	bool notify_scripts, track_mem, auto_dedup, manage_groups, sibling, orphan_terminal;
	int log_level;
	enum criu_groups groups; /* counts with manage_groups */
	uint32_t empty_ns;       /* CLONE_NEW* */
	const char *log_file;    /* a name in the work directory */
	const char *root, *parent_images, *lsm_profile, *lsm_mount_context;
	const char *group_root;
	const struct criu_pair *mounts, *joins; /* joins: of a namespace's kind and path */
	const struct criu_descriptor *inherited;
	const char *const *externals;
	size_t n_mounts, n_joins, n_inherited, n_externals;
};

/* options: NULL for a question without any. mem_track: asks for that feature. 0, or -ENOMEM. */
int criu_request_write(struct buf *b, enum criu_type type, const struct criu_options *options,
		       bool mem_track);
/* The answer to a CRIU_NOTIFY. */
int criu_notified_write(struct buf *b, bool success);

struct criu_answer {
	uint64_t type;
	bool success;
	pid_t restored;      /* of CRIU_RESTORE; 0: not said */
	const char *script;  /* of CRIU_NOTIFY, else NULL */
	pid_t notified;      /* the same; 0: not said */
	const char *message; /* the first error that criu met, or NULL */
	uint64_t number;     /* its errno */
	bool mem_track;
	unsigned version; /* 31701 is 3.17.1; 0: not said */
};

/* The strings are in the arena. ERROR_INVALID for what is no such message. */
int criu_answer_read(struct criu_answer *ret, struct arena *arena, const void *data, size_t len,
		     struct error *err);

#endif
