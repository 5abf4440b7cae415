/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/alloc.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "cell/start/mounts.h"
#include "image/image.h"
#include "network/attachment.h"
#include "network/namespace.h"
#include "pod/networks/change.h"
#include "pod/networks/etc_wish.h"
#include "pod/storage/image_mounts.h"
#include "pod/storage/shares.h"
#include "pod/storage/volumes.h"
#include "pod/workload/hosted.h"

static struct pod_container *pod_container_free(struct pod_container *c)
{
	if (c->image && c->has_rootfs == false)
		c->image->n_users--;
	image_mounts_drop(c);
	container_fds_close(&c->fds);
	(void)fd_close(c->log_fd);
	c->mounts = mounts_free(c->mounts, c->n_mounts);
	free(c->settings);
	strv_free(c->volumes);
	strv_free(c->own_volumes);
	strv_free(c->shares);
	strv_free(c->limits);
	strv_free(c->hidden);
	strv_free(c->read_only);
	buf_done(&c->filter);
	strv_free(c->argv);
	strv_free(c->env);
	free(c->image_name);
	free(c->image_id);
	free(c->cwd);
	free(c->user);
	free(c->command);
	free(c->failed);
	free(c->identity);
	free(c);
	return NULL;
}

void workload_unmake(struct workload *w)
{
	if (!w)
		return;
	if (w->kind == WORKLOAD_VM)
		hosted_leave(w);
	for (size_t i = 0; i < w->n_containers; i++)
		pod_container_free(w->containers[i]);
	shares_free(w);
	workload_forget_volumes(w);
	while (w->attachment)
		(void)attachment_free(w->attachment);
	w->netns = network_namespace_free(w->netns);
	w->change = plug_change_free(w->change);
	w->etc = etc_wish_free(w->etc);
	strv_free(w->limits);
	free(w->refused);
	free(w->failed);
	free(w->settings);
	free(w->containers);
	free(w->comment);
	free(w);
}

struct pod_container *workload_add_container(struct workload *w)
{
	struct pod_container **all =
		reallocarray(w->containers, w->n_containers + 1, sizeof(struct pod_container *));
	struct pod_container *c;

	if (!all)
		return NULL;
	w->containers = all;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->workload = w;
	c->position = w->n_ever++;
	c->fds = (struct container_fds)CONTAINER_FDS_NONE;
	c->log_fd = -1;
	w->containers[w->n_containers++] = c;
	return c;
}

void workload_drop_container(struct workload *w, struct pod_container *c)
{
	size_t i = 0;

	while (w->containers[i] != c)
		i++;
	memmove(&w->containers[i], &w->containers[i + 1],
		(w->n_containers - i - 1) * sizeof(struct pod_container *));
	w->n_containers--;
	pod_container_free(c);
}

struct workload *workload_alloc(size_t n_containers)
{
	struct workload *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	list_init(&w->link);
	list_init(&w->waiters);
	list_init(&w->shares);
	list_init(&w->volumes_leaving);
	for (size_t i = 0; i < n_containers; i++) {
		if (workload_add_container(w))
			continue;
		workload_unmake(w);
		return NULL;
	}
	return w;
}

int workload_set_comment(struct workload *w, const char *comment)
{
	if (str_empty(comment))
		return 0;
	w->comment = strdup(comment);
	return w->comment ? 0 : -ENOMEM;
}
