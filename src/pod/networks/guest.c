/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/guest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "instance/peer.h"
#include "loop/pool.h"
#include "network/guest_end.h"
#include "pod/networks/netns.h"

struct guest_job {
	struct pool_work work;
	struct list link; /* guests.jobs */
	struct workload *workload;
	struct attachment *attachment;
	bool gone;
	struct guest_end end;
	struct setup setup;
	int netns_fd;
	plug_fn done;
	void *userdata;
	struct error err;
};

static void guest_job_free(struct guest_job *j)
{
	list_remove(&j->link);
	(void)fd_close(j->netns_fd);
	free(j);
}

static int guest_job_new(struct guests *g, struct guest_job **ret, struct workload *w,
			 struct attachment *a, plug_fn done, void *userdata, struct error *err)
{
	struct guest_job *j = calloc(1, sizeof(*j));

	if (!j)
		return error_set(err, -ENOMEM, "tell the guest of %s of its network", w->path);
	*j = (struct guest_job){ .workload = w,
				 .attachment = a,
				 .netns_fd = -1,
				 .done = done,
				 .userdata = userdata,
				 .err = ERROR_INIT };
	list_init(&j->link);
	list_add_tail(&g->jobs, &j->link);
	guest_end_plan(a, &j->end);
	*ret = j;
	return 0;
}

static void guest_job_end(struct guest_job *j)
{
	struct attachment *a = j->attachment;
	const struct error err = j->err;
	const plug_fn done = j->done;
	void *userdata = j->userdata;

	a->tells_guest = false;
	a->guest_knows = !j->gone && !err.code;
	loop_defer_schedule(&j->workload->defer);
	guest_job_free(j);
	done(userdata, err.code ? &err : NULL);
}

/* ---- the guest's side ---- */

static void guest_on_told(void *userdata, const struct error *err)
{
	struct guest_job *j = userdata;

	if (err)
		(void)error_copy(&j->err, err);
	guest_job_end(j);
}

/* 0: guest_on_told() follows. */
static int guest_ask(struct guest_job *j, struct error *err)
{
	_cleanup_(buf_done) struct buf settings = BUF_INIT;
	const struct workload *w = j->workload;
	struct peer *peer = w->instance && !w->instance->ended ? workload_peer(w) : NULL;
	uint8_t device[LINK_MAC_LEN];
	const struct peer_link link = { .device = device,
					.gone = j->gone,
					.name = j->end.plan.port.pod_name,
					.mac = j->setup.mac,
					.mtu = j->setup.mtu,
					.settings = NULL };
	struct peer_link full = link;
	int r = j->gone ? 0 : setup_print(&j->setup, &settings);

	if (r == 0)
		r = buf_add(&settings, "", 1);
	if (r < 0)
		return error_set(err, r, "tell the guest of %s of its network", w->path);
	if (!peer || !peer->ops->put_link)
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s has ended", w->path);
	full.settings = (const char *)buf_data(&settings);
	segment_pod_mac(j->attachment->eth, device);
	peer->ops->put_link(peer, &full, guest_on_told, j);
	return 0;
}

/* ---- the machine's side ---- */

static void guest_run(struct pool_work *work)
{
	struct guest_job *j = container_of(work, struct guest_job, work);
	int r = FAILPOINT("network.guest");

	if (r < 0)
		(void)error_set(&j->err, r, "join a network to its machine");
	else
		r = guest_end_join(&j->end, j->netns_fd, &j->setup, &j->err);
	if (r == 0)
		FAILPOINT_AFTER("network.guest");
}

static void guest_on_joined(struct pool_work *work)
{
	struct guest_job *j = container_of(work, struct guest_job, work);

	j->netns_fd = fd_close(j->netns_fd);
	if (j->err.code || guest_ask(j, &j->err) < 0)
		guest_job_end(j);
}

int guest_tell(struct guests *g, struct workload *w, struct attachment *a, plug_fn done,
	       void *userdata, struct error *err)
{
	struct guest_job *j;
	int r = g->pool ? 0 : pool_new(&g->pool, g->loop, 1);

	if (r < 0)
		return error_set(err, r, "make a thread for networks of machines");
	r = guest_job_new(g, &j, w, a, done, userdata, err);
	if (r < 0)
		return r;
	j->netns_fd = netns_open(w, err);
	if (j->netns_fd < 0) {
		r = j->netns_fd;
		guest_job_free(j);
		return r;
	}
	a->tells_guest = true;
	j->work = (struct pool_work){ .run = guest_run, .done = guest_on_joined };
	pool_submit(g->pool, &j->work);
	return 0;
}

int guest_take_back(struct guests *g, struct workload *w, struct attachment *a, plug_fn done,
		    void *userdata, struct error *err)
{
	struct guest_job *j;
	int r = guest_job_new(g, &j, w, a, done, userdata, err);

	if (r < 0)
		return r;
	j->gone = true;
	a->tells_guest = true;
	r = guest_ask(j, err);
	if (r < 0) {
		a->tells_guest = false;
		guest_job_free(j);
	}
	return r;
}

void guests_init(struct guests *g, struct loop *l)
{
	*g = (struct guests){ .loop = l };
	list_init(&g->jobs);
}

void guests_done(struct guests *g)
{
	g->pool = pool_free(g->pool);
	while (!list_empty(&g->jobs))
		guest_job_free(list_first(&g->jobs, struct guest_job, link));
}
