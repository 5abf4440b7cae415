/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/rest.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/spawn/give.h"

/* In front of the strings: cwd, those of argv, those of env. */
struct rest_head {
	uint32_t n_argv, n_env, n_groups;
	uid_t uid;
	gid_t gid;
	gid_t groups[ISOLATE_GROUPS_MAX];
	bool root_read_only;
	bool streams[3]; /* whether a descriptor follows that of the root */
};

/* Of a child, which has nothing to allocate with. What is not touched costs nothing. */
static struct {
	struct {
		struct rest_head head;
		char strings[ISOLATE_REST_BYTES_MAX];
	} message;
	char *list[ISOLATE_REST_STRINGS_MAX + 2]; /* each of the two ends with NULL */
} rest_room;

static size_t rest_size(char *const *v, size_t *n)
{
	size_t size = 0;

	for (; v && *v; v++, ++*n)
		size += strlen(*v) + 1;
	return size;
}

bool isolate_rest_fits(char *const *argv, char *const *env, const char *cwd, size_t more_strings,
		       size_t more_bytes)
{
	size_t n = more_strings, size = more_bytes + strlen(cwd) + 1;

	size += rest_size(argv, &n);
	size += rest_size(env, &n);
	return size <= ISOLATE_REST_BYTES_MAX && n <= ISOLATE_REST_STRINGS_MAX;
}

/* ---- the spawner's end ---- */

static void rest_add(struct iovec *data, size_t *n, const char *s)
{
	data[(*n)++] = (struct iovec){ .iov_base = (char *)(uintptr_t)s, .iov_len = strlen(s) + 1 };
}

static uint32_t rest_add_list(struct iovec *data, size_t *n, char *const *v)
{
	uint32_t count = 0;

	for (; v[count]; count++)
		rest_add(data, n, v[count]);
	return count;
}

int rest_send(int spawner_fd, const struct isolate_rest *rest)
{
	struct iovec data[ISOLATE_REST_STRINGS_MAX + 2];
	struct give give = { .fds = { rest->root_fd }, .n_fds = 1 };
	struct rest_head head = { .n_groups = (uint32_t)rest->n_groups,
				  .uid = rest->uid,
				  .gid = rest->gid,
				  .root_read_only = rest->root_read_only };
	size_t n = 1;

	if (!isolate_rest_fits(rest->argv, rest->env, rest->cwd, 0, 0) ||
	    rest->n_groups > ISOLATE_GROUPS_MAX)
		return -E2BIG;
	memcpy(head.groups, rest->groups, rest->n_groups * sizeof(head.groups[0]));
	for (size_t i = 0; i < ARRAY_SIZE(rest->stdio); i++) {
		head.streams[i] = rest->stdio[i] >= 0;
		if (head.streams[i])
			give.fds[give.n_fds++] = rest->stdio[i];
	}
	data[0] = (struct iovec){ .iov_base = &head, .iov_len = sizeof(head) };
	rest_add(data, &n, rest->cwd);
	head.n_argv = rest_add_list(data, &n, rest->argv);
	head.n_env = rest_add_list(data, &n, rest->env);
	return give_send(spawner_fd, &give, data, n);
}

/* ---- the child's end ---- */

/* The next string of what is left; NULL where there is none. */
static char *rest_string(char **at, const char *end)
{
	char *s = *at;
	char *nul = memchr(s, '\0', (size_t)(end - s));

	*at = nul ? nul + 1 : s;
	return nul ? s : NULL;
}

static bool rest_read_list(char **list, size_t n, char **at, const char *end)
{
	for (size_t i = 0; i < n; i++) {
		list[i] = rest_string(at, end);
		if (!list[i])
			return false;
	}
	list[n] = NULL;
	return true;
}

static bool rest_read(struct isolate_rest *ret, const char *end)
{
	const struct rest_head *head = &rest_room.message.head;
	char **argv = rest_room.list, **env, *at = rest_room.message.strings;

	if (head->n_argv > ISOLATE_REST_STRINGS_MAX ||
	    head->n_env > ISOLATE_REST_STRINGS_MAX - head->n_argv ||
	    head->n_groups > ISOLATE_GROUPS_MAX)
		return false;
	env = argv + head->n_argv + 1;
	ret->cwd = rest_string(&at, end);
	if (!ret->cwd || !rest_read_list(argv, head->n_argv, &at, end) ||
	    !rest_read_list(env, head->n_env, &at, end))
		return false;
	ret->argv = argv;
	ret->env = env;
	ret->uid = head->uid;
	ret->gid = head->gid;
	ret->n_groups = head->n_groups;
	memcpy(ret->groups, head->groups, sizeof(ret->groups));
	ret->root_read_only = head->root_read_only;
	return true;
}

static bool rest_take_fds(struct isolate_rest *ret, const struct give *give)
{
	size_t n = 1;

	if (give->n_fds < 1)
		return false;
	ret->root_fd = give->fds[0];
	for (size_t i = 0; i < ARRAY_SIZE(ret->stdio); i++) {
		ret->stdio[i] = -1;
		if (!rest_room.message.head.streams[i])
			continue;
		if (n == give->n_fds)
			return false;
		ret->stdio[i] = give->fds[n++];
	}
	return n == give->n_fds;
}

int rest_receive(int child_fd, struct isolate_rest *ret)
{
	struct give give = { .n_fds = 0 };
	int n = give_receive(child_fd, &give, &rest_room.message, sizeof(rest_room.message));

	if (n < 0)
		return n;
	if ((size_t)n < sizeof(struct rest_head) ||
	    !rest_read(ret, (const char *)&rest_room.message + n) || !rest_take_fds(ret, &give))
		return -EBADMSG;
	return 0;
}
