/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/node/metrics.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/memory/array.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "image/image.h"
#include "instance/instance.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "network/attachment.h"
#include "pod/workload/events.h"
#include "pod/workload/workload.h"
#include "runtime/node/metrics_page.h"
#include "runtime/services.h"
#include "wire/message/scrape.h"

#define METRICS_FILE_MAX 4096

/* The files of the databases, which stay the same while the daemon runs. */
static const struct {
	const char *name;
	bool in_root;
} metrics_files[METRICS_SIZES] = {
	{ "root.db", true },
	{ "root.db-wal", true },
	{ "run.db", false },
	{ "run.db-wal", false },
};

struct scrape {
	struct metrics *metrics;
	struct pool_work work;
	struct loop_timer patience;
	struct arena arena;
	struct stats_look *look;
	struct metrics_snapshot snapshot;
	size_t size, measures_size;
	int fd;
	int result; /* of the thread */
};

struct metrics {
	struct metrics_config config;
	struct pool *pool; /* of one thread */
	struct scrape *scrape;
	uint64_t started_at;
	int file_fds[METRICS_SIZES]; /* O_PATH; -1: it is not there */
	unsigned n_late;
	bool was_too_long; /* and that was told */
};

/* ---- what the loop knows ---- */

/* NULL without memory. */
static struct metrics_row *scrape_add(struct scrape *s)
{
	void *rows = s->snapshot.rows;
	int r = array_grow(&rows, s->snapshot.n_rows, &s->size, sizeof(struct metrics_row));

	s->snapshot.rows = rows;
	if (r < 0)
		return NULL;
	s->snapshot.rows[s->snapshot.n_rows] = (struct metrics_row){ .health = "" };
	return &s->snapshot.rows[s->snapshot.n_rows++];
}

/* Both are in the order of their lists, and a row without an entry has ended. */
static const struct stats_entry *scrape_entry(const struct scrape *s, size_t *at, const char *id)
{
	if (*at < s->look->n && str_eq(s->look->entries[*at].id, id))
		return &s->look->entries[(*at)++];
	return NULL;
}

static int scrape_add_instance(struct scrape *s, const struct instance *i, size_t *at)
{
	struct metrics_row *row = scrape_add(s);

	if (!row)
		return -ENOMEM;
	row->id = arena_strdup(&s->arena, i->id);
	row->name = arena_strdup(&s->arena, i->path);
	row->kind = "instance";
	row->state = instance_state_word(i->state);
	row->created_at = i->created_at;
	row->entry = scrape_entry(s, at, i->id);
	return row->id && row->name ? 0 : -ENOMEM;
}

static int scrape_add_container(struct scrape *s, const struct pod_container *c, const char *path,
				size_t *at)
{
	struct metrics_row *row = scrape_add(s);

	if (!row)
		return -ENOMEM;
	row->id = arena_strdup(&s->arena, c->id);
	row->name = arena_strdup(&s->arena, c->name);
	row->workload = path;
	row->state = pod_container_state_word(c);
	row->health = health_word(c->health_status);
	row->created_at = c->created_at;
	row->started_at = c->status.started_at;
	row->finished_at = c->status.finished_at;
	row->log_lost = c->status.log_lost;
	row->has_ended = c->status.finished_at > 0 && pod_container_has_ended(c);
	row->exit_code = c->status.exit_code;
	row->was_out_of_memory = str_eq(c->status.reason, CONTAINER_OUT_OF_MEMORY);
	row->entry = scrape_entry(s, at, c->id);
	return row->id && row->name ? 0 : -ENOMEM;
}

static void scrape_add_links(struct metrics_row *row, const struct workload *w)
{
	for (const struct attachment *a = w->attachment; a && row->n_links < METRICS_LINKS_MAX;
	     a = a->next) {
		struct metrics_link *link = &row->links[row->n_links];

		if (a->state != ATTACHMENT_PLUGGED || a->index == 0)
			continue;
		link->index = a->index;
		(void)str_printf(link->device, sizeof(link->device), "eth%u", a->eth);
		row->n_links++;
	}
}

static int scrape_add_workload(struct scrape *s, const struct workload *w, size_t *at)
{
	struct metrics_row *row = scrape_add(s);
	char *path = row ? arena_strdup(&s->arena, w->path) : NULL;
	int r = 0;

	if (!path)
		return -ENOMEM;
	row->id = arena_strdup(&s->arena, w->id);
	row->name = path;
	row->kind = workload_kind_word(w->kind);
	row->state = workload_state_word(w->state);
	row->created_at = w->created_at;
	row->has_restarts = true;
	row->restarts = w->restart_count;
	row->entry = scrape_entry(s, at, w->id);
	scrape_add_links(row, w);
	if (!row->id)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < w->n_containers; i++)
		r = scrape_add_container(s, w->containers[i], path, at);
	return r;
}

