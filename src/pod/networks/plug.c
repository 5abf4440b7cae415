/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/plug.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "network/attach.h"
#include "network/driver.h"
#include "network/guest_end.h"
#include "network/model.h"
#include "network/namespace.h"
#include "network/plug.h"
#include "pod/networks/etc_wish.h"
#include "pod/networks/guest.h"
#include "pod/networks/netns.h"
#include "pod/workload/failure.h"
#include "pod/workload/workloads.h"

/* ---- more than one network ---- */

void plug_choose_way_out(struct workload *w)
{
	bool found = false;

	for (struct attachment *a = w->attachment; a; a = a->next) {
		a->leads_out = !found && !a->is_half && !a->network->internal;
		found = found || a->leads_out;
	}
}

static bool plug_is_of_machine(const struct workload *w)
{
	return w->kind == WORKLOAD_POD &&
	       !instance_kind_can(w->choice.kind, INSTANCE_LOCAL_PROCESS);
}

static unsigned plug_free_eth(const struct workload *w)
{
	uint32_t taken = 0;
	unsigned eth = 0;

	static_assert(NETWORK_OF_ONE_MAX < 32, "a bit for each");
	for (const struct attachment *a = w->attachment; a; a = a->next)
		taken |= UINT32_C(1) << a->eth;
	while (taken & UINT32_C(1) << eth)
		eth++;
	return eth;
}

int plug_reserve_one(struct workload *w, struct networks *networks, const struct network_wish *wish,
		     struct attachment **ret, struct error *err)
{
	const struct attachment *on = attachment_on(w->attachment, wish->network);
	struct network_wish own = *wish;
	unsigned eth = plug_free_eth(w);
	int r;

	own.id = w->id;
	own.of_machine = plug_is_of_machine(w);
	own.pod = own.pod ? own.pod : w->path;
	if (on && on->is_half)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "%s is being taken off the network %s, which a change before "
				    "had left half done; try again",
				    w->path, own.network);
	if (on)
		return error_field(err, ERROR_EXISTS, "network", "%s is on the network %s already",
				   w->path, own.network);
	if (own.of_machine && eth >= GUEST_END_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%s is on %d networks already: the guest of a machine has no "
				    "more devices",
				    w->path, GUEST_END_MAX);
	if (eth >= NETWORK_OF_ONE_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%s is on %d networks already, the limit",
				    w->path, NETWORK_OF_ONE_MAX);
	if (w->etc) {
		own.servers = w->etc->servers;
		own.search = w->etc->search;
		own.options = w->etc->options;
	}
	r = network_attach(networks, &own, w->path, ret, err);
	if (r < 0)
		return r;
	(*ret)->eth = eth;
	(*ret)->of_machine = plug_is_of_machine(w);
	attachment_append(&w->attachment, *ret);
	w->has_names = true;
	return 0;
}

/* Of the i-th further one, as the request calls it. */
static int plug_blame_further(size_t i, int r, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (err && err->field[0] &&
	    str_printf(field, sizeof(field), "further_networks[%zu].%s", i, err->field) >= 0)
		error_rename_field(err, field);
	return r;
}

int plug_reserve(struct workload *w, struct networks *networks, const struct workload_spec *spec,
		 struct error *err)
{
	struct attachment *a;
	int r;

	if (!spec->attach)
		return 0;
	r = plug_reserve_one(w, networks, spec->attach, &a, err);
	for (size_t i = 0; i < spec->n_further && r == 0; i++) {
		r = plug_reserve_one(w, networks, &spec->further[i], &a, err);
		if (r < 0)
			r = plug_blame_further(i, r, err);
	}
	if (r < 0)
		return r;
	plug_choose_way_out(w);
	names_look(&w->all->names);
	return 0;
}

/* ---- the text of a record ---- */

int plug_print(const struct workload *w, struct buf *b)
{
	int r = !w->attachment && w->has_names ? buf_add_str(b, PLUG_NONE) : 0;

	for (const struct attachment *a = w->attachment; a && r == 0; a = a->next) {
		r = a == w->attachment ? 0 : buf_add_str(b, "\n");
		if (r == 0)
			r = attachment_print(a, b);
	}
	return r < 0 ? r : buf_add(b, "", 1);
}

static int plug_adopt_one(struct workload *w, struct networks *networks, const char *text,
			  size_t len, struct error *err)
{
	_cleanup_str_ char *line = strndup(text, len);
	struct attachment *a = NULL;
	int r;

	if (!line)
		return error_set(err, -ENOMEM, "the network of %s", w->path);
	r = network_adopt(networks, line, w->path, &a, err);
	if (r < 0)
		return r;
	a->of_machine = plug_is_of_machine(w);
	/* One that still starts is told again. */
	a->guest_knows = a->of_machine && w->state != WORKLOAD_STARTING;
	attachment_append(&w->attachment, a);
	if (a->is_half)
		loop_defer_schedule(&w->defer);
	return 0;
}

