/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/connect.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "network/attachment.h"
#include "network/model.h"
#include "network/plug.h"
#include "pod/networks/change.h"
#include "pod/networks/guest.h"
#include "pod/networks/metadata.h"
#include "pod/networks/netns.h"
#include "pod/networks/plug.h"
#include "pod/workload/publish.h"
#include "pod/workload/record.h"
#include "pod/workload/workloads.h"

#define CONNECT_NOTE 160

/* r: of a failpoint. */
static int change_save(const struct workload *w, int r, struct error *err)
{
	return r < 0 ? error_set(err, r, "record workload %s", w->path)
		     : record_put_workload(w->all->config.store, w, err);
}

static void change_swap(struct workload *w, char **settings)
{
	char *other = w->settings;

	w->settings = *settings;
	*settings = other;
}

static void change_end(struct plug_change *c, const char *note, const struct error *err)
{
	struct workload *w = c->workload;
	const workload_fn done = c->done;
	void *userdata = c->userdata;
	char text[CONNECT_NOTE];

	w->change = NULL;
	(void)str_printf(text, sizeof(text), "%s the network %s", note, c->network);
	(void)plug_change_free(c);
	w->save_due = true;
	names_look(&w->all->names);
	metadata_changed(w);
	loop_defer_schedule(&w->defer);
	if (!err)
		publish_workload_note(w->all->config.events, w, text);
	if (done)
		done(userdata, w, err);
}

void workloads_await_names(struct workloads *all, struct names_wait *wait)
{
	names_await(&all->names, wait);
}

/* ---- what cannot be ---- */

static int change_check(const struct workload *w, struct error *err)
{
	if (w->kind != WORKLOAD_POD && w->kind != WORKLOAD_CELL)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is of kind %s, and only pods and cells can change their "
				    "networks",
				    w->path, workload_kind_word(w->kind));
	if (!instance_kind_can(w->choice.kind, INSTANCE_NODE_NETWORKS))
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is of kind \"%s\", and on the network of its cloud alone",
				    w->path, instance_kind_word(w->choice.kind));
	if (w->state != WORKLOAD_RUNNING)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s is %s, and networks are changed of a pod that runs",
				    w->path, workload_state_word(w->state));
	if (w->attachment && w->attachment->network->plugins)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the network of %s is made by plugins of CNI, which are asked "
				    "when it starts; run it with --network NAME to change networks",
				    w->path);
	if (!w->has_names)
		return error_refuse(err, ERROR_PRECONDITION,
				    "%s was started with the network \"%s\", which stays; run it "
				    "with --network NAME to change networks",
				    w->path, w->network);
	if (w->change)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "another change of the networks of %s is under way; try again",
				    w->path);
	return 0;
}

static int change_new(struct plug_change **ret, struct workload *w, const char *network,
		      const char *settings, struct error *err)
{
	struct plug_change *c = calloc(1, sizeof(*c));

	if (c)
		c->settings = strdup(settings);
	if (!c || !c->settings) {
		(void)plug_change_free(c);
		return error_set(err, -ENOMEM, "change the networks of %s", w->path);
	}
	c->workload = w;
	c->err = (struct error)ERROR_INIT;
	(void)str_copy(c->network, sizeof(c->network), network);
	*ret = c;
	return 0;
}

/* ---- connect ---- */

static void connect_on_undone(void *userdata, const struct error *err)
{
	struct plug_change *c = userdata;
	const struct error why = c->err;

	(void)err;
	change_end(c, "", &why);
}

/* It is in the kernel, and must not be. */
static void connect_undo(struct plug_change *c)
{
	const struct error why = c->err;

	if (plug_withdraw(c->workload, c->attachment, false, connect_on_undone, c) == 0)
		return;
	/* It goes when the workload turns. */
	change_end(c, "", &why);
}

/* It is in the kernel, and in that of its machine. */
static void connect_on_there(void *userdata, const struct error *err)
{
	struct plug_change *c = userdata;
	struct workload *w = c->workload;

	if (err && w->state == WORKLOAD_RUNNING) {
		(void)error_copy(&c->err, err);
		connect_undo(c);
		return;
	}
	/* Its end takes it out. */
	if (w->state != WORKLOAD_RUNNING) {
		(void)error_refuse(&c->err, ERROR_ABORTED, "%s has ended meanwhile", w->path);
		connect_on_undone(c, NULL);
		return;
	}
	/* What this connect would write knows nothing of that. */
	if (c->stale) {
		(void)error_refuse(&c->err, ERROR_UNAVAILABLE,
				   "%s was changed meanwhile; try again", w->path);
		connect_undo(c);
		return;
	}
	c->attachment->is_half = false;
	change_swap(w, &c->settings);
	if (change_save(w, FAILPOINT("connect.record"), &c->err) < 0) {
		change_swap(w, &c->settings);
		connect_undo(c);
		return;
	}
	FAILPOINT_AFTER("connect.record");
	change_end(c, "on", NULL);
}

