/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/cgroup/flat.h"

#define USAGE_FILE_MAX ((size_t)256 * 1024)

struct usage_group {
	int fd;
	int r; /* what kept us from reading a file that is there: no memory, no descriptor */
};

static void usage_group_done(struct usage_group *g)
{
	g->fd = fd_close(g->fd);
}

/* A file of the group as text; NULL where there is none (the controller is off) or it cannot be
 * read. */
static char *usage_text(struct usage_group *g, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = fd_read_file(g->fd, name, USAGE_FILE_MAX, &b);
	char *text = r < 0 ? NULL : buf_take_str(&b);

	if (r == -EMFILE || r == -ENFILE || r == -ENOMEM)
		g->r = r;
	else if (r >= 0 && !text)
		g->r = -ENOMEM;
	return text;
}

/* A file that holds one number; "max" and a missing file are 0. */
static uint64_t usage_number(struct usage_group *g, const char *name)
{
	_cleanup_str_ char *text = usage_text(g, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

static void usage_read_cpu(const char *text, struct usage *u)
{
	u->cpu_total_us = flat_value(text, "usage_usec");
	u->cpu_user_us = flat_value(text, "user_usec");
	u->cpu_system_us = flat_value(text, "system_usec");
	u->cpu_throttled_us = flat_value(text, "throttled_usec");
	u->cpu_periods = flat_value(text, "nr_periods");
	u->cpu_periods_throttled = flat_value(text, "nr_throttled");
}

static void usage_read_swap(struct usage_group *g, struct usage *u)
{
	_cleanup_str_ char *current = usage_text(g, "memory.swap.current");

	if (!current)
		return;
	u->has_swap = true;
	u->swap_current = strtoull(current, NULL, 10);
	u->swap_limit = usage_number(g, "memory.swap.max");
}

static void usage_read_memory(struct usage_group *g, struct usage *u)
{
	_cleanup_str_ char *current = usage_text(g, "memory.current");
	_cleanup_str_ char *stat = NULL;
	_cleanup_str_ char *events = NULL;

	if (!current)
		return;
	stat = usage_text(g, "memory.stat");
	events = usage_text(g, "memory.events");
	u->has_memory = true;
	u->memory_current = strtoull(current, NULL, 10);
	u->memory_peak = usage_number(g, "memory.peak");
	u->memory_limit = usage_number(g, "memory.max");
	if (stat) {
		u->memory_file = flat_value(stat, "file");
		u->memory_anon = flat_value(stat, "anon");
		u->memory_kernel = flat_value(stat, "kernel");
		u->memory_inactive_file = flat_value(stat, "inactive_file");
	}
	if (events) {
		u->oom_kills = flat_value(events, "oom_kill");
		u->memory_max_hits = flat_value(events, "max");
	}
	usage_read_swap(g, u);
}

static void usage_read_pids(struct usage_group *g, struct usage *u)
{
	_cleanup_str_ char *current = usage_text(g, "pids.current");

	if (!current)
		return;
	u->has_pids = true;
	u->pids_current = strtoull(current, NULL, 10);
	u->pids_limit = usage_number(g, "pids.max");
}

static void usage_read_io(struct usage_group *g, struct usage *u)
{
	_cleanup_str_ char *stat = usage_text(g, "io.stat");

	if (!stat)
		return;
	u->has_io = true;
	u->read_bytes = flat_nested_sum(stat, "rbytes");
	u->written_bytes = flat_nested_sum(stat, "wbytes");
	u->reads = flat_nested_sum(stat, "rios");
	u->writes = flat_nested_sum(stat, "wios");
}

/* Every group has cpu.stat: it tells whether there is one at all. */
static int usage_open(int cgroup_fd, const char *path, struct usage_group *ret, char **ret_cpu)
{
	_cleanup_fd_ int group_fd =
		sysio_openat(cgroup_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	if (group_fd < 0)
		return -errno;
	r = fd_read_file(group_fd, "cpu.stat", USAGE_FILE_MAX, &b);
	if (r == -ENODEV)
		return -ENOENT; /* removed since it was opened */
	if (r < 0)
		return r;
	*ret_cpu = buf_take_str(&b);
	if (!*ret_cpu)
		return -ENOMEM;
	*ret = (struct usage_group){ .fd = TAKE_FD(group_fd) };
	return 0;
}

int usage_read(int cgroup_fd, const char *path, struct usage *ret)
{
	_cleanup_(usage_group_done) struct usage_group g = { .fd = -1 };
	_cleanup_str_ char *cpu = NULL;
	int r = usage_open(cgroup_fd, path, &g, &cpu);

	if (r < 0)
		return r;
	*ret = (struct usage){ .has_memory = false };
	usage_read_cpu(cpu, ret);
	usage_read_memory(&g, ret);
	usage_read_pids(&g, ret);
	usage_read_io(&g, ret);
	return g.r;
}

/* "MAJOR:MINOR " at the beginning of a line. */
static bool usage_device_of(const char *line, struct usage_device *d)
{
	char *end;

	d->major = (uint32_t)strtoul(line, &end, 10);
	if (end == line || *end != ':')
		return false;
	line = end + 1;
	d->minor = (uint32_t)strtoul(line, &end, 10);
	return end != line && *end == ' ';
}

static void usage_read_devices(struct usage_group *g, struct usage_details *u)
{
	_cleanup_str_ char *text = usage_text(g, "io.stat");
	char *save = NULL;

	if (!text)
		return;
	for (char *line = strtok_r(text, "\n", &save); line && u->n_devices < USAGE_DEVICES_MAX;
	     line = strtok_r(NULL, "\n", &save)) {
		struct usage_device *d = &u->devices[u->n_devices];

		/* A device that never had any traffic is a bare name. */
		if (!usage_device_of(line, d) || !strchr(line, '='))
			continue;
		d->read_bytes = flat_nested_sum(line, "rbytes");
		d->written_bytes = flat_nested_sum(line, "wbytes");
		d->reads = flat_nested_sum(line, "rios");
		d->writes = flat_nested_sum(line, "wios");
		d->discarded_bytes = flat_nested_sum(line, "dbytes");
		d->discards = flat_nested_sum(line, "dios");
		u->n_devices++;
	}
}

/* name: of a file; true if that is hugetlb.SIZE.current, of which *h then is. */
static bool usage_hugetlb_of(struct usage_group *g, const char *name, struct usage_hugetlb *h)
{
	_cleanup_str_ char *events = NULL;
	char file[64];
	size_t len;

	if (!str_has_prefix(name, "hugetlb.") || !str_has_suffix(name, "B.current"))
		return false;
	name += strlen("hugetlb.");
	len = strcspn(name, ".");
	if (len >= sizeof(h->size))
		return false;
	*h = (struct usage_hugetlb){ .current = 0 };
	memcpy(h->size, name, len);
	(void)str_printf(file, sizeof(file), "hugetlb.%s.current", h->size);
	h->current = usage_number(g, file);
	(void)str_printf(file, sizeof(file), "hugetlb.%s.max", h->size);
	h->limit = usage_number(g, file);
	(void)str_printf(file, sizeof(file), "hugetlb.%s.events", h->size);
	events = usage_text(g, file);
	h->failures = events ? flat_value(events, "max") : 0;
	return true;
}

static int usage_read_hugetlb(struct usage_group *g, struct usage_details *u)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int fd = sysio_openat(g->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r = fd < 0 ? -errno : fd_list_dir(fd, &names);

	if (r < 0)
		return r == -ENODEV ? -ENOENT : r;
	for (char **name = names; name && *name && u->n_hugetlb < USAGE_HUGETLB_MAX; name++)
		u->n_hugetlb += usage_hugetlb_of(g, *name, &u->hugetlb[u->n_hugetlb]);
	return 0;
}

/* "avg10=0.12" and so on, in hundredths: the kernel writes two digits behind the point. */
static uint32_t usage_hundredths(const char *line, const char *key)
{
	const char *at = strstr(line, key);
	unsigned long whole;
	char *end;

	if (!at)
		return 0;
	whole = strtoul(at + strlen(key) + 1, &end, 10);
	return (uint32_t)(whole * 100 + (*end == '.' ? strtoul(end + 1, NULL, 10) : 0));
}

static void usage_read_stall(struct usage_group *g, const char *text, const char *kind,
			     struct usage_stall *s)
{
	const char *start = strstr(text, kind);
	_cleanup_str_ char *line = start ? strndup(start, strcspn(start, "\n")) : NULL;

	if (start && !line)
		g->r = -ENOMEM;
	if (!line)
		return;
	s->avg10 = usage_hundredths(line, "avg10");
	s->avg60 = usage_hundredths(line, "avg60");
	s->avg300 = usage_hundredths(line, "avg300");
	s->total_us = flat_nested_sum(line, "total");
}

static void usage_read_pressure(struct usage_group *g, const char *file, struct usage_pressure *p)
{
	/* EOPNOTSUPP where the kernel was told to do without (psi=0). */
	_cleanup_str_ char *text = usage_text(g, file);

	if (!text)
		return;
	p->there = true;
	usage_read_stall(g, text, "some ", &p->some);
	usage_read_stall(g, text, "full ", &p->full);
}

static void usage_read_memory_details(struct usage_group *g, struct usage_details *u)
{
	_cleanup_str_ char *stat = usage_text(g, "memory.stat");

	if (!stat)
		return;
	u->memory_mapped = flat_value(stat, "file_mapped");
	u->memory_active_anon = flat_value(stat, "active_anon");
	u->memory_inactive_anon = flat_value(stat, "inactive_anon");
	u->memory_anon_huge = flat_value(stat, "anon_thp");
	u->page_faults = flat_value(stat, "pgfault");
	u->major_page_faults = flat_value(stat, "pgmajfault");
}

int usage_read_details(int cgroup_fd, const char *path, struct usage_details *ret)
{
	_cleanup_(usage_group_done) struct usage_group g = { .fd = -1 };
	_cleanup_str_ char *cpu = NULL;
	int r = usage_open(cgroup_fd, path, &g, &cpu);

	if (r < 0)
		return r;
	*ret = (struct usage_details){ .n_devices = 0 };
	usage_read_devices(&g, ret);
	usage_read_memory_details(&g, ret);
	usage_read_pressure(&g, "cpu.pressure", &ret->cpu);
	usage_read_pressure(&g, "memory.pressure", &ret->memory);
	usage_read_pressure(&g, "io.pressure", &ret->io);
	r = usage_read_hugetlb(&g, ret);
	return r < 0 ? r : g.r;
}