int plug_adopt(struct workload *w, struct networks *networks, const char *text, struct error *err)
{
	int r = 0;

	if (str_empty(text))
		return 0;
	w->has_names = true;
	/* One that cannot be had takes none of the others with it. */
	for (size_t len; *text && !str_eq(text, PLUG_NONE); text += len + (text[len] == '\n')) {
		int one;

		len = strcspn(text, "\n");
		one = plug_adopt_one(w, networks, text, len, r == 0 ? err : NULL);
		r = r == 0 ? one : r;
	}
	plug_choose_way_out(w);
	names_look(&w->all->names);
	return r;
}

/* ---- into the kernel ---- */

static void plug_on_netns(void *userdata)
{
	struct workload *w = userdata;

	loop_defer_schedule(&w->defer);
}

/* 0; 1: not yet; or why it cannot be. */
static int plug_make_netns(struct workload *w, struct error *err)
{
	int r = 0;

	if (w->kind != WORKLOAD_CELL)
		return 0;
	if (!w->netns)
		r = network_namespace_new(&w->netns, w->all->config.networks, plug_on_netns, w);
	if (r < 0)
		return error_set(err, r, "make the network of %s", w->path);
	r = network_namespace_fd(w->netns, err);
	return r == -EINPROGRESS ? 1 : MIN(r, 0);
}

bool plug_has_netns(const struct workload *w)
{
	return w->kind != WORKLOAD_CELL || !w->attachment ||
	       (w->netns && network_namespace_fd(w->netns, NULL) >= 0);
}

bool plug_chooses_address(const struct workload *w)
{
	return w->attachment && w->attachment->network->plugins;
}

/* Its guest has it too, or never is to. */
static void plug_on_guest(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	if (err && !workload_has_ended(w)) {
		w->plug_failed = true;
		(void)failure_refuse(w, err);
	}
	if (!err && plug_chooses_address(w))
		names_look(&w->all->names);
	/* The next life of the daemon does not ask plugins. */
	w->save_due = w->save_due || (!err && plug_chooses_address(w));
	loop_defer_schedule(&w->defer);
}

static void plug_on_plugged(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	if (err || !plug_is_of_machine(w))
		plug_on_guest(w, err);
	else
		loop_defer_schedule(&w->defer);
}

void plug_tell_guest(struct workload *w, struct instance_link *ret)
{
	struct attachment *a = w->attachment;

	*ret = (struct instance_link){ .is_wanted = a && plug_is_of_machine(w) };
	if (!ret->is_wanted)
		return;
	a->guest_knows = guest_end_is_known(a);
	(void)str_printf(ret->name, sizeof(ret->name), "eth%u", a->eth);
	if (!a->guest_knows)
		return;
	ret->leads_out = a->leads_out;
	ret->mtu = a->network->mtu;
	memcpy(ret->mac, a->mac, sizeof(ret->mac));
	prefix_print(&a->ip4, ret->address);
	prefix_print_address(&a->network->gateway4, ret->gateway);
	if (a->ip6.family)
		prefix_print(&a->ip6, ret->address6);
}

static int plug_begin(struct workload *w, struct attachment *a, struct error *err)
{
	int fd = netns_open(w, err), r;

	if (fd < 0)
		return fd;
	r = attachment_plug(a, fd, plug_on_plugged, w);
	return r < 0 ? error_set(err, r, "connect %s to its network", w->path) : 0;
}

/* ---- out of it ---- */

static void plug_on_unplugged(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	(void)err;
	w->save_due = true;
	loop_defer_schedule(&w->defer);
}

/* A machine's, whose guest lets go of it first. */
struct plug_leaving {
	struct workload *workload;
	struct attachment *attachment;
	bool hands_on;
	plug_fn done;
	void *userdata;
};

/* Of the same pod, whom the default routes are to lead to. */
static struct attachment *plug_heir(const struct workload *w)
{
	struct attachment *heir = w->attachment;

	while (heir && !heir->leads_out)
		heir = heir->next;
	return heir && heir->state == ATTACHMENT_PLUGGED ? heir : NULL;
}

static int plug_withdraw_now(struct workload *w, struct attachment *a, struct attachment *heir,
			     plug_fn done, void *userdata)
{
	int fd = -1;

	/* A device that has no end here is removed there. */
	if ((heir || !network_passes_node(a->network)) && w->instance && !w->instance->ended)
		fd = netns_open(w, NULL);
	return attachment_withdraw(a, fd >= 0 ? heir : NULL, fd, done, userdata);
}

static void plug_leave(void *userdata, const struct error *err)
{
	struct plug_leaving l = *(struct plug_leaving *)userdata;

	if (err)
		log_warn("a pod that leaves a network is not as it should be",
			 LOG_STR("workload", l.workload->path), LOG_ERR(err));
	free(userdata);
	l.attachment->tells_guest = false;
	/* What cannot be begun is done when the workload turns. */
	if (plug_withdraw_now(l.workload, l.attachment, NULL, l.done, l.userdata) < 0)
		l.done(l.userdata, NULL);
}

