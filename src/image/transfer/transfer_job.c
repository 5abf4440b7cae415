/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/transfer_job.h"

#include "base/file/fd.h"
#include "base/memory/inventory.h"
#include "image/content/commit.h"
#include "image/content/model.h"
#include "image/helper/detached.h"
#include "image/transfer/network.h"

int transfer_job_start(struct transfer_job *e, struct image_store *s, const char *command,
		       const struct fetchmsg *request, const struct image_auths *auths,
		       const struct helper_ops *ops, struct error *err)
{
	_cleanup_fd_ int detached_fd = -1;
	int r;

	*e = (struct transfer_job){ .store = s, .dir_fd = -1 };
	list_init(&e->link);
	list_add_tail(&s->transfer_jobs, &e->link);
	r = commit_make_staging(s, e->id, &e->dir_fd, err);
	if (r < 0)
		return r;
	detached_fd = detached_open(e->dir_fd, "blobs", 0, err);
	if (detached_fd < 0)
		return detached_fd;
	return network_start(&e->helper, s, command, request, auths, detached_fd, ops, err);
}

void transfer_job_drop(struct transfer_job *e)
{
	if (e->store && *e->id)
		trash_add(e->store, e->store->staging_fd, e->id, NULL);
}

void transfer_job_done(struct transfer_job *e)
{
	if (!e->store)
		return;
	helper_done(&e->helper);
	e->dir_fd = fd_close(e->dir_fd);
	list_remove(&e->link);
	e->store = NULL;
}

void transfer_job_inventory(const struct image_store *s, struct inventory *t)
{
	const struct transfer_job *e;

	list_for_each (e, &s->transfer_jobs, struct transfer_job, link)
		inventory_may(t, "staging", e->id);
}
