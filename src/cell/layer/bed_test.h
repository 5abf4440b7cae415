/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CELL_BED_TEST_H
#define NACRE_CELL_BED_TEST_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/buf.h"
#include "cell/layer/keeper.h"
#include "loop/loop.h"
#include "unit.h"

/*
 * Test bed of the keeper's tests: a keeper in namespaces of the test's own, a cgroup, and a root
 * file system made of the host's static busybox. A process has one bed at a time. Nothing of it is
 * in the product.
 */

struct bed {
	struct loop *loop;
	struct keeper *keeper;
	int base_fd;   /* a tmpfs: root/ shm/ and log files */
	int cgroup_fd; /* the layer's */
	int proc_fd;
	int shm_fd;
	int n_ids;
	/* The last status that was told of each container, by the number of its id. */
	struct container_status last[2048];
	bool removed[2048];
	int n_started;             /* calls of the completion of keeper_start() */
	struct container_fds late; /* of the last start with `late`: the test's to supply */
};

/* Once a process: false where the machine cannot do it (no root, no cgroup v2, no static busybox).
 */
bool bed_prepare(void);

void bed_open(struct bed *b);
/* Frees the keeper and checks that its cgroup is left empty. */
void bed_close(struct bed *b);

/* The part of a container's specification that a test sets; the rest has defaults: cell "c", kind
 * image, /bin/sh -c SCRIPT. */
struct bed_start {
	const char *cell, *name, *script, *user, *cwd;
	char *const *argv; /* instead of script */
	char *const *env;
	const char *hostname;
	bool shares, host_network, process, stdin_open, no_log, tty, hold_output, keep_log, late;
	const char *image; /* a digest */
	struct terminal_size terminal;
	int log_fd;            /* 0: a new file */
	int network_fd;        /* which is taken over; 0: none */
	int log_dir_fd;        /* 0: none */
	struct log_policy log; /* block_for 0: for ever */
};

/* The number of the id, or a negative errno. */
int bed_start(struct bed *b, const struct bed_start *s, struct error *err);
const char *bed_id(int n);

/* Turns the loop until the condition holds, or its patience (unit.h) is at its end. */
#define BED_UNTIL(b, cond)                                                                         \
	for (time_t since_ = unit_now(); !(cond) && unit_waits(since_);)                           \
	bed_turn(b)
void bed_turn(struct bed *b);
/* Waits for EXITED or FAILED and returns the status. */
const struct container_status *bed_wait(struct bed *b, int n);
void bed_wait_running(struct bed *b, int n);

/* The output of a stream in a container's log file, decoded. */
void bed_log(struct bed *b, int n, int stream, struct buf *ret);
/* The same, as a string in memory of the bed that lasts until the next call. */
const char *bed_log_text(struct bed *b, int n, int stream);

/* Decodes lines of a log into *ret. The number of bytes of output that they stand for. */
uint64_t bed_decode(const void *lines, size_t len, struct buf *ret);

/* A tmpfs of 64 KiB on a directory of base_fd; for the life of the process. */
int bed_small_tmpfs(struct bed *b, const char *name);
#define BED_GROUP_SIZE 256
/* The path of the group of a cell, or of a container in it (NULL: of the cell), below cgroup_fd. */
void bed_group(struct bed *b, const char *cell, const char *container, char ret[BED_GROUP_SIZE]);
/* Whether the layer has a group of that name: "cell.NAME" or "cell.NAME/CONTAINER". */
bool bed_has_cgroup(struct bed *b, const char *name);
/* The number of processes right in a group; 0 where there is none. */
size_t bed_procs(struct bed *b, const char *group);
int bed_count_fds(void);
int bed_count_mounts(void);

/* UNIT_MAIN() that skips all where bed_prepare() says so. */
#define BED_MAIN(...)                                                                              \
	int main(void)                                                                             \
	{                                                                                          \
		static const struct unit_test tests[] = { __VA_ARGS__ };                           \
                                                                                                   \
		if (!bed_prepare()) {                                                              \
			printf("1..0 # SKIP needs root, cgroup v2 and a static busybox\n");        \
			return EXIT_SUCCESS;                                                       \
		}                                                                                  \
		return unit_run(tests, ARRAY_SIZE(tests));                                         \
	}

#endif
