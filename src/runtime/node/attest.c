/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/attest.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "pod/workload/workload.h"
#include "runtime/core/groups.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"

#define ATTEST_FILE_MAX ((size_t)65536)
/* The line of the unified hierarchy. */
#define ATTEST_LINE "0::/"

/* Its path below the root of the hierarchy, without a '/' in front. */
static int attest_group(pid_t pid, char ret[GROUP_PATH_MAX])
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char path[48];
	int r;

	(void)str_printf(path, sizeof(path), "/proc/%d/cgroup", (int)pid);
	r = fd_read_file(AT_FDCWD, path, ATTEST_FILE_MAX, &b);
	if (r < 0)
		return r;
	text = buf_take_str(&b);
	if (!text)
		return -ENOMEM;
	for (char *line = text, *end; line && *line; line = end ? end + 1 : NULL) {
		end = strchr(line, '\n');
		if (end)
			*end = '\0';
		if (str_has_prefix(line, ATTEST_LINE))
			return str_copy(ret, GROUP_PATH_MAX, line + strlen(ATTEST_LINE));
	}
	return -ENOENT;
}

static bool attest_is_in(const char *group, const char *of)
{
	size_t n = strlen(of);

	return n > 0 && strncmp(group, of, n) == 0 && (group[n] == '\0' || group[n] == '/');
}

static const struct pod_container *attest_find(const struct workload_service *s, const char *group)
{
	char of[GROUP_PATH_MAX];
	const struct workload *w;

	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		if (workload_has_ended(w) ||
		    (w->kind != WORKLOAD_POD && w->kind != WORKLOAD_CELL) || !w->instance ||
		    instance_is_remote(w->instance))
			continue;
		for (size_t i = 0; i < w->n_containers; i++)
			if (!pod_container_has_ended(w->containers[i]) &&
			    group_of_container(s, w->containers[i], of) == 0 &&
			    attest_is_in(group, of))
				return w->containers[i];
	}
	return NULL;
}

static bool attest_has_identity(const struct pod_container *c)
{
	struct arena a = ARENA_INIT;
	struct settings_kept kept = { .n_mounts = 0 };
	bool has = false;

	if (c->settings && settings_read(&a, c->settings, &kept, NULL) == 0)
		for (size_t i = 0; i < kept.n_mounts; i++)
			has = has || kept.mounts[i]->identity;
	arena_done(&a);
	return has;
}

int attest_process(const struct workload_service *s, pid_t pid, const struct pod_container **ret,
		   struct error *err)
{
	char group[GROUP_PATH_MAX];
	const struct pod_container *c;
	int r = s->workloads ? attest_group(pid, group) : -ENOENT;

	if (r < 0)
		return error_refuse(err, ERROR_DENIED, "the caller is gone, or has no cgroup");
	c = attest_find(s, group);
	if (!c)
		return error_refuse(err, ERROR_DENIED,
				    "the caller is in no container of this node that runs");
	if (!attest_has_identity(c))
		return error_refuse(err, ERROR_DENIED,
				    "%s of %.200s was not given an identity (nacre run --identity)",
				    c->name, c->workload->path);
	*ret = c;
	return 0;
}
