/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"

/* Of linux/mount.h and linux/stat.h in Linux 6.8. */
#define CGROUP_STATMOUNT 457
#define CGROUP_STATMOUNT_ROOT 8U
#define CGROUP_STATMOUNT_TEXT 64
#define CGROUP_STATX_ID 0x4000U
#define CGROUP_MOUNTINFO_MAX (16 << 20)
#define CGROUP_FILE_MAX (1 << 20)
#define CGROUP_PROCS_MAX (16 << 20)
#define CGROUP_DEPTH_MAX 64
#define CGROUP_KILL_ROUNDS 16

/* Undoes the kernel's \ooo for blank, tab, newline and backslash, in place. */
static void cgroup_unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] && s[2] && s[3]) {
			*to++ = (char)((unsigned)(s[1] - '0') << 6 | (unsigned)(s[2] - '0') << 3 |
				       (unsigned)(s[3] - '0'));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = '\0';
}

/* Cuts the word at *line off: NUL behind it, *line behind that. NULL at the end. */
static char *cgroup_word(char **line)
{
	char *word = *line;

	if (!*word)
		return NULL;
	*line += strcspn(word, " ");
	if (**line)
		*(*line)++ = '\0';
	return word;
}

/*
 * A line of mountinfo: "ID PARENT MAJ:MIN ROOT POINT OPTIONS [TAG...] - FS SOURCE OPTIONS". The
 * mount point if it is the whole v2 hierarchy, else NULL. Changes the line.
 */
static char *cgroup_mount_point(char *line)
{
	char *rest = line;
	char *root = NULL, *point = NULL;
	const char *word;

	for (int i = 0; i < 5; i++) {
		word = cgroup_word(&rest);
		if (!word)
			return NULL;
		if (i == 3)
			root = line + (word - line);
		if (i == 4)
			point = line + (word - line);
	}
	do
		word = cgroup_word(&rest);
	while (word && !str_eq(word, "-"));
	word = word ? cgroup_word(&rest) : NULL;
	if (!word || !str_eq(word, "cgroup2") || !str_eq(root, "/"))
		return NULL;
	cgroup_unescape(point);
	return point;
}

/* id: of the mount that is meant, as mountinfo has it; 0: any. Something else may be mounted over
 * it, a part of the hierarchy too. */
static int cgroup_open_mount(const char *path, unsigned long id)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	struct statfs fs;
	struct statx st;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return -errno;
	if (fs.f_type != CGROUP2_SUPER_MAGIC)
		return -ENOENT;
	if (id > 0 && statx(fd, "", AT_EMPTY_PATH, STATX_MNT_ID, &st) == 0 &&
	    (st.stx_mask & STATX_MNT_ID) && st.stx_mnt_id != id)
		return -ENOENT;
	return TAKE_FD(fd);
}

/* A text file as a string of its own; NULL with errno's number in *ret. */
static char *cgroup_read(int dir_fd, const char *name, size_t max, int *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char *text;

	*ret = fd_read_file(dir_fd, name, max, &b);
	if (*ret < 0)
		return NULL;
	text = buf_take_str(&b);
	if (!text)
		*ret = -ENOMEM;
	return text;
}

/*
 * Whether the mount shows its file system from the root on: mountinfo says so for all mounts of the
 * machine, statmount(2) (Linux 6.8) for this one. libc knows neither of it.
 */
static bool cgroup_mount_is_whole(int fd)
{
	struct {
		uint32_t size, spare;
		uint64_t id, what;
	} ask = { .size = sizeof(ask), .what = CGROUP_STATMOUNT_ROOT };
	struct {
		uint8_t before[104];
		uint32_t root;
		uint8_t behind[404];
		char text[CGROUP_STATMOUNT_TEXT];
	} said = { .root = UINT32_MAX };
	struct statx st;

	_Static_assert(offsetof(__typeof__(said), text) == 512, "struct statmount");
	if (statx(fd, "", AT_EMPTY_PATH, CGROUP_STATX_ID, &st) < 0 ||
	    !(st.stx_mask & CGROUP_STATX_ID))
		return false;
	ask.id = st.stx_mnt_id;
	if (syscall(CGROUP_STATMOUNT, &ask, &said, sizeof(said), 0) < 0 ||
	    said.root >= sizeof(said.text))
		return false;
	said.text[sizeof(said.text) - 1] = '\0';
	return str_eq(said.text + said.root, "/");
}

