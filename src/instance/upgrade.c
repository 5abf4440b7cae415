/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/upgrade.h"

#include "base/log/log.h"
#include "base/process/build_id.h"
#include "base/text/str.h"

#define UPGRADE_DELAY_MIN (50 * NSEC_PER_MSEC)
#define UPGRADE_DELAY_MAX (10 * NSEC_PER_SEC)

/* Whether it may still become another build. */
static bool upgrade_open(const struct instance *i)
{
	return i->state == INSTANCE_READY && i->peer && i->synced && !i->mute && !i->broken &&
	       !i->told_end && !i->upgrade_over;
}

static void upgrade_note(struct instance *i, const char *why)
{
	const struct peer_hello *hello = i->peer->ops->hello(i->peer);

	i->upgrade_over = true;
	(void)str_printf(i->note, sizeof(i->note),
			 "its keeper goes on as build %.12s of version %s: %.400s",
			 hello->build[0] ? hello->build : "?", hello->version, why);
	log_warn("a keeper stays the build that it is", LOG_STR("instance", i->path),
		 LOG_STR("build", hello->build), LOG_STR("reason", why));
	i->all->config.on_note(i->all->config.userdata, i);
}

static bool upgrade_wanted(struct instance *i)
{
	const struct peer_hello *hello;

	if (!upgrade_open(i) || !build_id()[0])
		return false;
	hello = i->peer->ops->hello(i->peer);
	if (str_eq(hello->build, build_id()))
		return false;
	if (!hello->can_upgrade) {
		upgrade_note(i, "that cannot be exchanged in place");
		return false;
	}
	return true;
}

static void upgrade_later(struct instance *i)
{
	i->upgrade_delay =
		i->upgrade_delay ? MIN(i->upgrade_delay * 2, UPGRADE_DELAY_MAX) : UPGRADE_DELAY_MIN;
	i->upgrade_at = clock_mono() + i->upgrade_delay;
}

static void upgrade_failed(struct instance *i, const struct error *err)
{
	if (err->kind == ERROR_ABORTED || err->kind == ERROR_UNAVAILABLE) {
		log_debug("a keeper is asked again to go on as this build",
			  LOG_STR("instance", i->path), LOG_ERR(err));
		upgrade_later(i);
		return;
	}
	upgrade_note(i, error_text(err));
}

static void upgrade_on_done(void *userdata, const struct error *err)
{
	struct instance *i = userdata;

	upgrade_forget(i);
	if (err)
		upgrade_failed(i, err);
	else
		log_info("a keeper goes on as this build", LOG_STR("instance", i->path),
			 LOG_INT("pid", i->pid), LOG_STR("build", build_id()));
	i->all->config.on_note(i->all->config.userdata, i);
	/* What waited for this one, or for a place. */
	loop_timer_set(&i->all->upgrade_timer, 0);
}

static void upgrade_begin(struct instance *i)
{
	const struct peer_upgrade how = {
		.exe_fd = i->all->exe_fd,
		.build = build_id(),
	};
	struct error err = ERROR_INIT;

	if (i->peer->ops->upgrade(i->peer, &how, upgrade_on_done, i, &err) < 0) {
		upgrade_failed(i, &err);
		return;
	}
	i->upgrading = true;
	i->all->n_upgrading++;
}

bool upgrade_pending(struct instance *i)
{
	return i->upgrading || (i->upgrade_at == 0 && upgrade_wanted(i));
}

static const struct instance *upgrade_top(const struct instance *i)
{
	while (!instance_is_own(i) && i->parent)
		i = i->parent;
	return i;
}

/* Those below one top share its connection, on which one is asked at a time. That is nobody's
 * failure, so it must not count as one: who is next begins when that one is done. */
static bool upgrade_must_queue(const struct instance *i)
{
	const struct instance *other;

	if (i->all->n_upgrading == 0)
		return false;
	list_for_each (other, &i->all->list, struct instance, link)
		if (other->upgrading && upgrade_top(other) == upgrade_top(i))
			return true;
	return false;
}

static void upgrade_on_timer(struct loop_timer *t)
{
	struct instances *all = container_of(t, struct instances, upgrade_timer);
	nsec_t now = clock_mono(), next = NSEC_NEVER;
	struct instance *i;

	list_for_each (i, &all->list, struct instance, link) {
		if (i->upgrading || !upgrade_wanted(i))
			continue;
		/* The one above first: it looks when that is done. */
		if (i->parent && (i->parent->upgrading || upgrade_wanted(i->parent)))
			continue;
		if (upgrade_must_queue(i))
			continue;
		if (i->upgrade_at <= now && all->n_upgrading < UPGRADES_MAX)
			upgrade_begin(i);
		if (!i->upgrading && !i->upgrade_over && i->upgrade_at > now)
			next = MIN(next, i->upgrade_at - now);
	}
	loop_timer_set(&all->upgrade_timer, next);
}

void upgrade_consider(struct instance *i)
{
	if (!i->upgrading)
		loop_timer_set(&i->all->upgrade_timer, 0);
}

void upgrade_forget(struct instance *i)
{
	if (!i->upgrading)
		return;
	i->upgrading = false;
	i->all->n_upgrading--;
}

void upgrades_init(struct instances *all)
{
	loop_timer_init(&all->upgrade_timer, all->config.loop, upgrade_on_timer);
}

void upgrades_done(struct instances *all)
{
	loop_timer_done(&all->upgrade_timer);
}
