/* SPDX-License-Identifier: Apache-2.0 */
#include "network/metadata.h"

#include <errno.h>
#include <stdlib.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/macros.h"
#include "network/state.h"

struct network_metadata {
	struct network_job job;
	bool is_made; /* or failed; else a thread may be at it */
	bool abandoned;
	int netns_fd;
	struct metadata_sockets sockets;
	struct error err;
	void (*done)(void *userdata);
	void *userdata;
};

static void network_metadata_run(struct pool_work *work)
{
	struct network_metadata *m = container_of(work, struct network_metadata, job.work);
	int r = FAILPOINT("network.metadata");

	if (r < 0)
		(void)error_set(&m->err, r, "make a metadata service");
	else
		r = metadata_listen(m->netns_fd, &m->sockets, &m->err);
	if (r >= 0)
		FAILPOINT_AFTER("network.metadata");
}

static struct network_metadata *network_metadata_end(struct network_metadata *m)
{
	metadata_sockets_close(&m->sockets);
	(void)fd_close(m->netns_fd);
	free(m);
	return NULL;
}

static void network_metadata_done(struct pool_work *work)
{
	struct network_metadata *m = container_of(work, struct network_metadata, job.work);

	networks_job_done(&m->job);
	m->is_made = true;
	if (m->abandoned)
		(void)network_metadata_end(m);
	else
		m->done(m->userdata);
}

static void network_metadata_drop(struct network_job *job)
{
	(void)network_metadata_end(container_of(job, struct network_metadata, job));
}

int network_metadata_new(struct network_metadata **ret, struct networks *all, int netns_fd,
			 void (*done)(void *userdata), void *userdata)
{
	struct network_metadata *m = calloc(1, sizeof(*m));

	if (!m) {
		(void)fd_close(netns_fd);
		return -ENOMEM;
	}
	*m = (struct network_metadata){ .job.drop = network_metadata_drop,
					.job.work = { .run = network_metadata_run,
						      .done = network_metadata_done },
					.netns_fd = netns_fd,
					.sockets = METADATA_SOCKETS_NONE,
					.err = ERROR_INIT,
					.done = done,
					.userdata = userdata };
	networks_submit(all, &m->job);
	*ret = m;
	return 0;
}

int network_metadata_take(struct network_metadata *m, struct metadata_sockets *ret,
			  struct error *err)
{
	if (!m->is_made)
		return -EINPROGRESS;
	if (m->err.code)
		return error_copy(err, &m->err);
	*ret = m->sockets;
	m->sockets = (struct metadata_sockets)METADATA_SOCKETS_NONE;
	return 0;
}

struct network_metadata *network_metadata_free(struct network_metadata *m)
{
	if (!m)
		return NULL;
	if (m->is_made)
		return network_metadata_end(m);
	m->abandoned = true;
	return NULL;
}
