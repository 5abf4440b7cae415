/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/steps/steps_user.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/steps/sysctl_set.h"

/*
 * Should: wait until the spawner has mapped the ids of the new user namespace, before which this
 * process is nobody in it. Must not: wait for ever: where the spawner has gone, the pipe ends.
 */
int isolate_step_ids(struct isolate_steps *s, struct error *err)
{
	char byte;
	ssize_t n;

	if (s->sync_fd < 0)
		return 0;
	s->sync_write_fd = fd_close(s->sync_write_fd);
	do
		n = sysio_read(s->sync_fd, &byte, 1);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return error_set(err, -errno, "read");
	if (n == 0)
		return error_set(err, -ESRCH, "the spawner is gone");
	s->sync_fd = fd_close(s->sync_fd);
	return 0;
}

/* Sees that the kernel has taken an offset. text: lines of "NAME SEC NSEC". */
static bool steps_time_has(const char *text, const char *name,
			   const struct isolate_time_offset *offset)
{
	const char *at = strstr(text, name);
	char *end;

	if (!offset->set)
		return true;
	if (!at)
		return false;
	if (strtoll(at + strlen(name), &end, 10) != offset->sec)
		return false;
	return strtoll(end, NULL, 10) == (long long)offset->nsec;
}

/* Appends an offset to what will be written, which is one piece: the kernel takes no second. */
static int steps_time_add(char *text, size_t size, const char *name,
			  const struct isolate_time_offset *offset)
{
	size_t len = strlen(text);
	int r;

	if (!offset->set)
		return 0;
	r = str_printf(text + len, size - len, "%s %lld %u\n", name, (long long)offset->sec,
		       offset->nsec);
	return r < 0 ? r : 0;
}

static int steps_time_write(const struct isolate_steps *s)
{
	_cleanup_fd_ int fd = rootfd_open_beneath(s->proc_fd, "self/timens_offsets", O_WRONLY);
	char text[160] = "";
	int r;

	r = steps_time_add(text, sizeof(text), "monotonic", &s->plan->monotonic);
	if (r == 0)
		r = steps_time_add(text, sizeof(text), "boottime", &s->plan->boottime);
	if (r < 0 || fd < 0)
		return r < 0 ? r : fd;
	return sysio_write(fd, text, strlen(text)) < 0 ? -errno : 0;
}

static int steps_time_offsets(const struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	_cleanup_fd_ int fd = -1;
	char text[256];
	ssize_t n;
	int r;

	if (!p->monotonic.set && !p->boottime.set)
		return 0;
	r = steps_time_write(s);
	if (r == -ERANGE)
		return error_refuse(err, ERROR_INVALID, "an offset is past what a clock can show");
	if (r < 0)
		return error_set(err, r, "write timens_offsets");
	fd = rootfd_open_beneath(s->proc_fd, "self/timens_offsets", O_RDONLY);
	n = fd < 0 ? -1 : sysio_read(fd, text, sizeof(text) - 1);
	if (n < 0)
		return error_set(err, fd < 0 ? fd : -errno, "read timens_offsets");
	text[n] = '\0';
	if (!steps_time_has(text, "monotonic", &p->monotonic) ||
	    !steps_time_has(text, "boottime", &p->boottime))
		return error_set(err, -EIO, "read timens_offsets back");
	return 0;
}

/*
 * Should: make the time namespace, set its clocks, and be in it, since the fork of a keeper or hook
 * and the exec differ in when they enter (from 6.0 on the exec enters by itself). Must not: be left
 * to the clone, which freezes the offsets before anybody could write them; come behind the change
 * of ids, from which on the files of this process below /proc belong to somebody else.
 */
int isolate_step_time(struct isolate_steps *s, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	int r;

	if (s->plan->ns[ISOLATE_NS_TIME] != ISOLATE_NEW)
		return 0;
	if (unshare(CLONE_NEWTIME) < 0)
		return error_set(err, -errno, "unshare");
	r = steps_time_offsets(s, err);
	if (r < 0)
		return r;
	fd = sysio_openat(s->proc_fd, "thread-self/ns/time_for_children", O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return error_set(err, -errno, "open time_for_children");
	return setns(fd, CLONE_NEWTIME) < 0 ? error_set(err, -errno, "setns") : 0;
}

/* Root where it is mapped; else the first id that is. */
static uint32_t steps_first_id(const struct isolate_id_map *map, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (map[i].inside == 0)
			return 0;
	return n ? map[0].inside : 0;
}

/*
 * Should: own what it makes from here on as an id of the user namespace, and have none of the
 * spawner's groups. Must not: fail in a joined namespace that lacks root: there the ids stay until
 * the program's are set.
 */
int isolate_step_inside(struct isolate_steps *s, struct error *err)
{
	const struct isolate_plan *p = s->plan;
	bool joined = p->ns[ISOLATE_NS_USER] == ISOLATE_JOIN;
	uid_t uid = steps_first_id(p->uid_map, p->n_uid_map);
	gid_t gid = steps_first_id(p->gid_map, p->n_gid_map);

	if (p->ns[ISOLATE_NS_USER] == ISOLATE_KEEP)
		return 0;
	if (!p->deny_setgroups && syscall(SYS_setgroups, 0, NULL) < 0 && !joined)
		return error_set(err, -errno, "setgroups");
	if (syscall(SYS_setresgid, gid, gid, gid) < 0 && !joined)
		return error_set(err, -errno, "group %u", gid);
	if (syscall(SYS_setresuid, uid, uid, uid) < 0 && !joined)
		return error_set(err, -errno, "user %u", uid);
	return 0;
}

/*
 * Should: set each of the plan in the namespaces that this process is in by now, and see it taken.
 * Must not: write one of the host's (the plan's check, and the spawner's for a namespace that is
 * joined); take another /proc than the spawner's private one.
 */
int isolate_step_sysctls(struct isolate_steps *s, struct error *err)
{
	for (size_t i = 0; i < s->plan->n_sysctls; i++) {
		int r = isolate_sysctl_set(s->proc_fd, &s->plan->sysctls[i], err);

		if (r < 0)
			return error_wrap(err, r, "%s", s->plan->sysctls[i].name);
	}
	return 0;
}