static int cgroup_open_usual(void)
{
	static const char *const places[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };

	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		_cleanup_fd_ int fd = cgroup_open_mount(places[i], 0);

		if (fd >= 0 && cgroup_mount_is_whole(fd))
			return TAKE_FD(fd);
	}
	return -ENOENT;
}

int cgroup_open_root(struct error *err)
{
	_cleanup_str_ char *text = NULL;
	char *save = NULL;
	int r;

	r = cgroup_open_usual();
	if (r >= 0)
		return r;
	text = cgroup_read(AT_FDCWD, "/proc/self/mountinfo", CGROUP_MOUNTINFO_MAX, &r);
	if (!text)
		return error_set(err, r, "read /proc/self/mountinfo");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		unsigned long id = strtoul(line, NULL, 10);
		const char *point = cgroup_mount_point(line);
		int fd = point ? cgroup_open_mount(point, id) : -1;

		if (fd >= 0)
			return fd;
	}
	return error_refuse(err, ERROR_PRECONDITION, "no cgroup v2 hierarchy is mounted");
}

int cgroup_own_path(char *ret, size_t size, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	char *save = NULL;
	int r;

	text = cgroup_read(AT_FDCWD, "/proc/self/cgroup", CGROUP_FILE_MAX, &r);
	if (!text)
		return error_set(err, r, "read /proc/self/cgroup");
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		if (!str_has_prefix(line, "0::/"))
			continue;
		line += strlen("0::/");
		if (str_eq(line, "..") || str_has_prefix(line, "../"))
			return error_refuse(err, ERROR_PRECONDITION,
					    "this process is outside of its cgroup namespace");
		r = str_copy(ret, size, line);
		return r < 0 ? error_set(err, r, "path of the own cgroup") : 0;
	}
	return error_refuse(err, ERROR_PRECONDITION, "this process is in no cgroup of version 2");
}

static bool cgroup_name_is_good(const char *name)
{
	return *name && strlen(name) <= NAME_MAX && !strchr(name, '/') && !strchr(name, '\n') &&
	       !str_eq(name, ".") && !str_eq(name, "..");
}