static int scrape_add_rows(struct scrape *s)
{
	struct workload_service *work = s->metrics->config.work;
	const struct instance *i;
	const struct workload *w;
	size_t at = 0;
	int r = stats_look_add_all(s->look, work);

	list_for_each (i, instances_list(work->instances), struct instance, link)
		if (r == 0 && i->path[0] && !i->owner[0])
			r = scrape_add_instance(s, i, &at);
	list_for_each (w, workloads_list(work->workloads), struct workload, link)
		if (r == 0)
			r = scrape_add_workload(s, w, &at);
	return r;
}

static void scrape_add_measure(void *userdata, const struct rpc_measure *m)
{
	struct scrape *s = userdata;
	void *measures = s->snapshot.measures;
	struct rpc_measure *copy;

	if (s->result == 0)
		s->result = array_grow(&measures, s->snapshot.n_measures, &s->measures_size,
				       sizeof(*copy));
	s->snapshot.measures = measures;
	if (s->result < 0)
		return;
	copy = &s->snapshot.measures[s->snapshot.n_measures];
	*copy = *m;
	copy->path = arena_strdup(&s->arena, m->path);
	if (copy->path)
		s->snapshot.n_measures++;
	else
		s->result = -ENOMEM;
}

static void scrape_look(struct scrape *s)
{
	const struct metrics_config *c = &s->metrics->config;
	const struct image *image;

	list_for_each (image, image_store_list(c->images), struct image, link) {
		s->snapshot.n_images++;
		s->snapshot.image_bytes += image->size;
	}
	s->snapshot.load = rpc_server_load(c->server);
	s->snapshot.pool = pool_load(c->pool);
	s->snapshot.events = c->work->events->sequence;
	s->snapshot.started_at = s->metrics->started_at;
	s->result = scrape_add_rows(s);
	if (s->result == 0)
		rpc_server_each_measure(c->server, scrape_add_measure, s);
}

/* ---- what a thread reads ---- */

static int link_compare(const void *a, const void *b)
{
	const struct link *x = a, *y = b;

	return (x->index > y->index) - (x->index < y->index);
}

static void scrape_read_links(struct scrape *s)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link *all = NULL;
	size_t n = 0;

	if (netlink_open(&nl, NULL) < 0 || link_list(&nl, &all, &n, NULL) < 0)
		return;
	qsort(all, n, sizeof(*all), link_compare);
	for (size_t i = 0; i < s->snapshot.n_rows; i++) {
		struct metrics_row *row = &s->snapshot.rows[i];

		for (size_t k = 0; k < row->n_links; k++) {
			const struct link key = { .index = row->links[k].index };
			const struct link *found =
				bsearch(&key, all, n, sizeof(*all), link_compare);

			row->links[k].is_there = found;
			if (found)
				row->links[k].counters = found->counters;
		}
	}
	free(all);
}

static void scrape_read_disks(struct scrape *s)
{
	const struct metrics_config *c = &s->metrics->config;
	const int fds[METRICS_DISKS] = { c->root_fd, c->run_fd };
	static const char *const names[METRICS_DISKS] = { "root", "run" };

	for (size_t i = 0; i < METRICS_SIZES; i++) {
		struct metrics_size *size = &s->snapshot.sizes[i];
		struct stat st;

		size->name = metrics_files[i].name;
		size->is_there =
			s->metrics->file_fds[i] >= 0 && fstat(s->metrics->file_fds[i], &st) == 0;
		size->bytes = size->is_there ? (uint64_t)st.st_size : 0;
	}
	for (size_t i = 0; i < METRICS_DISKS; i++) {
		struct metrics_disk *disk = &s->snapshot.disks[i];
		struct statvfs st;

		disk->directory = names[i];
		disk->is_there = fstatvfs(fds[i], &st) == 0;
		if (!disk->is_there)
			continue;
		disk->bytes = (uint64_t)st.f_blocks * st.f_frsize;
		disk->free = (uint64_t)st.f_bfree * st.f_frsize;
	}
}

static uint64_t timeval_us(const struct timeval *t)
{
	return (uint64_t)t->tv_sec * 1000000 + (uint64_t)t->tv_usec;
}

/* The two first numbers of /proc/self/statm are pages. */
static void scrape_read_memory(struct scrape *s)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), pages[2] = { 0 };
	char *at;

	if (fd_read_file(AT_FDCWD, "/proc/self/statm", METRICS_FILE_MAX, &b) < 0)
		return;
	text = buf_take_str(&b);
	at = text;
	for (size_t i = 0; text && i < ARRAY_SIZE(pages); i++)
		pages[i] = strtoull(at, &at, 10);
	if (!text)
		return;
	s->snapshot.virtual = pages[0] * page;
	s->snapshot.resident = pages[1] * page;
}

