/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "isolate/cgroup/cgroup_watch.h"
#include "isolate/cgroup/usage.h"
#include "oci/cmd/handlers.h"
#include "oci/launch/container.h"

/* ---- the form of the field's statistics ---- */

static void stats_pressure(struct json *j, const struct usage_pressure *p)
{
	static const char *const names[] = { "some", "full" };

	if (!p->there)
		return;
	json_put_object(j, "psi");
	for (int i = 0; i < 2; i++) {
		const struct usage_stall *s = i == 0 ? &p->some : &p->full;
		const uint32_t averages[] = { s->avg10, s->avg60, s->avg300 };
		static const char *const keys[] = { "avg10", "avg60", "avg300" };

		json_put_object(j, names[i]);
		for (int k = 0; k < 3; k++)
			json_put_real(j, keys[k], averages[k] / 100, averages[k] % 100);
		json_put_unsigned(j, "total", s->total_us);
		json_put_end(j);
	}
	json_put_end(j);
}

static void stats_cpu(struct json *j, const struct usage *u, const struct usage_details *d)
{
	json_put_object(j, "cpu");
	json_put_object(j, "usage");
	json_put_unsigned(j, "total", u->cpu_total_us * 1000);
	json_put_unsigned(j, "kernel", u->cpu_system_us * 1000);
	json_put_unsigned(j, "user", u->cpu_user_us * 1000);
	json_put_end(j);
	json_put_object(j, "throttling");
	json_put_unsigned(j, "periods", u->cpu_periods);
	json_put_unsigned(j, "throttledPeriods", u->cpu_periods_throttled);
	json_put_unsigned(j, "throttledTime", u->cpu_throttled_us * 1000);
	json_put_end(j);
	stats_pressure(j, &d->cpu);
	json_put_end(j);
}

static void stats_memory_entry(struct json *j, const char *key, uint64_t usage, uint64_t max,
			       uint64_t limit, uint64_t failures)
{
	json_put_object(j, key);
	json_put_unsigned(j, "limit", limit ? limit : UINT64_MAX);
	json_put_unsigned(j, "usage", usage);
	json_put_unsigned(j, "max", max);
	json_put_unsigned(j, "failcnt", failures);
	json_put_end(j);
}

static void stats_memory(struct json *j, const struct usage *u, const struct usage_details *d)
{
	json_put_object(j, "memory");
	if (u->has_memory) {
		json_put_unsigned(j, "cache", u->memory_file);
		stats_memory_entry(j, "usage", u->memory_current, u->memory_peak, u->memory_limit,
				   u->memory_max_hits);
		stats_memory_entry(j, "kernel", u->memory_kernel, 0, 0, 0);
		json_put_object(j, "raw");
		json_put_unsigned(j, "anon", u->memory_anon);
		json_put_unsigned(j, "file", u->memory_file);
		json_put_unsigned(j, "inactive_file", u->memory_inactive_file);
		json_put_end(j);
	}
	if (u->has_swap)
		stats_memory_entry(j, "swap", u->swap_current, 0, u->swap_limit, 0);
	stats_pressure(j, &d->memory);
	json_put_end(j);
}

static void stats_io_list(struct json *j, const char *key, const struct usage_details *d,
			  bool operations)
{
	json_put_array(j, key);
	for (size_t i = 0; i < d->n_devices; i++) {
		const struct usage_device *dev = &d->devices[i];

		for (int write = 0; write < 2; write++) {
			json_put_object(j, NULL);
			json_put_unsigned(j, "major", dev->major);
			json_put_unsigned(j, "minor", dev->minor);
			json_put_string(j, "op", write ? "Write" : "Read");
			if (operations)
				json_put_unsigned(j, "value", write ? dev->writes : dev->reads);
			else
				json_put_unsigned(j, "value",
						  write ? dev->written_bytes : dev->read_bytes);
			json_put_end(j);
		}
	}
	json_put_end(j);
}

static void stats_rest(struct json *j, const struct usage *u, const struct usage_details *d)
{
	json_put_object(j, "pids");
	if (u->has_pids) {
		json_put_unsigned(j, "current", u->pids_current);
		json_put_unsigned(j, "limit", u->pids_limit);
	}
	json_put_end(j);
	json_put_object(j, "blkio");
	stats_io_list(j, "ioServiceBytesRecursive", d, false);
	stats_io_list(j, "ioServicedRecursive", d, true);
	stats_pressure(j, &d->io);
	json_put_end(j);
	json_put_object(j, "hugetlb");
	for (size_t i = 0; i < d->n_hugetlb; i++) {
		json_put_object(j, d->hugetlb[i].size);
		json_put_unsigned(j, "usage", d->hugetlb[i].current);
		json_put_unsigned(j, "max", d->hugetlb[i].limit);
		json_put_unsigned(j, "failcnt", d->hugetlb[i].failures);
		json_put_end(j);
	}
	json_put_end(j);
}