static int cgroup_open(int parent_fd, const char *name)
{
	int fd = sysio_openat(parent_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

int cgroup_make(int parent_fd, const char *name, struct error *err)
{
	int fd;

	if (!cgroup_name_is_good(name))
		return error_refuse(err, ERROR_INVALID, "\"%s\" cannot be the name of a cgroup",
				    name);
	if (sysio_mkdirat(parent_fd, name, 0755) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the cgroup %s", name);
	fd = cgroup_open(parent_fd, name);
	return fd < 0 ? error_set(err, fd, "open the cgroup %s", name) : fd;
}

/* Calls visit() for each group right below dir_fd. Stops at a negative result. */
static int cgroup_each_child(int dir_fd, unsigned depth,
			     int (*visit)(int dir_fd, const char *name, unsigned depth,
					  void *userdata),
			     void *userdata)
{
	_cleanup_fd_ int fd = cgroup_open(dir_fd, ".");
	DIR *dir;
	int r = 0;

	if (depth > CGROUP_DEPTH_MAX)
		return -ELOOP;
	if (fd < 0)
		return fd;
	dir = fdopendir(fd);
	if (!dir)
		return -errno;
	fd = -1;
	while (r >= 0) {
		const struct dirent *e = readdir(dir);

		if (!e)
			break;
		if (e->d_type == DT_DIR && cgroup_name_is_good(e->d_name))
			r = visit(dir_fd, e->d_name, depth + 1, userdata);
	}
	(void)closedir(dir);
	return r < 0 ? r : 0;
}

/* What cgroup.procs lists; of a threaded group, which has none, what cgroup.threads does. */
static char *cgroup_read_procs(int dir_fd, int *ret)
{
	char *text = cgroup_read(dir_fd, "cgroup.procs", CGROUP_PROCS_MAX, ret);

	if (!text && *ret == -EOPNOTSUPP)
		text = cgroup_read(dir_fd, "cgroup.threads", CGROUP_PROCS_MAX, ret);
	return text;
}

/* Kills what is listed; the number of processes, or a negative errno. */
static int cgroup_kill_listed(int dir_fd)
{
	_cleanup_str_ char *text = NULL;
	char *save = NULL;
	int n = 0;
	int r;

	text = cgroup_read_procs(dir_fd, &r);
	if (!text)
		return r;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);
		_cleanup_fd_ int pidfd = pid > 0 ? pidfd_of(pid) : -1;

		n++;
		if (pidfd >= 0)
			(void)pidfd_kill(pidfd, SIGKILL);
	}
	return n;
}

/* A group may fork while it is read, so it is read until it is empty. */
static int cgroup_kill_here(int dir_fd)
{
	int n = 1;

	for (int i = 0; i < CGROUP_KILL_ROUNDS && n > 0; i++)
		n = cgroup_kill_listed(dir_fd);
	return n < 0 ? n : 0;
}

static int cgroup_kill_child(int parent_fd, const char *name, unsigned depth,
			     void *userdata _unused_)
{
	_cleanup_fd_ int fd = cgroup_open(parent_fd, name);
	int r;

	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = cgroup_kill_here(fd);
	return r < 0 ? r : cgroup_each_child(fd, depth, cgroup_kill_child, NULL);
}

int cgroup_kill(int dir_fd)
{
	int r = fd_write_file(dir_fd, "cgroup.kill", "1");

	if (r != -ENOENT && r != -EOPNOTSUPP)
		return r;
	/* Before 5.14, or the group is threaded. */
	r = cgroup_kill_here(dir_fd);
	return r < 0 ? r : cgroup_each_child(dir_fd, 0, cgroup_kill_child, NULL);
}

int cgroup_populated(int dir_fd)
{
	_cleanup_str_ char *text = NULL;
	int r;

	text = cgroup_read(dir_fd, "cgroup.events", CGROUP_FILE_MAX, &r);
	if (!text)
		return r;
	return strstr(text, "populated 1") != NULL;
}

static int cgroup_remove_child(int parent_fd, const char *name, unsigned depth,
			       void *userdata _unused_)
{
	_cleanup_fd_ int fd = -1;
	int r;

	/* Most groups have none below them. */
	if (sysio_unlinkat(parent_fd, name, AT_REMOVEDIR) == 0 || errno == ENOENT)
		return 0;
	if (errno != EBUSY)
		return -errno;
	fd = cgroup_open(parent_fd, name);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	r = cgroup_each_child(fd, depth, cgroup_remove_child, NULL);
	if (r < 0)
		return r;
	return sysio_unlinkat(parent_fd, name, AT_REMOVEDIR) < 0 && errno != ENOENT ? -errno : 0;
}

int cgroup_remove(int parent_fd, const char *name)
{
	if (!cgroup_name_is_good(name))
		return -EINVAL;
	return cgroup_remove_child(parent_fd, name, 0, NULL);
}

struct cgroup_pid_list {
	pid_t *pids;
	size_t n, size;
	bool below;
};

static int cgroup_pid_list_add(struct cgroup_pid_list *l, pid_t pid)
{
	if (l->n == CGROUP_PIDS_MAX)
		return -E2BIG;
	if (l->n == l->size) {
		size_t size = l->size ? 2 * l->size : 64;
		pid_t *more = reallocarray(l->pids, size, sizeof(*more));

		if (!more)
			return -ENOMEM;
		l->pids = more;
		l->size = size;
	}
	l->pids[l->n++] = pid;
	return 0;
}

static int cgroup_list_child(int parent_fd, const char *name, unsigned depth, void *userdata)
{
	_cleanup_fd_ int fd = cgroup_open(parent_fd, name);
	_cleanup_str_ char *text = NULL;
	struct cgroup_pid_list *l = userdata;
	char *save = NULL;
	int r = fd;

	if (fd >= 0)
		text = cgroup_read_procs(fd, &r);
	if (!text)
		return r == -ENOENT || r == -ENODEV ? 0 : r;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		pid_t pid = (pid_t)strtol(line, NULL, 10);

		/* 0: a process that our pid namespace does not have. */
		r = pid > 0 ? cgroup_pid_list_add(l, pid) : 0;
		if (r < 0)
			return r;
	}
	return l->below ? cgroup_each_child(fd, depth, cgroup_list_child, l) : 0;
}