static void scrape_read_process(struct scrape *s)
{
	_cleanup_fd_ int fd =
		sysio_openat(AT_FDCWD, "/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	_cleanup_strv_ char **names = NULL;
	struct rusage usage;
	struct rlimit limit;

	/* Without the one that it is read through. */
	if (fd >= 0 && fd_list_dir(fd, &names) == 0)
		s->snapshot.descriptors = strv_len(names) - 1;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0)
		s->snapshot.descriptors_max = limit.rlim_cur;
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		s->snapshot.cpu_us = timeval_us(&usage.ru_utime) + timeval_us(&usage.ru_stime);
	scrape_read_memory(s);
}

/* The reader is a process of ours that may have been taken over: it cannot hold the thread for
 * ever. */
static void scrape_write(struct scrape *s, const struct buf *page)
{
	const struct timeval patience = { .tv_sec = METRICS_WRITE_PATIENCE / NSEC_PER_SEC };
	nsec_t until = clock_mono() + METRICS_WRITE_PATIENCE;
	size_t at = 0;
	ssize_t n = 0;

	if (fd_set_nonblock(s->fd, false) < 0 ||
	    setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience)) < 0)
		return;
	while (at < page->len && n >= 0 && clock_mono() < until) {
		n = send(s->fd, buf_data(page) + at, page->len - at, MSG_NOSIGNAL);
		at += n > 0 ? (size_t)n : 0;
	}
}

static void scrape_run(struct pool_work *work)
{
	struct scrape *s = container_of(work, struct scrape, work);
	_cleanup_(buf_done) struct buf page = BUF_INIT_LIMIT(SCRAPE_PAGE_MAX);

	stats_look_read(s->look);
	scrape_read_links(s);
	scrape_read_disks(s);
	scrape_read_process(s);
	s->result = metrics_page(&s->snapshot, &page);
	if (s->result == 0)
		scrape_write(s, &page);
}

/* ---- from the question to the answer ---- */

static void scrape_free(struct scrape *s)
{
	s->metrics->scrape = NULL;
	loop_timer_done(&s->patience);
	(void)stats_look_free(s->look);
	arena_done(&s->arena);
	free(s->snapshot.rows);
	free(s->snapshot.measures);
	(void)fd_close(s->fd);
	free(s);
}

static void scrape_done(struct pool_work *work)
{
	struct scrape *s = container_of(work, struct scrape, work);
	struct metrics *m = s->metrics;
	struct error err = ERROR_INIT;

	if (s->result < 0 && !m->was_too_long) {
		(void)error_set(&err, s->result, "make the page");
		log_warn("a scrape of the metrics was not answered", LOG_ERR(&err));
	}
	m->was_too_long = s->result < 0;
	scrape_free(s);
}

static void scrape_submit(struct scrape *s)
{
	loop_timer_stop(&s->patience);
	stats_look_close(s->look);
	s->work = (struct pool_work){ .run = scrape_run, .done = scrape_done };
	pool_submit(s->metrics->pool, &s->work);
}

static void scrape_ready(void *userdata)
{
	scrape_submit(userdata);
}

static void scrape_patience_over(struct loop_timer *t)
{
	scrape_submit(container_of(t, struct scrape, patience));
}

void metrics_scrape(struct metrics *m, int fd)
{
	_cleanup_fd_ int owned = fd;
	struct scrape *s = m->scrape || !m->pool ? NULL : calloc(1, sizeof(*s));

	if (!s)
		return;
	s->look = stats_look_new(m->config.work, &m->n_late);
	s->metrics = m;
	s->fd = TAKE_FD(owned);
	m->scrape = s;
	loop_timer_init(&s->patience, m->config.loop, scrape_patience_over);
	if (s->look)
		scrape_look(s);
	if (!s->look || s->result < 0) {
		scrape_free(s);
		return;
	}
	if (m->n_late >= METRICS_LATE_MAX) {
		scrape_submit(s);
		return;
	}
	loop_timer_set(&s->patience, METRICS_KEEPERS_PATIENCE);
	stats_look_ask(s->look, scrape_ready, s);
}

int metrics_new(struct metrics **ret, const struct metrics_config *config)
{
	struct metrics *m = calloc(1, sizeof(*m));
	int r;

	if (!m)
		return -ENOMEM;
	m->config = *config;
	m->started_at = clock_real();
	for (size_t i = 0; i < METRICS_SIZES; i++)
		m->file_fds[i] =
			rootfd_point(metrics_files[i].in_root ? config->root_fd : config->run_fd,
				     metrics_files[i].name);
	r = pool_new(&m->pool, config->loop, 1);
	if (r == 0)
		r = rpc_server_measure(config->server);
	if (r < 0) {
		(void)metrics_free(m);
		return r;
	}
	*ret = m;
	return 0;
}

void metrics_stop(struct metrics *m)
{
	if (!m)
		return;
	m->pool = pool_free(m->pool);
	if (m->scrape)
		scrape_free(m->scrape);
}

struct metrics *metrics_free(struct metrics *m)
{
	if (!m)
		return NULL;
	metrics_stop(m);
	for (size_t i = 0; i < METRICS_SIZES; i++)
		m->file_fds[i] = fd_close(m->file_fds[i]);
	free(m);
	return NULL;
}
