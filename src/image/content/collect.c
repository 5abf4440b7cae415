/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/collect.h"

#include "base/fault/failpoint.h"
#include "base/log/log.h"

bool collect_entry(const struct survey *s, const struct survey_entry *e, int64_t partial_seconds,
		   struct trash_watch *watch)
{
	if (!survey_is_garbage(s, e, partial_seconds))
		return false;
	FAILPOINT_BEFORE("image.collect");
	log_debug("is needed by nobody and goes", LOG_STR("kind", survey_kind_word(e->kind)),
		  LOG_STR("name", e->name));
	trash_add(s->store, survey_dir_fd(s, e), e->name, watch);
	FAILPOINT_AFTER("image.collect");
	return true;
}

static void collect_looked(struct survey *s, void *userdata)
{
	struct image_store *store = userdata;

	/* A look that failed is followed by another in an hour. */
	for (size_t i = 0; !s->err.code && i < s->n; i++)
		(void)collect_entry(s, &s->entries[i], PARTIAL_SECONDS_MAX, NULL);
	loop_timer_set(&store->collector, COLLECT_INTERVAL);
}

static void collect_look(struct loop_timer *timer)
{
	struct image_store *store = container_of(timer, struct image_store, collector);

	if (survey_start(store, false, collect_looked, store, NULL) < 0)
		loop_timer_set(timer, COLLECT_INTERVAL);
}

void collect_begin(struct image_store *s)
{
	loop_timer_init(&s->collector, s->config.loop, collect_look);
	loop_timer_set(&s->collector, COLLECT_INTERVAL);
}

void collect_done(struct image_store *s)
{
	/* A store that could not be opened has none. */
	if (s->open)
		loop_timer_done(&s->collector);
}
