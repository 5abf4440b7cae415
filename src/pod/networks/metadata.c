/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/metadata.h"

#include <errno.h>

#include "base/log/log.h"
#include "network/metadata.h"
#include "pod/networks/netns.h"
#include "pod/networks/plug.h"
#include "pod/workload/workloads.h"

static bool metadata_is_wanted(struct workload *w)
{
	const struct workloads_config *config = &w->all->config;

	if (w->metadata == WORKLOAD_METADATA_UNKNOWN)
		w->metadata =
			config->metadata && (w->kind == WORKLOAD_POD || w->kind == WORKLOAD_CELL) &&
					config->metadata->wants(config->metadata_userdata, w)
				? WORKLOAD_METADATA_WANTED
				: WORKLOAD_METADATA_NONE;
	return w->metadata == WORKLOAD_METADATA_WANTED;
}

static void metadata_on_made(void *userdata)
{
	struct workload *w = userdata;

	loop_defer_schedule(&w->defer);
}

static int metadata_begin(struct workload *w, struct error *err)
{
	int fd = netns_open(w, err), r;

	if (fd < 0)
		return fd;
	r = network_metadata_new(&w->metadata_making, w->all->config.networks, fd, metadata_on_made,
				 w);
	return r < 0 ? error_set(err, r, "the metadata service of %s", w->path) : 0;
}

static int metadata_open(struct workload *w, struct error *err)
{
	const struct workloads_config *config = &w->all->config;
	struct metadata_sockets at = METADATA_SOCKETS_NONE;
	int r = network_metadata_take(w->metadata_making, &at, err);

	if (r == -EINPROGRESS)
		return 1;
	w->metadata_making = network_metadata_free(w->metadata_making);
	if (r == 0)
		r = config->metadata->open(config->metadata_userdata, w, &at, err);
	if (r == 0)
		w->metadata = WORKLOAD_METADATA_SERVED;
	return r;
}

/* Of one that runs the lack is told, and nothing else. */
static int metadata_fail(struct workload *w, int r, struct error *err)
{
	(void)error_wrap(err, r, "the metadata service of %s", w->path);
	if (w->state == WORKLOAD_STARTING)
		return r;
	log_warn("a pod has no metadata service any more", LOG_STR("workload", w->path),
		 LOG_ERR(err));
	w->metadata = WORKLOAD_METADATA_NONE;
	*err = (struct error)ERROR_INIT;
	return 0;
}

int metadata_is_awaited(struct workload *w, struct error *err)
{
	bool starts = w->state == WORKLOAD_STARTING;
	int r;

	if (workload_has_ended(w) || !metadata_is_wanted(w) ||
	    (!starts && !w->metadata_making && !plug_stands(w)))
		return 0;
	if (!w->metadata_making && starts && !plug_has_place(w))
		return 1;
	r = w->metadata_making ? 0 : metadata_begin(w, err);
	if (r == 0)
		r = metadata_open(w, err);
	return r < 0 ? metadata_fail(w, r, err) : r;
}

void metadata_changed(const struct workload *w)
{
	const struct workloads_config *config = &w->all->config;

	if (w->metadata == WORKLOAD_METADATA_SERVED)
		config->metadata->changed(config->metadata_userdata, w);
}

void metadata_end(struct workload *w)
{
	const struct workloads_config *config = &w->all->config;

	w->metadata_making = network_metadata_free(w->metadata_making);
	if (w->metadata == WORKLOAD_METADATA_SERVED)
		config->metadata->close(config->metadata_userdata, w);
	w->metadata = WORKLOAD_METADATA_UNKNOWN;
}
