/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_REST_H
#define NACRE_ISOLATE_REST_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "isolate/plan/plan.h"

/*
 * The members that a plan with rest_later leaves open, and that come in one message when they are
 * known: the program with its user and streams, and the root. So a process can be cloned before
 * anybody knows what for, and has all of a container but this.
 *
 * The message is not a stranger's: the child reads what its own spawner wrote. It has bounds all
 * the same.
 */
#define ISOLATE_REST_BYTES_MAX (32 << 10) /* of all strings, each with its NUL */
#define ISOLATE_REST_STRINGS_MAX 500      /* of argv and env together */

struct isolate_rest {
	/* As the members of struct isolate_plan with these names. */
	char *const *argv;
	char *const *env;
	const char *cwd;
	uid_t uid;
	gid_t gid;
	gid_t groups[ISOLATE_GROUPS_MAX];
	size_t n_groups;
	bool root_read_only;
	int root_fd;
	int stdio[3];
};

/* Whether these strings fit into a message, with some more. env may be NULL. */
bool isolate_rest_fits(char *const *argv, char *const *env, const char *cwd, size_t more_strings,
		       size_t more_bytes);

/* The two ends, private to this area. What does not fit is -E2BIG; else as give_send(). */
int rest_send(int spawner_fd, const struct isolate_rest *rest);
/*
 * Waits for it. What it points to is in a room of this process that there is once; the descriptors
 * are the caller's, -1 for a stream that was not given. As give_receive().
 */
int rest_receive(int child_fd, struct isolate_rest *ret);

#endif
