/* SPDX-License-Identifier: Apache-2.0 */
#include "network/namespace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "net/port/inside.h"
#include "network/state.h"

struct network_namespace {
	struct network_job job;
	bool is_made; /* or failed; else a thread may be at it */
	bool abandoned;
	int fd;
	struct error err;
	void (*done)(void *userdata);
	void *userdata;
};

static int namespace_open(void *arg, struct error *err)
{
	int *ret = arg;

	*ret = sysio_openat(AT_FDCWD, "/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC, 0);
	return *ret < 0 ? error_set(err, -errno, "open a new network namespace") : 0;
}

static void namespace_run(struct pool_work *work)
{
	struct network_namespace *n = container_of(work, struct network_namespace, job.work);
	int r = FAILPOINT("network.namespace");

	if (r < 0)
		(void)error_set(&n->err, r, "make a network namespace");
	else
		r = inside_run(INSIDE_NEW, namespace_open, &n->fd, &n->err);
	if (r >= 0)
		FAILPOINT_AFTER("network.namespace");
}

static struct network_namespace *namespace_end(struct network_namespace *n)
{
	(void)fd_close(n->fd);
	free(n);
	return NULL;
}

static void namespace_done(struct pool_work *work)
{
	struct network_namespace *n = container_of(work, struct network_namespace, job.work);

	networks_job_done(&n->job);
	n->is_made = true;
	if (n->abandoned)
		(void)namespace_end(n);
	else
		n->done(n->userdata);
}

static void namespace_drop(struct network_job *job)
{
	(void)namespace_end(container_of(job, struct network_namespace, job));
}

int network_namespace_new(struct network_namespace **ret, struct networks *all,
			  void (*done)(void *userdata), void *userdata)
{
	struct network_namespace *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	*n = (struct network_namespace){ .job.drop = namespace_drop,
					 .job.work = { .run = namespace_run,
						       .done = namespace_done },
					 .fd = -1,
					 .err = ERROR_INIT,
					 .done = done,
					 .userdata = userdata };
	networks_submit(all, &n->job);
	*ret = n;
	return 0;
}

int network_namespace_fd(const struct network_namespace *n, struct error *err)
{
	if (!n->is_made)
		return -EINPROGRESS;
	return n->err.code ? error_copy(err, &n->err) : n->fd;
}

struct network_namespace *network_namespace_free(struct network_namespace *n)
{
	if (!n)
		return NULL;
	if (n->is_made)
		return namespace_end(n);
	n->abandoned = true;
	return NULL;
}
