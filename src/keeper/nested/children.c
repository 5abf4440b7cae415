/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/nested/children.h"

#include <errno.h>
#include <string.h>

#include "base/log/log.h"
#include "base/process/handover.h"
#include "base/text/parse.h"
#include "io/unix.h"
#include "keeper/nested/child_state.h"

static struct child *children_find(struct children *all, const char *name, size_t len)
{
	struct child *c;

	list_for_each (c, &all->list, struct child, link)
		if (strlen(c->name) == len && memcmp(c->name, name, len) == 0)
			return c;
	return NULL;
}

static size_t children_count(struct children *all, bool alive)
{
	struct child *c;
	size_t n = 0;

	list_for_each (c, &all->list, struct child, link)
		n += child_alive(c) == alive;
	return n;
}

static void children_forget_oldest(struct children *all)
{
	struct child *c;

	list_for_each (c, &all->list, struct child, link) {
		if (child_alive(c))
			continue;
		(void)child_free(c);
		return;
	}
}

static void children_check_shut(struct children *all)
{
	void (*shut)(void *userdata) = all->shut;

	if (!shut || children_count(all, true))
		return;
	all->shut = NULL;
	shut(all->config.userdata);
}

static void children_on_settled(void *userdata, struct child *c)
{
	struct children *all = userdata;

	if (c->unwanted) {
		(void)child_free(c);
	} else {
		log_info("a nested instance has ended", LOG_STR("instance", c->name),
			 LOG_STR("reason", c->reason));
		all->config.on_end(all->config.userdata, c->name, c->reason);
		if (children_count(all, false) > CHILDREN_ENDED_MAX)
			children_forget_oldest(all);
	}
	children_check_shut(all);
}

static int children_admit(struct children *all, const char *name, struct error *err)
{
	struct child *same;

	if (!name_is_label_of_any_case(name))
		return error_field(err, ERROR_INVALID, "name", "not a name of an object");
	same = children_find(all, name, strlen(name));
	if (same && child_alive(same))
		return error_refuse(err, ERROR_EXISTS, "instance %s exists", name);
	if (children_count(all, true) == CHILDREN_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%d instances exist here already",
				    CHILDREN_MAX);
	if (same)
		(void)child_free(same);
	return 0;
}

int children_spawn(struct children *all, const struct child_spec *spec, child_spawned_fn done,
		   void *userdata, struct error *err)
{
	struct child *c;
	int r;

	r = children_admit(all, spec->name, err);
	if (r < 0)
		return r;
	r = child_new(&c, &all->config.child, spec, done, userdata, err);
	if (r < 0)
		return r;
	list_add_tail(&all->list, &c->link);
	return 0;
}

void children_init(struct children *all, const struct children_config *config)
{
	*all = (struct children){ .config = *config };
	all->config.child.on_settled = children_on_settled;
	all->config.child.userdata = all;
	list_init(&all->list);
}

void children_done(struct children *all)
{
	struct child *c;

	list_for_each (c, &all->list, struct child, link) {
		child_kill(c);
		(void)child_free(c);
	}
}

int children_end(struct children *all, const char *name, void (*done)(void *userdata),
		 void *userdata)
{
	struct child *c = children_find(all, name, strlen(name));
	int r;

	if (!c || !child_alive(c)) {
		(void)child_free(c);
		done(userdata);
		return 0;
	}
	r = child_wait(c, done, userdata);
	if (r < 0)
		return r;
	child_end(c);
	return 0;
}

void children_shutdown(struct children *all, void (*done)(void *userdata))
{
	struct child *c;

	all->shut = done;
	list_for_each (c, &all->list, struct child, link)
		if (child_alive(c))
			child_end(c);
	children_check_shut(all);
}

static struct child *children_find_first(struct children *all, const char *target,
					 const char **ret_rest)
{
	size_t len = strcspn(target, "/");

	*ret_rest = target[len] ? target + len + 1 : target + len;
	return children_find(all, target, len);
}

int children_route(struct children *all, const char *target, struct rpc_client **ret_client,
		   const char **ret_rest, struct error *err)
{
	struct child *c = children_find_first(all, target, ret_rest);

	if (!c)
		return error_refuse(err, ERROR_NOT_FOUND, "no instance %.*s here",
				    (int)strcspn(target, "/"), target);
	if (c->state == CHILD_ENDED)
		return error_refuse(err, ERROR_NOT_FOUND, "instance %s has ended: %s", c->name,
				    c->reason);
	if (c->state != CHILD_RUNNING || !c->rpc)
		return error_refuse(err, ERROR_UNAVAILABLE, "instance %s does not run", c->name);
	*ret_client = c->rpc;
	return 0;
}

void children_forward(struct children *all, const struct fdchan_packet *packet)
{
	const char *rest;
	struct child *c = children_find_first(all, packet->target, &rest);
	int r = -ENOENT;

	if (c && c->state == CHILD_RUNNING && c->channel_fd >= 0)
		r = fdchan_send(c->channel_fd, packet->token, rest, packet->fd);
	/* The message that names it is answered with an error. */
	if (r < 0)
		log_debug("a descriptor could not be passed on", LOG_STR("target", packet->target),
			  LOG_STR("err", strerror(-r)));
}

void children_each(struct children *all,
		   void (*fn)(void *userdata, const char *name, int64_t pid, const char *reason),
		   void *userdata)
{
	struct child *c;

	list_for_each (c, &all->list, struct child, link) {
		if (c->state == CHILD_RUNNING)
			fn(userdata, c->name, c->process.pid, NULL);
		else if (c->state == CHILD_ENDED)
			fn(userdata, c->name, 0, c->reason);
	}
}

bool children_own(struct children *all, pid_t pid)
{
	struct child *c;

	list_for_each (c, &all->list, struct child, link)
		if (c->process.pidfd >= 0 && c->process.pid == pid)
			return true;
	return false;
}

/* ---- the next program ---- */

enum { CHILDREN_TAG_CHILD = HANDOVER_NESTED };

const char *children_busy(struct children *all)
{
	struct child *c;

	list_for_each (c, &all->list, struct child, link)
		if (child_busy(c))
			return child_busy(c);
	return NULL;
}

int children_write_state(struct children *all, struct handover_writer *w)
{
	struct child *c;
	size_t at;

	list_for_each (c, &all->list, struct child, link) {
		int r = handover_begin(w, CHILDREN_TAG_CHILD, &at);

		if (r == 0)
			r = child_write_state(w, c);
		if (r < 0)
			return r;
		handover_end(w, at);
	}
	return 0;
}

static int children_read_child(void *userdata, uint32_t tag, struct handover_reader *r,
			       struct error *err)
{
	struct children *all = userdata;
	struct child *c;
	int ret;

	if (tag != CHILDREN_TAG_CHILD)
		return -ENOENT;
	ret = child_read_state(r, &all->config.child, &c, err);
	if (ret < 0)
		return ret;
	if (r->trial) {
		(void)child_free(c);
		return 0;
	}
	list_add_tail(&all->list, &c->link);
	child_resume(c);
	return 0;
}

int children_read_state(struct children *all, struct handover_reader *r, struct error *err)
{
	return handover_read(r, "the instances", NULL, 0, all, children_read_child, all, err);
}
