/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/copy_call.h"

#include <errno.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/cgroup/process.h"
#include "keeper/message/copy.h"
#include "keeper/server/passing.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/groups.h"
#include "runtime/core/target.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"

#define METHOD(name) "/nacre.instance.v1.InstanceService/" name

static int copy_check(const struct workload_service *s, const struct pod_container *c,
		      const char *path, struct error *err)
{
	int r = copies_check(&s->copies, path, err);

	if (r < 0)
		return r;
	if (c->workload->kind == WORKLOAD_EXECUTABLE)
		return error_field(err, ERROR_INVALID, "target",
				   "%s is an executable, it has the files of the node",
				   c->workload->path);
	return target_refuse_machine(c->workload, "nothing in it can be reached", err);
}

/* Only its keeper reaches the files of a container with another kernel. */
static int copy_check_remote(const struct pod_container *c, struct error *err)
{
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s/%s is %s, not running: the files of a container in a "
				    "machine cannot be reached then",
				    c->workload->path, c->name, pod_container_state_word(c));
	if (!workload_peer(c->workload))
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone",
				    c->workload->path);
	return 0;
}

/* It has no instance any more, or a disk in the place of a root that was made here. */
static bool copy_is_remote(const struct pod_container *c)
{
	return c->workload->instance ? instance_is_remote(c->workload->instance)
				     : *c->serial != '\0';
}

/* ---- the root ---- */

static int copy_open_running(const struct workload_service *s, struct pod_container *c,
			     struct error *err)
{
	char group[GROUP_PATH_MAX], path[GROUP_PATH_MAX + 1];
	pid_t pid = pod_container_pid(c);
	int fd = -ESRCH;

	if (group_of_container(s, c, group) < 0)
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone",
				    c->workload->path);
	if (pid > 0 && str_printf(path, sizeof(path), "/%s", group) >= 0)
		fd = process_open_root(pid, path);
	if (fd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "its container has ended meanwhile");
	return fd;
}

/* Whether the path is that of a mount, or leads below it, as far as its words tell. */
static bool copy_is_below(const char *path, const char *target)
{
	for (;;) {
		size_t n, m;

		target += strspn(target, "/");
		path += strspn(path, "/");
		while (path[0] == '.' && (path[1] == '/' || !path[1])) {
			path++;
			path += strspn(path, "/");
		}
		if (!*target)
			return true;
		n = strcspn(target, "/");
		m = strcspn(path, "/");
		if (n != m || memcmp(target, path, n) != 0)
			return false;
		target += n;
		path += m;
	}
}

/* What was mounted in it is not there any more: what lies below is not what anybody means. */
static int copy_check_mounts(struct arena *a, const struct pod_container *c, const char *path,
			     struct error *err)
{
	Nacre__V1__Container shown = NACRE__V1__CONTAINER__INIT;

	settings_show(a, &shown, c->settings);
	for (size_t i = 0; i < shown.n_mounts; i++)
		if (copy_is_below(path, shown.mounts[i]->target))
			return error_field(err, ERROR_PRECONDITION, "path",
					   "%.200s is on the volume at %.200s, which is not "
					   "mounted: %s/%s is %s, not running",
					   path, shown.mounts[i]->target, c->workload->path,
					   c->name, pod_container_state_word(c));
	return 0;
}

/* Copies of one container share its root: there is never a second overlay of its files. */
static int copy_open_root(const struct workload_service *s, struct arena *a,
			  struct pod_container *c, const char *path, struct error *err)
{
	int r;

	if (c->status.state == CONTAINER_RUNNING)
		return copy_open_running(s, c, err);
	r = copy_check_mounts(a, c, path, err);
	if (r < 0)
		return r;
	r = copies_root(&s->copies, c->id);
	return r >= 0 ? r : pod_container_open_root(c, err);
}

/* That of one which does not run is on the disk, with the ids inside. */
static const struct isolate_ids *copy_ids(const struct pod_container *c)
{
	return c->status.state == CONTAINER_RUNNING ? &c->workload->ids : NULL;
}

/* ---- calls ---- */

int copy_from_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		    const Nacre__V1__CopyFromRequest *q, struct error *err)
{
	Nacre__V1__CopyFromRequest m = *q;
	int r = copy_check(s, c, q->path, err);

	if (r < 0)
		return r;
	if (copy_is_remote(c)) {
		r = copy_check_remote(c, err);
		if (r < 0)
			return r;
		m.target = c->id;
		m.container = (char *)(uintptr_t) "";
		passing_begin(workload_peer(c->workload), call, METHOD("CopyFrom"), &m.base);
		return 0;
	}
	r = copy_open_root(s, rpc_call_arena(call), c, q->path, err);
	return r < 0 ? r : copy_from_begin(&s->copies, call, r, c->id, copy_ids(c), q, err);
}

int copy_to_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		  const Nacre__V1__CopyToRequest *first, struct error *err)
{
	Nacre__V1__CopyToRequest m = *first;
	int r = copy_check(s, c, first->path, err);

	if (r < 0)
		return r;
	if (copy_is_remote(c)) {
		r = copy_check_remote(c, err);
		if (r < 0)
			return r;
		m.target = c->id;
		m.container = (char *)(uintptr_t) "";
		passing_begin(workload_peer(c->workload), call, METHOD("CopyTo"), &m.base);
		return 0;
	}
	r = copy_open_root(s, rpc_call_arena(call), c, first->path, err);
	return r < 0 ? r : copy_to_begin(&s->copies, call, r, c->id, copy_ids(c), first, err);
}
