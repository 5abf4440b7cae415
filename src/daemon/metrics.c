/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/metrics.h"

#include <limits.h>

#include "base/log/log.h"
#include "daemon/model.h"
#include "daemon/place.h"
#include "gates/metrics_port.h"

/* As whom the gate of the metrics runs: beside those of machines (microvms.c). */
#define METRICS_GATE_UID 1879113723

static void daemon_on_scrape(void *userdata, int fd)
{
	const struct daemon *d = userdata;

	metrics_scrape(d->metrics, fd);
}

void daemon_begin_metrics(struct daemon *d)
{
	char gate[PATH_MAX];
	const struct metrics_config config = { .loop = d->loop,
					       .pool = d->pool,
					       .work = &d->workload,
					       .images = d->images,
					       .server = d->server,
					       .root_fd = d->place.root_fd,
					       .run_fd = d->place.run_fd };
	const struct metrics_port_config port = { .loop = d->loop,
						  .program = gate,
						  .address = d->config.metrics.listen,
						  .uid = METRICS_GATE_UID,
						  .gid = METRICS_GATE_UID,
						  .on_scrape = daemon_on_scrape,
						  .userdata = d };
	struct error err = ERROR_INIT;
	int r;

	if (!*d->config.metrics.listen)
		return;
	place_find_helper(d->config.libexec, "nacre-gate", gate, sizeof(gate));
	r = metrics_new(&d->metrics, &config);
	if (r == 0)
		r = metrics_port_new(&d->metrics_port, &port);
	if (r == 0)
		return;
	(void)error_set(&err, r, "serve metrics at %s", d->config.metrics.listen);
	log_error("nobody can scrape this node's metrics", LOG_ERR(&err));
}

void daemon_end_metrics(struct daemon *d)
{
	d->metrics_port = metrics_port_free(d->metrics_port);
	metrics_stop(d->metrics);
}