static void connect_on_plugged(void *userdata, const struct error *err)
{
	struct plug_change *c = userdata;
	struct error own = ERROR_INIT;

	if (err) {
		c->attachment = attachment_free(c->attachment);
		change_end(c, "", err);
		return;
	}
	if (!c->attachment->of_machine)
		connect_on_there(c, NULL);
	else if (guest_tell(&c->workload->all->guests, c->workload, c->attachment, connect_on_there,
			    c, &own) < 0)
		connect_on_there(c, &own);
}

static int connect_begin(struct plug_change *c, struct error *err)
{
	struct workload *w = c->workload;
	int r, fd = -1;

	c->attachment->is_half = true;
	r = change_save(w, FAILPOINT("connect.begin"), err);
	if (r == 0) {
		FAILPOINT_AFTER("connect.begin");
		fd = netns_open(w, err);
		r = MIN(fd, 0);
	}
	if (r < 0)
		return r;
	/* The first that leads out is where the default routes are. */
	c->attachment->is_half = false;
	plug_choose_way_out(w);
	c->attachment->is_half = true;
	r = attachment_plug(c->attachment, fd, connect_on_plugged, c);
	return r < 0 ? error_set(err, r, "connect %s to a network", w->path) : 0;
}

int workload_connect(struct workload *w, const struct network_wish *wish, const char *settings,
		     workload_fn done, void *userdata, struct error *err)
{
	struct plug_change *c = NULL;
	int r = change_check(w, err);

	if (r == 0)
		r = change_new(&c, w, wish->network, settings, err);
	if (r == 0)
		r = plug_reserve_one(w, w->all->config.networks, wish, &c->attachment, err);
	if (r == 0)
		r = connect_begin(c, err);
	if (r < 0) {
		if (c && c->attachment) {
			c->attachment = attachment_free(c->attachment);
			w->save_due = true;
			loop_defer_schedule(&w->defer);
		}
		(void)plug_change_free(c);
		return r;
	}
	c->done = done;
	c->userdata = userdata;
	w->change = c;
	return 0;
}

/* ---- disconnect ---- */

static void disconnect_on_gone(void *userdata, const struct error *err)
{
	/* What could not be removed is logged, and removed later. */
	(void)err;
	change_end(userdata, "off", NULL);
}

int workload_disconnect(struct workload *w, const char *network, bool force, const char *settings,
			workload_fn done, void *userdata, struct error *err)
{
	struct plug_change *c = NULL;
	struct attachment *a;
	int r = change_check(w, err);

	if (r < 0)
		return r;
	a = attachment_on(w->attachment, network);
	if (!a || a->state != ATTACHMENT_PLUGGED || a->is_half)
		return error_refuse(err, ERROR_PRECONDITION, "%s is not on the network %s", w->path,
				    network);
	if (a->n_publish > 0 && !force)
		return error_refuse(err, ERROR_PRECONDITION,
				    "port %u/%s of this host leads to %s by the network %s, and "
				    "would be gone for good (--force)",
				    a->publish[0].host_port,
				    publish_protocol_word(a->publish[0].protocol), w->path,
				    network);
	r = change_new(&c, w, network, settings, err);
	if (r < 0)
		return r;
	a->is_half = true;
	change_swap(w, &c->settings);
	r = change_save(w, FAILPOINT("disconnect.begin"), err);
	if (r == 0) {
		FAILPOINT_AFTER("disconnect.begin");
		r = plug_withdraw(w, a, false, disconnect_on_gone, c);
		if (r < 0)
			(void)error_set(err, r, "disconnect %s from a network", w->path);
	}
	if (r < 0) {
		a->is_half = false;
		plug_choose_way_out(w);
		change_swap(w, &c->settings);
		w->save_due = true;
		loop_defer_schedule(&w->defer);
		(void)plug_change_free(c);
		return r;
	}
	c->done = done;
	c->userdata = userdata;
	w->change = c;
	names_look(&w->all->names);
	return 0;
}