static void plug_on_let_go(void *userdata, const struct error *err)
{
	struct plug_leaving *l = userdata;
	struct attachment *heir = l->hands_on ? plug_heir(l->workload) : NULL;

	l->attachment->tells_guest = true;
	if (err || !heir || heir->tells_guest ||
	    guest_tell(&l->workload->all->guests, l->workload, heir, plug_leave, l, NULL) < 0)
		plug_leave(l, err);
}

static int plug_withdraw_machine(struct workload *w, struct attachment *a, bool hands_on,
				 plug_fn done, void *userdata)
{
	struct plug_leaving *l = malloc(sizeof(*l));

	if (!l)
		return -ENOMEM;
	*l = (struct plug_leaving){ w, a, hands_on, done, userdata };
	if (guest_take_back(&w->all->guests, w, a, plug_on_let_go, l, NULL) == 0)
		return 0;
	free(l);
	return plug_withdraw_now(w, a, NULL, done, userdata);
}

int plug_withdraw(struct workload *w, struct attachment *a, bool may_lead, plug_fn done,
		  void *userdata)
{
	const bool hands_on = may_lead || a->leads_out;

	a->is_half = true;
	plug_choose_way_out(w);
	if (plug_is_of_machine(w))
		return plug_withdraw_machine(w, a, hands_on, done, userdata);
	return plug_withdraw_now(w, a, hands_on ? plug_heir(w) : NULL, done, userdata);
}

/* Whether its network namespace can be opened, and is not the node's, in which a keeper with a user
 * namespace stands at first. */
bool plug_stands(const struct workload *w)
{
	return !workload_has_ended(w) &&
	       (w->kind == WORKLOAD_CELL ||
		(w->instance && w->instance->pid > 0 && w->instance->state == INSTANCE_READY));
}

/* One that an earlier life of the daemon lent: with its namespace in hand it comes back, whatever
 * becomes of the pod. */
static void plug_hold_devices(struct workload *w)
{
	for (struct attachment *a = w->attachment; a; a = a->next)
		if (a->state == ATTACHMENT_PLUGGED && attachment_holds_netns(a) && a->home_fd < 0 &&
		    plug_stands(w))
			a->home_fd = netns_open(w, NULL);
}

/* What a change was at when the daemon ended, or could not undo. */
static void plug_take_halves_out(struct workload *w)
{
	if (w->change || workload_has_ended(w))
		return;
	for (struct attachment *a = w->attachment; a; a = a->next)
		if (a->is_half && a->state == ATTACHMENT_PLUGGED && !a->tells_guest &&
		    (!a->of_machine || plug_stands(w)))
			(void)plug_withdraw(w, a, true, plug_on_unplugged, w);
}

bool plug_is_released(struct workload *w)
{
	struct attachment *next;

	if (!w->attachment)
		return true;
	names_look(&w->all->names);
	for (struct attachment *a = w->attachment; a; a = next) {
		next = a->next;
		if (!a->tells_guest &&
		    (a->state == ATTACHMENT_RESERVED || a->state == ATTACHMENT_PLUGGED))
			attachment_unplug(a, plug_on_unplugged, w);
	}
	return !w->attachment;
}

/* ---- the turn of a workload ---- */

/* Whether the network namespace that its ports are made in is there. A keeper is cloned into its
 * own, but enters that of a user namespace by itself: before that it stands in the node's. That of
 * a machine may be replaced by another machine's until its guest has answered. */
bool plug_has_place(const struct workload *w)
{
	const struct instance *i = w->instance;

	if (w->kind == WORKLOAD_CELL)
		return w->netns && network_namespace_fd(w->netns, NULL) >= 0;
	return i && i->pid > 0 &&
	       ((!isolate_ids_are_set(&w->ids) && !plug_is_of_machine(w)) ||
		i->state == INSTANCE_READY);
}

static bool plug_awaits_guest(const struct attachment *a)
{
	return a->of_machine && a->state == ATTACHMENT_PLUGGED && !a->guest_knows;
}

int plug_is_awaited(struct workload *w, struct error *err)
{
	bool waits = false;
	int made;

	plug_hold_devices(w);
	plug_take_halves_out(w);
	if (w->state != WORKLOAD_STARTING)
		w->netns = network_namespace_free(w->netns);
	if (!w->attachment || w->state != WORKLOAD_STARTING)
		return 0;
	if (w->plug_failed)
		return w->refused ? error_copy(err, w->refused)
				  : error_set(err, -ENOMEM, "connect %s to its network", w->path);
	made = plug_make_netns(w, err);
	if (made != 0)
		return made;
	for (struct attachment *a = w->attachment; a; a = a->next) {
		if (a->state == ATTACHMENT_RESERVED && plug_has_place(w)) {
			int r = plug_begin(w, a, err);

			if (r < 0)
				return r;
		}
		if (plug_awaits_guest(a) && !a->tells_guest) {
			int r = guest_tell(&w->all->guests, w, a, plug_on_guest, w, err);

			if (r < 0)
				return r;
		}
		waits = waits || a->state == ATTACHMENT_RESERVED ||
			a->state == ATTACHMENT_PLUGGING || plug_awaits_guest(a);
	}
	return waits;
}
