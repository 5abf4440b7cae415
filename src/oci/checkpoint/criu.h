/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_CRIU_H
#define NACRE_OCI_CRIU_H

#include <limits.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/plan/plan.h"
#include "wire/message/criu_rpc.h"

/*
 * The program criu, which writes processes down and makes them again: found in PATH, started anew
 * for each question (`criu swrk`), and spoken to over a socket that nobody else has. It runs with
 * the caller's privilege and variables, and it is blocking: the runtime has nothing else to do.
 */

struct criu {
	char path[PATH_MAX];
	char **env;
	unsigned version; /* 31701 is 3.17.1 */
};

#define CRIU_INIT                                                                                  \
	{                                                                                          \
		.version = 0                                                                       \
	}

/* External network and pid namespaces; and this one: labels other than those in the images. */
#define CRIU_VERSION_MIN 31500
#define CRIU_VERSION_LSM 31600

/* Whether it is there: 0 with its path, or -ENOENT. */
int criu_find(struct criu *c);
/* Finds it and asks for its version. ERROR_PRECONDITION where there is none, or one that is older
 * than CRIU_VERSION_MIN. */
int criu_open(struct criu *c, struct error *err);
void criu_done(struct criu *c);

/* ERROR_PRECONDITION where it, or the kernel, cannot tell which pages of memory have changed. */
int criu_need_mem_track(const struct criu *c, struct error *err);

struct criu_job {
	enum criu_type type;
	const struct criu_options *options;
	const char *what; /* "criu could not WHAT, see LOG: ..." */
	const char *log;  /* the path of its log file */
	/* From 4 on in criu; 3 is its socket. At most ISOLATE_KEEP_FDS_MAX - 1. */
	const int *keep_fds;
	size_t n_keep_fds;
	bool has_streams; /* 0, 1 and 2 are the caller's; else nothing, and the caller's errors */
	int group_fd;     /* criu's cgroup; -1: the caller's */
	/* Gets criu's notifications, each with a descriptor that is closed after the call, or -1.
	 * An error ends the work. */
	int (*notify)(void *data, const struct criu_answer *answer, int fd, struct error *err);
	void *data;
};

/* Does it. 0 once criu has said that all went well and has ended; *ret_restored (or NULL) is the
 * process that was made. */
int criu_run(const struct criu *c, const struct criu_job *job, pid_t *ret_restored,
	     struct error *err);

#endif
