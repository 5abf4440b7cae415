/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/closing.h"

#include <stdlib.h>

#include "base/file/fd.h"

struct closing {
	struct list link;
	struct pool_work work;
	int fd;
};

static void closing_free(struct closing *c)
{
	(void)fd_close(c->fd);
	list_remove(&c->link);
	free(c);
}

static void closing_run(struct pool_work *work)
{
	struct closing *c = container_of(work, struct closing, work);

	c->fd = fd_close(c->fd);
}

static void closing_ran(struct pool_work *work)
{
	closing_free(container_of(work, struct closing, work));
}

void closing_add(struct list *closings, struct pool *pool, int fd)
{
	struct closing *c = fd < 0 ? NULL : calloc(1, sizeof(*c));

	if (!c) {
		(void)fd_close(fd);
		return;
	}
	*c = (struct closing){ .work = { .run = closing_run, .done = closing_ran }, .fd = fd };
	list_init(&c->link);
	list_add_tail(closings, &c->link);
	pool_submit(pool, &c->work);
}

void closing_free_all(struct list *closings)
{
	while (!list_empty(closings))
		closing_free(list_first(closings, struct closing, link));
}