int cgroup_pids(int dir_fd, bool below, pid_t **ret, size_t *n, struct error *err)
{
	struct cgroup_pid_list l = { .below = below };
	int r = cgroup_list_child(dir_fd, ".", 0, &l);

	if (r < 0) {
		free(l.pids);
		if (r == -E2BIG)
			return error_refuse(err, ERROR_EXHAUSTED,
					    "more than %d processes in a cgroup", CGROUP_PIDS_MAX);
		return error_set(err, r, "read the processes of a cgroup");
	}
	*ret = l.pids;
	*n = l.n;
	return 0;
}

static bool cgroup_pid_is_called(pid_t pid, const char *name)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[32];

	(void)str_printf(path, sizeof(path), "/proc/%d/comm", (int)pid);
	return fd_read_file(AT_FDCWD, path, 64, &b) == 0 && b.len >= strlen(name) &&
	       memcmp(buf_data(&b), name, strlen(name)) == 0;
}

int cgroup_find_one(int dir_fd, const char *name, pid_t *ret, struct error *err)
{
	pid_t *pids = NULL, found = 0;
	size_t n = 0, n_found = 0;
	int r = cgroup_pids(dir_fd, false, &pids, &n, err);

	for (size_t i = 0; i < n; i++) {
		if (n > 1 && !cgroup_pid_is_called(pids[i], name))
			continue;
		found = pids[i];
		n_found++;
	}
	free(pids);
	if (r < 0)
		return r;
	if (n > 0 && n_found != 1)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "of the %zu processes in its group %zu are called %s", n,
				    n_found, name);
	*ret = found;
	return 0;
}

static const char *const cgroup_controller_names[] = {
	[CGROUP_CPUSET] = "cpuset", [CGROUP_CPU] = "cpu",         [CGROUP_IO] = "io",
	[CGROUP_MEMORY] = "memory", [CGROUP_HUGETLB] = "hugetlb", [CGROUP_PIDS] = "pids",
	[CGROUP_RDMA] = "rdma",     [CGROUP_MISC] = "misc",
};
static_assert(ARRAY_SIZE(cgroup_controller_names) == CGROUP_CONTROLLER_COUNT, "a name for each");

const char *cgroup_controller_name(enum cgroup_controller c)
{
	return cgroup_controller_names[c];
}

int cgroup_controller_of(const char *name)
{
	size_t len = strcspn(name, ".");

	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (strlen(cgroup_controller_names[i]) == len &&
		    strncmp(name, cgroup_controller_names[i], len) == 0)
			return (int)i;
	return -ENOENT;
}

