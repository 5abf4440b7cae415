/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/plug.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/process.h"
#include "network/attach.h"
#include "network/driver.h"
#include "network/model.h"
#include "network/namespace.h"
#include "network/plug.h"
#include "pod/networks/etc_wish.h"
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
	return w->kind == WORKLOAD_POD && instance_kind_is_remote(w->choice.kind);
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
	struct network_wish own = *wish;
	unsigned eth = plug_free_eth(w);
	int r;

	own.id = w->id;
	own.of_machine = plug_is_of_machine(w);
	own.pod = own.pod ? own.pod : w->path;
	if (attachment_on(w->attachment, own.network))
		return error_field(err, ERROR_EXISTS, "network", "%s is on the network %s already",
				   w->path, own.network);
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

/* Of a process whose number may be another one's by now: only where it is in that group. */
static int plug_open_of_group(pid_t pid, const char *group)
{
	_cleanup_fd_ int proc_fd = process_open(pid, group);
	int fd;

	if (proc_fd < 0)
		return proc_fd;
	fd = sysio_openat(proc_fd, "ns/net", O_RDONLY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* Of an instance of this daemon by its pidfd, of a nested one by its group. */
static int plug_open_of_keeper(const struct instance *i, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char path[48];

	if (i->pidfd < 0) {
		fd = i->pid > 0 && i->cgroup[0] == '/' ? plug_open_of_group(i->pid, i->cgroup)
						       : -ESRCH;
	} else {
		(void)str_printf(path, sizeof(path), "/proc/%d/ns/net", (int)i->pid);
		fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	}
	if (fd < 0 || (i->pidfd >= 0 && pidfd_has_ended(i->pidfd)))
		return error_refuse(err, ERROR_UNAVAILABLE, "the keeper of %s has ended", i->path);
	return TAKE_FD(fd);
}

static int plug_open_of_container(struct pod_container *c)
{
	_cleanup_str_ char *group = pod_container_whole_group(c);
	pid_t pid = pod_container_pid(c);

	return group && pid > 0 ? plug_open_of_group(pid, group) : -ESRCH;
}

int plug_open_netns(const struct workload *w, struct error *err)
{
	int fd = -ESRCH;

	if (w->kind == WORKLOAD_POD)
		return plug_open_of_keeper(w->instance, err);
	if (w->netns)
		fd = fd_copy(network_namespace_fd(w->netns, NULL));
	for (size_t i = 0; i < w->n_containers && fd < 0; i++)
		if (w->containers[i]->status.state == CONTAINER_RUNNING)
			fd = plug_open_of_container(w->containers[i]);
	return fd >= 0 ? fd
		       : error_refuse(err, ERROR_UNAVAILABLE, "the containers of %s have ended",
				      w->path);
}

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

static void plug_on_plugged(void *userdata, const struct error *err)
{
	struct workload *w = userdata;

	if (err) {
		w->plug_failed = true;
		(void)failure_refuse(w, err);
	}
	if (!err && plug_chooses_address(w))
		names_look(&w->all->names);
	/* The next life of the daemon does not ask plugins. */
	w->save_due = w->save_due || (!err && plug_chooses_address(w));
	loop_defer_schedule(&w->defer);
}

void plug_tell_guest(const struct workload *w, struct instance_link *ret)
{
	const struct attachment *a = w->attachment;

	*ret = (struct instance_link){ .is_wanted = a && plug_is_of_machine(w) };
	if (!ret->is_wanted)
		return;
	ret->leads_out = a->leads_out;
	ret->mtu = a->network->mtu;
	memcpy(ret->mac, a->mac, sizeof(ret->mac));
	(void)str_printf(ret->name, sizeof(ret->name), "eth%u", a->eth);
	prefix_print(&a->ip4, ret->address);
	prefix_print_address(&a->network->gateway4, ret->gateway);
	if (a->ip6.family)
		prefix_print(&a->ip6, ret->address6);
}

static int plug_begin(struct workload *w, struct attachment *a, struct error *err)
{
	int fd = plug_open_netns(w, err), r;

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

int plug_withdraw(struct workload *w, struct attachment *a, bool may_lead, plug_fn done,
		  void *userdata)
{
	const bool hands_on = may_lead || a->leads_out;
	struct attachment *heir;
	int fd = -1;

	a->is_half = true;
	plug_choose_way_out(w);
	heir = hands_on ? w->attachment : NULL;
	while (heir && !heir->leads_out)
		heir = heir->next;
	if (heir && heir->state != ATTACHMENT_PLUGGED)
		heir = NULL;
	/* A device that has no end here is removed there. */
	if ((heir || !network_passes_node(a->network)) && w->instance && !w->instance->ended)
		fd = plug_open_netns(w, NULL);
	return attachment_withdraw(a, fd >= 0 ? heir : NULL, fd, done, userdata);
}

/* Whether its network namespace can be opened, and is not the node's, in which a keeper with a user
 * namespace stands at first. */
static bool plug_stands(const struct workload *w)
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
		if (a->state == ATTACHMENT_PLUGGED && attachment_is_lent(a) && a->home_fd < 0 &&
		    plug_stands(w))
			a->home_fd = plug_open_netns(w, NULL);
}

/* What a change was at when the daemon ended, or could not undo. */
static void plug_take_halves_out(struct workload *w)
{
	if (w->change || workload_has_ended(w))
		return;
	for (struct attachment *a = w->attachment; a; a = a->next)
		if (a->is_half && a->state == ATTACHMENT_PLUGGED)
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
		if (a->state == ATTACHMENT_RESERVED || a->state == ATTACHMENT_PLUGGED)
			attachment_unplug(a, plug_on_unplugged, w);
	}
	return !w->attachment;
}

/* ---- the turn of a workload ---- */

/* Whether the network namespace that its ports are made in is there. A keeper is cloned into its
 * own, but enters that of a user namespace by itself: before that it stands in the node's. That of
 * a machine may be replaced by another machine's until its guest has answered. */
static bool plug_has_place(const struct workload *w)
{
	const struct instance *i = w->instance;

	if (w->kind == WORKLOAD_CELL)
		return true;
	return i && i->pid > 0 &&
	       ((!isolate_ids_are_set(&w->ids) && !plug_is_of_machine(w)) ||
		i->state == INSTANCE_READY);
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
		waits = waits || a->state == ATTACHMENT_RESERVED || a->state == ATTACHMENT_PLUGGING;
	}
	return waits;
}
