/* SPDX-License-Identifier: Apache-2.0 */

/*
 * One statvfs() per look, on the loop thread; the trees are measured on the pool, where the room is
 * short, and else now and then: so there is a size to compare with when it becomes short, and one
 * to show. What all containers have grown by since then is compared with what the disk has lost.
 * Where the disk has lost more than twice that, somebody else writes, and nobody is killed for it.
 */

#include "pod/storage/disk_watch.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/memory/array.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/content/measure.h"
#include "image/image.h"
#include "image/rootfs/limited.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "pod/workload/workload.h"

/* No disk is assumed to be written faster. */
#define DISK_WATCH_RATE ((uint64_t)4 << 30) /* bytes a second */
#define DISK_WATCH_SOON (10 * NSEC_PER_MSEC)
#define DISK_WATCH_LATE (1 * NSEC_PER_SEC)
/* Measuring takes a hundredth of a processor at most. */
#define DISK_WATCH_MEASURE (2 * NSEC_PER_SEC)
#define DISK_WATCH_COST 100
/* Below this part of the reserve nobody is blamed for what is written. */
#define DISK_WATCH_STEP_PART 16
#define DISK_WATCH_STEP_MIN ((uint64_t)64 << 10)

/* What is measured for a container, or (container "") of the logs of a workload. */
struct disk_item {
	char workload[ID_SIZE];
	char container[ID_SIZE];
	uint64_t limit;
	struct measure measure;
};

struct disk_watch {
	struct disk_watch_config config;
	struct loop_timer timer;
	struct pool_work work;
	bool armed;
	bool stopped;
	bool warned;
	/* Of the measuring that is under way: */
	int containers_fd;
	struct disk_item *items;
	size_t n, size;
	nsec_t begun;
	bool low;               /* somebody is looked for */
	struct image_room room; /* as it was when that began */
	uint64_t fell;          /* what the disk had lost by then */
	/* Of the last one: */
	nsec_t measured_at; /* 0: there was none */
	nsec_t took;
	uint64_t most; /* that was free at a look since then */
};

static uint64_t disk_step(const struct image_room *room)
{
	return MAX(room->reserve / DISK_WATCH_STEP_PART, DISK_WATCH_STEP_MIN);
}

static bool disk_is_watched(const struct workload *w)
{
	return !workload_has_ended(w) && w->kind != WORKLOAD_VM;
}

/* ---- measuring ---- */

static int disk_add(struct disk_watch *d, const char *workload, const char *container)
{
	void *room = d->items;
	int r = array_grow(&room, d->n, &d->size, sizeof(*d->items));

	d->items = room;
	if (r < 0)
		return r;
	d->items[d->n] = (struct disk_item){ .measure = { 0 } };
	(void)str_copy(d->items[d->n].workload, ID_SIZE, workload);
	(void)str_copy(d->items[d->n].container, ID_SIZE, container);
	d->n++;
	return 0;
}

static int disk_add_all(struct disk_watch *d)
{
	const struct workload *w;
	int r = 0;

	d->n = 0;
	list_for_each (w, workloads_list(d->config.workloads), struct workload, link) {
		if (!disk_is_watched(w))
			continue;
		if (r == 0)
			r = disk_add(d, w->id, "");
		for (size_t i = 0; i < w->n_containers && r == 0; i++)
			if (w->containers[i]->has_rootfs)
				r = disk_add(d, w->id, w->containers[i]->id);
	}
	return r;
}

static void disk_measure_run(struct pool_work *work)
{
	struct disk_watch *d = container_of(work, struct disk_watch, work);

	for (size_t i = 0; i < d->n; i++) {
		struct disk_item *item = &d->items[i];
		int r = item->container[0]
				? limited_measure(&item->measure, d->containers_fd, item->container,
						  &item->limit)
				: measure_tree(&item->measure, d->config.logs_fd, item->workload);

		/* One that has gone meanwhile has nothing. */
		if (r < 0)
			item->measure.incomplete = true;
	}
}

static void disk_measure(struct disk_watch *d, const struct image_room *room, bool low)
{
	if (disk_add_all(d) < 0)
		return;
	d->low = low;
	d->room = *room;
	d->fell = d->most > room->free ? d->most - room->free : 0;
	d->most = room->free;
	d->begun = clock_mono();
	pool_submit(d->config.pool, &d->work);
}

/* What was not measured before, by this daemon, has not grown as far as it is known. */
static uint64_t disk_note(struct disk_written *written, const struct disk_item *item, bool fresh)
{
	uint64_t bytes = item->measure.bytes;
	uint64_t before = written->at || fresh ? written->bytes : bytes;

	*written =
		(struct disk_written){ .limit = item->limit, .bytes = bytes, .at = clock_real() };
	return bytes > before ? bytes - before : 0;
}

static void disk_take(struct workloads *all, const struct disk_item *item)
{
	struct workload *w = workloads_find_id(all, item->workload);

	if (!w || !disk_is_watched(w))
		return;
	if (!item->container[0]) {
		w->grown = disk_note(&w->log_written, item, !w->adopted);
		return;
	}
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_eq(w->containers[i]->id, item->container))
			w->grown += disk_note(&w->containers[i]->written, item, !w->adopted);
}

