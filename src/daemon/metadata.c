/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/metadata.h"

#include <limits.h>

#include "base/log/log.h"
#include "base/text/str.h"
#include "daemon/model.h"
#include "daemon/place.h"
#include "gates/issuer.h"
#include "gates/metadata_port.h"
#include "pod/networks/metadata.h"
#include "pod/workload/workload.h"
#include "runtime/networks/pod_metadata.h"
#include "wire/document/imds.h"

/* As whom its gate runs: beside those of machines (microvms.c). */
#define METADATA_GATE_UID 1879113721

/* A name of a workload is segments of a SPIFFE id as it is. */
static int metadata_identify(void *userdata, const char *id, char ret[SPIFFE_SIZE],
			     struct error *err)
{
	const struct daemon *d = userdata;
	const struct workload *w = workloads_find_id(d->workloads, id);
	bool identity = false;
	char node[SPIFFE_SIZE];
	int r;

	if (!w || workload_has_ended(w))
		return error_refuse(err, ERROR_DENIED, "the pod has ended");
	(void)pod_metadata_is_asked(w, &identity);
	if (!identity)
		return error_refuse(err, ERROR_DENIED, "%s was not given an identity", w->path);
	r = issuer_node_id(d->microvms.issuer, node, err);
	if (r < 0)
		return r;
	if (str_printf(ret, SPIFFE_SIZE, "%s/workload/%s", node, w->path) < 0)
		return error_refuse(err, ERROR_DENIED, "the id of %s would be too long", w->path);
	return 0;
}

static bool metadata_wants(void *userdata, const struct workload *w)
{
	(void)userdata;
	return pod_metadata_is_asked(w, NULL);
}

static int metadata_open(void *userdata, const struct workload *w,
			 const struct metadata_sockets *at, struct error *err)
{
	_cleanup_(metadata_sockets_close) struct metadata_sockets owned = *at;
	_cleanup_(buf_done) struct buf page = BUF_INIT_LIMIT(IMDS_PAGE_MAX);
	const struct daemon *d = userdata;
	int r = pod_metadata_page(w, &page, err), fds[2];

	if (r < 0)
		return r;
	if (!d->metadata_port)
		return error_refuse(err, ERROR_UNAVAILABLE, "the daemon is ending");
	fds[0] = owned.fd4;
	fds[1] = owned.fd6;
	owned = (struct metadata_sockets)METADATA_SOCKETS_NONE;
	return metadata_port_open(d->metadata_port, w->id, fds, buf_data(&page), page.len, err);
}

/* What was told before goes on where the new page cannot be made. */
static void metadata_change(void *userdata, const struct workload *w)
{
	_cleanup_(buf_done) struct buf page = BUF_INIT_LIMIT(IMDS_PAGE_MAX);
	const struct daemon *d = userdata;
	struct error err = ERROR_INIT;
	int r;

	if (!d->metadata_port)
		return;
	r = pod_metadata_page(w, &page, &err);
	if (r == 0)
		r = metadata_port_change(d->metadata_port, w->id, buf_data(&page), page.len);
	if (r < 0)
		log_warn("the metadata service of a pod tells what was true before",
			 LOG_STR("workload", w->path), LOG_ERR(&err));
}

static void metadata_close(void *userdata, const struct workload *w)
{
	const struct daemon *d = userdata;

	if (d->metadata_port)
		metadata_port_close(d->metadata_port, w->id);
}

const struct metadata_ops metadata_ops = { .wants = metadata_wants,
					   .open = metadata_open,
					   .changed = metadata_change,
					   .close = metadata_close };

int metadata_begin_port(struct daemon *d, struct error *err)
{
	char gate[PATH_MAX];
	const struct metadata_port_config config = { .loop = d->loop,
						     .issuer = d->microvms.issuer,
						     .program = gate,
						     .uid = METADATA_GATE_UID,
						     .gid = METADATA_GATE_UID,
						     .life = d->config.svid_life,
						     .identify = metadata_identify,
						     .userdata = d };
	int r;

	place_find_helper(d->config.libexec, "nacre-gate", gate, sizeof(gate));
	r = metadata_port_new(&d->metadata_port, &config);
	return r < 0 ? error_set(err, r, "metadata services") : 0;
}

void metadata_end_port(struct daemon *d)
{
	d->metadata_port = metadata_port_free(d->metadata_port);
}
