/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/usage.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"

#define USAGE_FILE_MAX ((size_t)256 * 1024)

/* A file of the group as text; NULL where there is none (the controller is off) or it cannot be
 * read. */
static char *usage_text(int group_fd, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	if (fd_read_file(group_fd, name, USAGE_FILE_MAX, &b) < 0)
		return NULL;
	return buf_take_str(&b);
}

/* A file that holds one number; "max" and a missing file are 0. */
static uint64_t usage_number(int group_fd, const char *name)
{
	_cleanup_str_ char *text = usage_text(group_fd, name);

	return text ? strtoull(text, NULL, 10) : 0;
}

uint64_t usage_flat_value(const char *text, const char *key)
{
	size_t len = strlen(key);

	for (const char *line = text; *line;) {
		const char *end = strchr(line, '\n');

		if (strncmp(line, key, len) == 0 && line[len] == ' ')
			return strtoull(line + len + 1, NULL, 10);
		if (!end)
			break;
		line = end + 1;
	}
	return 0;
}

uint64_t usage_nested_sum(const char *text, const char *key)
{
	size_t len = strlen(key);
	uint64_t sum = 0;

	/* Every pair stands behind a blank: a line begins with the device. */
	for (const char *at = strchr(text, ' '); at; at = strchr(at + 1, ' ')) {
		if (strncmp(at + 1, key, len) == 0 && at[1 + len] == '=')
			sum += strtoull(at + len + 2, NULL, 10);
	}
	return sum;
}

static void usage_read_memory(int group_fd, struct usage *u)
{
	_cleanup_str_ char *current = usage_text(group_fd, "memory.current");
	_cleanup_str_ char *stat = NULL;
	_cleanup_str_ char *events = NULL;

	if (!current)
		return;
	stat = usage_text(group_fd, "memory.stat");
	events = usage_text(group_fd, "memory.events");
	u->has_memory = true;
	u->memory_current = strtoull(current, NULL, 10);
	u->memory_peak = usage_number(group_fd, "memory.peak");
	u->memory_limit = usage_number(group_fd, "memory.max");
	u->memory_file = stat ? usage_flat_value(stat, "file") : 0;
	u->memory_anon = stat ? usage_flat_value(stat, "anon") : 0;
	u->oom_kills = events ? usage_flat_value(events, "oom_kill") : 0;
}

static void usage_read_pids(int group_fd, struct usage *u)
{
	_cleanup_str_ char *current = usage_text(group_fd, "pids.current");

	if (!current)
		return;
	u->has_pids = true;
	u->pids_current = strtoull(current, NULL, 10);
	u->pids_limit = usage_number(group_fd, "pids.max");
}

static void usage_read_io(int group_fd, struct usage *u)
{
	_cleanup_str_ char *stat = usage_text(group_fd, "io.stat");

	if (!stat)
		return;
	u->has_io = true;
	u->read_bytes = usage_nested_sum(stat, "rbytes");
	u->written_bytes = usage_nested_sum(stat, "wbytes");
	u->reads = usage_nested_sum(stat, "rios");
	u->writes = usage_nested_sum(stat, "wios");
}

int usage_read(int cgroup_fd, const char *path, struct usage *ret)
{
	_cleanup_fd_ int group_fd =
		sysio_openat(cgroup_fd, path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *cpu = NULL;
	int r;

	if (group_fd < 0)
		return -errno;
	r = fd_read_file(group_fd, "cpu.stat", USAGE_FILE_MAX, &b);
	if (r == -ENODEV)
		return -ENOENT; /* removed since it was opened */
	if (r < 0)
		return r;
	cpu = buf_take_str(&b);
	if (!cpu)
		return -ENOMEM;
	*ret = (struct usage){
		.cpu_total_us = usage_flat_value(cpu, "usage_usec"),
		.cpu_user_us = usage_flat_value(cpu, "user_usec"),
		.cpu_system_us = usage_flat_value(cpu, "system_usec"),
		.cpu_throttled_us = usage_flat_value(cpu, "throttled_usec"),
	};
	usage_read_memory(group_fd, ret);
	usage_read_pids(group_fd, ret);
	usage_read_io(group_fd, ret);
	return 0;
}