/* The bits of the controllers that a file lists. */
static unsigned cgroup_read_controllers(int dir_fd, const char *file)
{
	_cleanup_str_ char *text = NULL;
	unsigned bits = 0;
	char *save = NULL;
	int r;

	text = cgroup_read(dir_fd, file, CGROUP_FILE_MAX, &r);
	if (!text)
		return 0;
	for (char *word = strtok_r(text, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		r = cgroup_controller_of(word);
		if (r >= 0)
			bits |= 1U << r;
	}
	return bits;
}

unsigned cgroup_controllers(int dir_fd)
{
	return cgroup_read_controllers(dir_fd, "cgroup.controllers");
}

/* A line of /proc/self/cgroup for each hierarchy of version 1: "4:cpu,cpuacct:/path". */
static bool cgroup_is_of_version_1(const char *controller)
{
	_cleanup_str_ char *text = NULL;
	char *save = NULL;
	int r;

	text = cgroup_read(AT_FDCWD, "/proc/self/cgroup", CGROUP_FILE_MAX, &r);
	if (!text)
		return false;
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
		char *names = strchr(line, ':');
		char *rest = names ? names + 1 : line;
		char *inner = NULL;

		rest[strcspn(rest, ":")] = '\0';
		for (char *name = strtok_r(rest, ",", &inner); name;
		     name = strtok_r(NULL, ",", &inner))
			if (str_eq(name, controller))
				return true;
	}
	return false;
}

int cgroup_refuse_controller(int dir_fd, enum cgroup_controller c, struct error *err)
{
	const char *name = cgroup_controller_names[c];
	/* The one that has another name there. */
	const char *old = c == CGROUP_IO ? "blkio" : name;

	if (cgroup_controllers(dir_fd) & 1U << c)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this kernel's cgroup controller %s does not have that", name);
	if (cgroup_is_of_version_1(old))
		return error_refuse(err, ERROR_PRECONDITION,
				    "this host has the cgroup controller %s in version 1 (boot "
				    "with cgroup_no_v1=%s or =all)",
				    name, old);
	return error_refuse(err, ERROR_PRECONDITION,
			    "the cgroup controller %s is not there: this kernel lacks it, or no "
			    "group above hands it on",
			    name);
}

/* Writes "+NAME" for each of the bits in one go. */
static int cgroup_write_subtree(int dir_fd, unsigned controllers)
{
	char text[CGROUP_CONTROLLER_COUNT * 16];
	size_t len = 0;

	text[0] = '\0';
	for (size_t i = 0; i < CGROUP_CONTROLLER_COUNT; i++)
		if (controllers & 1U << i)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "+%s ",
						cgroup_controller_names[i]);
	return len ? fd_write_file(dir_fd, "cgroup.subtree_control", text) : 0;
}

int cgroup_enable(int dir_fd, unsigned controllers, struct error *err)
{
	unsigned missing = controllers & ~cgroup_read_controllers(dir_fd, "cgroup.subtree_control");
	unsigned absent = missing & ~cgroup_controllers(dir_fd);
	int r;

	if (absent)
		return cgroup_refuse_controller(dir_fd,
						(enum cgroup_controller)__builtin_ctz(absent), err);
	r = cgroup_write_subtree(dir_fd, missing);
	if (r == -EBUSY)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the cgroup holds processes itself, so that it cannot hand "
				    "controllers on to groups below it");
	if (r == -EOPNOTSUPP)
		return error_refuse(err, ERROR_PRECONDITION,
				    "a threaded cgroup hands on cpu, cpuset and pids alone");
	return r < 0 ? error_set(err, r, "enable the controllers of a cgroup") : 0;
}

void cgroup_enable_workload(int dir_fd)
{
	unsigned have = cgroup_controllers(dir_fd) & CGROUP_CONTROLLERS_WORKLOAD;

	if (have)
		(void)cgroup_enable(dir_fd, have, NULL);
}

int cgroup_make_inner(int parent_fd, const char *name, struct error *err)
{
	int fd = cgroup_make(parent_fd, name, err);

	if (fd >= 0)
		cgroup_enable_workload(fd);
	return fd;
}
