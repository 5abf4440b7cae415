/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/copy_call.h"

#include <errno.h>

#include "base/fd.h"
#include "base/str.h"
#include "isolate/process.h"
#include "keeper/copy.h"
#include "keeper/passing.h"
#include "pod/workload.h"
#include "rpc/server.h"
#include "runtime/groups.h"
#include "runtime/services.h"
#include "runtime/target.h"

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
	if (c->status.state != CONTAINER_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION, "%s/%s is %s, not running",
				    c->workload->path, c->name, pod_container_state_word(c));
	r = target_refuse_machine(c->workload, "nothing in it can be reached", err);
	if (r < 0)
		return r;
	if (!workload_peer(c->workload))
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone",
				    c->workload->path);
	return 0;
}

/* Only its keeper reaches the files of a container with another kernel. */
static bool copy_is_remote(const struct pod_container *c)
{
	return c->workload->instance && instance_is_remote(c->workload->instance);
}

static int copy_open_root(const struct workload_service *s, struct pod_container *c,
			  struct error *err)
{
	char group[GROUP_PATH_MAX], path[GROUP_PATH_MAX + 640]; /* below the v2 root */
	pid_t pid = pod_container_pid(c);
	int fd = -ESRCH;

	if (group_of_container(s, c, group) < 0)
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s is gone",
				    c->workload->path);
	if (pid > 0 && str_printf(path, sizeof(path), "%s/%s", s->cgroup, group) >= 0)
		fd = process_open_root(pid, path);
	if (fd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "its container has ended meanwhile");
	return fd;
}

int copy_from_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		    const char *path, struct error *err)
{
	Nacre__V1__CopyFromRequest m = NACRE__V1__COPY_FROM_REQUEST__INIT;
	int r = copy_check(s, c, path, err);

	if (r < 0)
		return r;
	if (copy_is_remote(c)) {
		m.target = c->id;
		m.path = (char *)(uintptr_t)path;
		passing_begin(workload_peer(c->workload), call, METHOD("CopyFrom"), &m.base);
		return 0;
	}
	r = copy_open_root(s, c, err);
	return r < 0 ? r : copy_from_begin(&s->copies, call, r, path, c->name, err);
}

int copy_to_start(struct rpc_call *call, struct workload_service *s, struct pod_container *c,
		  const Nacre__V1__CopyToRequest *first, struct error *err)
{
	Nacre__V1__CopyToRequest m = *first;
	int r = copy_check(s, c, first->path, err);

	if (r < 0)
		return r;
	if (copy_is_remote(c)) {
		m.target = c->id;
		m.container = (char *)(uintptr_t) "";
		passing_begin(workload_peer(c->workload), call, METHOD("CopyTo"), &m.base);
		return 0;
	}
	r = copy_open_root(s, c, err);
	return r < 0 ? r : copy_to_begin(&s->copies, call, r, first, err);
}