/* ---- who it is ---- */

static void disk_warn(struct disk_watch *d)
{
	if (d->warned)
		return;
	d->warned = true;
	log_warn("the disk of the root directory has less free than it should, and no container "
		 "has written so much lately",
		 LOG_INT("free", (int64_t)d->room.free), LOG_INT("floor", (int64_t)d->room.floor));
}

static void disk_kill(const struct disk_watch *d, struct workload *w)
{
	char reason[WORKLOAD_REASON_MAX];

	(void)str_printf(reason, sizeof(reason),
			 "it was killed since the disk of the root directory was nearly full: it "
			 "had written %.1f MB lately, and %.1f MB were free, of which %.1f MB stay "
			 "so (images.reserve; --disk limits one container)",
			 (double)w->grown / 1e6, (double)d->room.free / 1e6,
			 (double)d->room.reserve / 1e6);
	log_warn("a workload fills the disk, and is killed", LOG_STR("workload", w->path),
		 LOG_STR("reason", reason));
	workload_stop_for(w, reason);
}

static void disk_judge(struct disk_watch *d)
{
	uint64_t all = 0, theirs = 0, others;
	struct workload *w, *most = NULL;

	list_for_each (w, workloads_list(d->config.workloads), struct workload, link) {
		if (!disk_is_watched(w))
			continue;
		all += w->grown;
		/* It is on its way. */
		if (w->killed)
			continue;
		theirs += w->grown;
		if (!most || w->grown > most->grown)
			most = w;
	}
	others = d->fell > all ? d->fell - all : 0;
	if (most && theirs >= MAX(others, disk_step(&d->room)))
		disk_kill(d, most);
	else
		disk_warn(d);
}

static void disk_measured(struct pool_work *work)
{
	struct disk_watch *d = container_of(work, struct disk_watch, work);

	if (d->stopped)
		return;
	d->measured_at = clock_mono();
	d->took = d->measured_at - d->begun;
	for (size_t i = 0; i < d->n; i++)
		disk_take(d->config.workloads, &d->items[i]);
	if (d->low)
		disk_judge(d);
}

/* ---- looking ---- */

static bool disk_has_work(const struct disk_watch *d)
{
	const struct workload *w;

	list_for_each (w, workloads_list(d->config.workloads), struct workload, link)
		if (disk_is_watched(w))
			return true;
	return false;
}

static bool disk_is_due(const struct disk_watch *d)
{
	nsec_t every = MAX(DISK_WATCH_MEASURE, d->took * DISK_WATCH_COST);

	return !d->measured_at || clock_mono() - d->measured_at >= every;
}

static nsec_t disk_next(const struct image_room *room)
{
	uint64_t over = room->free > room->floor ? room->free - room->floor : 0;

	if (!room->reserve || over >= DISK_WATCH_RATE * DISK_WATCH_LATE / NSEC_PER_SEC)
		return DISK_WATCH_LATE;
	return MAX(DISK_WATCH_SOON, (nsec_t)over * NSEC_PER_SEC / DISK_WATCH_RATE);
}

static void disk_look(struct loop_timer *t)
{
	struct disk_watch *d = container_of(t, struct disk_watch, timer);
	struct image_room room;
	bool low;

	d->armed = disk_has_work(d);
	if (!d->armed)
		return;
	if (image_room_look(d->config.images, &room) < 0) {
		loop_timer_set(&d->timer, DISK_WATCH_LATE);
		return;
	}
	d->most = MAX(d->most, room.free);
	low = room.free < room.floor;
	d->warned = d->warned && low;
	if (!d->work.busy && ((low && d->most - room.free >= disk_step(&room)) || disk_is_due(d)))
		disk_measure(d, &room, low);
	image_ballast_restore(d->config.images);
	loop_timer_set(&d->timer, disk_next(&room));
}

void disk_watch_wake(struct disk_watch *d)
{
	if (d->armed || d->stopped)
		return;
	d->armed = true;
	/* What the disk has lost while nothing ran is not theirs. */
	d->most = 0;
	loop_timer_set(&d->timer, DISK_WATCH_SOON);
}

void disk_watch_stop(struct disk_watch *d)
{
	if (!d)
		return;
	d->stopped = true;
	loop_timer_stop(&d->timer);
}

int disk_watch_new(struct disk_watch **ret, const struct disk_watch_config *config)
{
	struct disk_watch *d = calloc(1, sizeof(*d));

	if (!d)
		return -ENOMEM;
	d->config = *config;
	d->containers_fd = image_containers_fd(config->images);
	d->work = (struct pool_work){ .run = disk_measure_run, .done = disk_measured };
	loop_timer_init(&d->timer, config->loop, disk_look);
	*ret = d;
	return 0;
}

struct disk_watch *disk_watch_free(struct disk_watch *d)
{
	if (!d)
		return NULL;
	loop_timer_done(&d->timer);
	free(d->items);
	free(d);
	return NULL;
}