static int events_stats(const struct container *c, int group, struct error *err)
{
	struct json j = { .to = stdout, .compact = true };
	struct usage_details d = { .n_devices = 0 };
	struct usage u = { .cpu_total_us = 0 };
	int r;

	r = usage_read(group, ".", &u);
	if (r == 0)
		r = usage_read_details(group, ".", &d);
	if (r < 0)
		return error_set(err, r, "read the statistics of \"%s\"", c->id);
	json_put_object(&j, NULL);
	json_put_string(&j, "type", "stats");
	json_put_string(&j, "id", c->id);
	json_put_object(&j, "data");
	stats_cpu(&j, &u, &d);
	stats_memory(&j, &u, &d);
	stats_rest(&j, &u, &d);
	json_put_end(&j);
	json_put_end(&j);
	(void)fflush(stdout);
	return 0;
}

/* ---- following ---- */

static void events_oom(const struct container *c)
{
	struct json j = { .to = stdout, .compact = true };

	json_put_object(&j, NULL);
	json_put_string(&j, "type", "oom");
	json_put_string(&j, "id", c->id);
	json_put_end(&j);
	(void)fflush(stdout);
}

struct following {
	const struct container *c;
	int group, pidfd;
	struct cgroup_watch oom;
	uint64_t oom_kills;
};

static void following_on_oom(struct following *f)
{
	uint64_t n = 0;

	if (cgroup_watch_read(&f->oom, "oom_kill", &n) < 0)
		return;
	if (n > f->oom_kills)
		events_oom(f->c);
	f->oom_kills = n;
}

/* Until the container has ended. */
static int events_follow(struct following *f, int interval_ms, struct error *err)
{
	nsec_t next = clock_mono();

	for (;;) {
		struct pollfd p[] = { { .fd = f->pidfd, .events = POLLIN },
				      { .fd = f->oom.poll_fd, .events = POLLIN | POLLPRI } };
		nsec_t now = clock_mono();
		int r;

		if (now >= next) {
			r = events_stats(f->c, f->group, err);
			if (r < 0)
				return r;
			next = now + (nsec_t)interval_ms * NSEC_PER_MSEC;
		}
		r = poll(p, ARRAY_SIZE(p), (int)((next - now) / NSEC_PER_MSEC) + 1);
		if (r < 0 && errno != EINTR)
			return error_set(err, -errno, "wait for events");
		if (r > 0 && p[1].revents)
			following_on_oom(f);
		if (r > 0 && p[0].revents)
			return EXIT_SUCCESS;
	}
}

int oci_events(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_fd_ int group = -1, pidfd = -1;
	struct following f = { .oom = CGROUP_WATCH_INIT };
	nsec_t interval = 5 * NSEC_PER_SEC;
	const char *text = args_value(args, "interval");
	int r;

	if (text && (parse_duration(text, &interval) < 0 || interval < NSEC_PER_MSEC ||
		     interval > 86400 * NSEC_PER_SEC))
		return error_refuse(err, ERROR_INVALID,
				    "--interval: \"%.40s\" is no time from 1ms to 24h", text);
	r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	pidfd = container_pidfd(&c);
	if (pidfd < 0)
		return error_refuse(err, ERROR_PRECONDITION, "container not running: \"%s\"", c.id);
	group = container_cgroup(&c, err);
	if (group < 0)
		return group;
	if (args_flag(args, "stats"))
		return events_stats(&c, group, err);
	f = (struct following){ .c = &c, .group = group, .pidfd = pidfd, .oom = CGROUP_WATCH_INIT };
	/* Without the memory controller nobody is killed for want of it. */
	if (cgroup_watch_open(&f.oom, group, "memory.events", NULL) == 0)
		(void)cgroup_watch_read(&f.oom, "oom_kill", &f.oom_kills);
	r = events_follow(&f, (int)(interval / NSEC_PER_MSEC), err);
	cgroup_watch_close(&f.oom);
	return r;
}
