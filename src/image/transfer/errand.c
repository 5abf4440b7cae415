/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/errand.h"

#include "base/file/fd.h"
#include "base/memory/tally.h"
#include "image/content/model.h"
#include "image/content/storing.h"
#include "image/helper/cage.h"
#include "image/transfer/network.h"

int errand_start(struct errand *e, struct image_store *s, const char *command,
		 const struct fetchmsg *request, const struct image_auths *auths,
		 const struct helper_ops *ops, struct error *err)
{
	_cleanup_fd_ int cage_fd = -1;
	int r;

	*e = (struct errand){ .store = s, .dir_fd = -1 };
	list_init(&e->link);
	list_add_tail(&s->errands, &e->link);
	r = storing_make_staging(s, e->id, &e->dir_fd, err);
	if (r < 0)
		return r;
	cage_fd = cage_open(e->dir_fd, "blobs", 0, err);
	if (cage_fd < 0)
		return cage_fd;
	return network_start(&e->helper, s, command, request, auths, cage_fd, ops, err);
}

void errand_drop(struct errand *e)
{
	if (e->store && *e->id)
		trash_add(e->store, e->store->staging_fd, e->id, NULL);
}

void errand_done(struct errand *e)
{
	if (!e->store)
		return;
	helper_done(&e->helper);
	e->dir_fd = fd_close(e->dir_fd);
	list_remove(&e->link);
	e->store = NULL;
}

void errand_tally(const struct image_store *s, struct tally *t)
{
	const struct errand *e;

	list_for_each (e, &s->errands, struct errand, link)
		tally_may(t, "staging", e->id);
}
