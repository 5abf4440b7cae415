/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/process.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"

#define PROCESS_FILE_MAX ((size_t)64 * 1024)
#define PROCESS_LIST_MAX ((size_t)8 << 20)
#define PROCESS_PATH_MAX 2048

static char *process_text(int dir_fd, const char *name, size_t max)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	if (fd_read_file(dir_fd, name, max, &b) < 0)
		return NULL;
	return buf_take_str(&b);
}

/* Whether /proc/PID/cgroup tells of the group or of one below it. */
static bool process_is_in(int proc_fd, const char *group)
{
	_cleanup_str_ char *text = process_text(proc_fd, "cgroup", PROCESS_FILE_MAX);
	size_t len = strlen(group);
	const char *line = text;

	while (line && !str_has_prefix(line, "0::")) {
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	if (!line)
		return false;
	line += strlen("0::");
	return strncmp(line, group, len) == 0 && (line[len] == '\n' || line[len] == '/');
}

static int process_open_any(pid_t pid)
{
	char name[32];
	int fd;

	(void)str_printf(name, sizeof(name), "/proc/%d", (int)pid);
	fd = sysio_openat(AT_FDCWD, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (fd < 0)
		return errno == ENOENT ? -ESRCH : -errno;
	return fd;
}

int process_open(pid_t pid, const char *group)
{
	_cleanup_fd_ int fd = process_open_any(pid);

	if (fd < 0)
		return fd;
	return process_is_in(fd, group) ? TAKE_FD(fd) : -ESRCH;
}

/* The descriptor names this one process, dead or alive: of another one that gets its pid nothing is
 * opened by it. */
int process_open_root(pid_t pid, const char *group)
{
	_cleanup_fd_ int proc_fd = process_open(pid, group);
	int fd;

	if (proc_fd < 0)
		return proc_fd;
	fd = sysio_openat(proc_fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

/* The name stands in parentheses and may hold any byte, also ')'. Then: state, ppid, ..., utime and
 * stime (14 and 15), ..., rss in pages (24). */
static int process_read_stat(int proc_fd, struct process *p)
{
	_cleanup_str_ char *text = process_text(proc_fd, "stat", PROCESS_FILE_MAX);
	char *open = text ? strchr(text, '(') : NULL;
	char *close = open ? strrchr(open, ')') : NULL;
	unsigned long long fields[25] = { 0 };
	char *at;

	if (!close || close[1] != ' ' || !close[2])
		return -ESRCH;
	p->state = close[2];
	at = close + 3;
	for (size_t i = 4; i < ARRAY_SIZE(fields); i++)
		fields[i] = strtoull(at, &at, 10);
	*close = '\0';
	p->parent = (pid_t)fields[4];
	p->cpu_us = (fields[14] + fields[15]) * (1000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	p->memory = fields[24] * (uint64_t)sysconf(_SC_PAGESIZE);
	return str_printf(p->command, sizeof(p->command), "[%s]", open + 1);
}

static int process_read_status(int proc_fd, struct process *p)
{
	_cleanup_str_ char *text = process_text(proc_fd, "status", PROCESS_FILE_MAX);
	const char *uid = text ? strstr(text, "\nUid:") : NULL;
	const char *pids = text ? strstr(text, "\nNSpid:") : NULL;
	char *at;

	if (!uid)
		return -ESRCH;
	/* Real, effective, saved, of the file system. */
	(void)strtoul(uid + strlen("\nUid:"), &at, 10);
	p->uid = (uid_t)strtoul(at, NULL, 10);
	p->inner_pid = p->pid;
	/* From the outermost namespace to the innermost. */
	for (pids += pids ? strlen("\nNSpid:") : 0; pids && *pids == '\t'; pids = at)
		p->inner_pid = (pid_t)strtol(pids, &at, 10);
	return 0;
}

/* The effective one of four: real, effective, saved, of the file system. */
static int process_effective(const char *text, const char *key, unsigned *ret)
{
	const char *line = text ? strstr(text, key) : NULL;
	char *at;

	if (!line)
		return -ESRCH;
	(void)strtoul(line + strlen(key), &at, 10);
	*ret = (unsigned)strtoul(at, NULL, 10);
	return 0;
}

static int process_read_identity(int proc_fd, struct process_identity *ret)
{
	_cleanup_str_ char *text =
		proc_fd < 0 ? NULL : process_text(proc_fd, "status", PROCESS_FILE_MAX);
	const char *groups = text ? strstr(text, "\nGroups:") : NULL;

	*ret = (struct process_identity){ .n_groups = 0 };
	if (!groups || process_effective(text, "\nUid:", &ret->uid) < 0 ||
	    process_effective(text, "\nGid:", &ret->gid) < 0)
		return -ESRCH;
	groups += strlen("\nGroups:");
	for (groups += strspn(groups, "\t "); *groups && *groups != '\n';
	     groups += strspn(groups, " ")) {
		char *at;

		if (ret->n_groups == PROCESS_GROUPS_MAX)
			return -E2BIG;
		ret->groups[ret->n_groups++] = (gid_t)strtoul(groups, &at, 10);
		if (at == groups)
			return -ESRCH;
		groups = at;
	}
	return 0;
}

int process_identity(pid_t pid, const char *group, struct process_identity *ret)
{
	_cleanup_fd_ int fd = process_open(pid, group);

	return process_read_identity(fd, ret);
}

int process_identity_of_child(pid_t pid, struct process_identity *ret)
{
	_cleanup_fd_ int fd = process_open_any(pid);

	return process_read_identity(fd, ret);
}

/* Arguments end with NUL each. What is no text becomes '?', so that it is a string of the API. */
static void process_read_command(int proc_fd, struct process *p)
{
	_cleanup_fd_ int fd = sysio_openat(proc_fd, "cmdline", O_RDONLY | O_CLOEXEC, 0);
	ssize_t n = fd < 0 ? -1 : sysio_read(fd, p->command, sizeof(p->command) - 1);

	if (n <= 0)
		return;
	while (n > 1 && !p->command[n - 1])
		n--;
	for (ssize_t i = 0; i < n; i++)
		p->command[i] = p->command[i] ? p->command[i] : ' ';
	p->command[n] = '\0';
}

void process_clean_command(struct process *p)
{
	bool utf8 = str_is_utf8(p->command, strlen(p->command));

	for (char *c = p->command; *c; c++) {
		if ((unsigned char)*c < 0x20 || *c == 0x7f || (!utf8 && (unsigned char)*c >= 0x80))
			*c = '?';
	}
}

/* 0, 1 for one that is gone or elsewhere, or what fn says. */
static int process_tell(pid_t pid, const char *group,
			int (*fn)(void *userdata, const struct process *p), void *userdata)
{
	struct process p = { .pid = pid };
	_cleanup_fd_ int fd = process_open(pid, group);

	if (fd < 0 || process_read_stat(fd, &p) < 0 || process_read_status(fd, &p) < 0)
		return 1;
	process_read_command(fd, &p);
	process_clean_command(&p);
	return fn(userdata, &p);
}

static int processes_of(int group_fd, const char *group,
			int (*fn)(void *userdata, const struct process *p), void *userdata)
{
	_cleanup_str_ char *pids = process_text(group_fd, "cgroup.procs", PROCESS_LIST_MAX);
	char *save = NULL;

	for (char *pid = pids ? strtok_r(pids, "\n", &save) : NULL; pid;
	     pid = strtok_r(NULL, "\n", &save)) {
		pid_t number = (pid_t)strtol(pid, NULL, 10);
		int r = number > 0 ? process_tell(number, group, fn, userdata) : 0;

		if (r < 0)
			return r;
	}
	return 0;
}

static int processes_walk(int parent_fd, const char *name, const char *group, unsigned depth,
			  int (*fn)(void *userdata, const struct process *p), void *userdata)
{
	_cleanup_fd_ int fd =
		sysio_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	_cleanup_strv_ char **names = NULL;
	int r;

	if (fd < 0)
		return 0;
	r = processes_of(fd, group, fn, userdata);
	if (r < 0 || depth == PROCESS_DEPTH_MAX)
		return r;
	r = fd_list_dir(fd, &names);
	for (char **n = names; r == 0 && n && *n; n++) {
		_cleanup_str_ char *inner = NULL;

		inner = str_format("%s/%s", group, *n);
		if (!inner)
			return -ENOMEM;
		r = processes_walk(fd, *n, inner, depth + 1, fn, userdata);
	}
	return r == -ENOENT || r == -ENODEV ? 0 : r;
}

int processes_each(int cgroup_fd, const char *cgroup_path, const char *path,
		   int (*fn)(void *userdata, const struct process *p), void *userdata)
{
	char group[PROCESS_PATH_MAX];
	int r;

	r = str_printf(group, sizeof(group), "%s/%s", cgroup_path, path);
	if (r < 0)
		return r;
	return processes_walk(cgroup_fd, path, group, 0, fn, userdata);
}
