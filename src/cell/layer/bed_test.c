/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/layer/bed_test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_name.h"
#include "wire/format/crilog.h"

static int prepared_base_fd = -1;

static int bed_tmpfs(const char *size)
{
	_cleanup_fd_ int fs_fd = sysio_fsopen("tmpfs", FSOPEN_CLOEXEC);

	if (fs_fd < 0 || sysio_fsconfig(fs_fd, FSCONFIG_SET_STRING, "size", size, 0) < 0 ||
	    sysio_fsconfig(fs_fd, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return sysio_fsmount(fs_fd, FSMOUNT_CLOEXEC, 0);
}

static bool bed_put(int dir_fd, const char *name, const void *data, size_t len, mode_t mode)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, mode);

	return fd >= 0 && fchmod(fd, mode) == 0 && fd_write_full(fd, data, len) == 0;
}

static bool bed_fill_root(int root_fd)
{
	static const char *const dirs[] = { "bin", "proc", "dev", "sys", "tmp", "etc", "data" };
	static const char *const applets[] = { "sh",   "cat",   "sleep", "true",     "id",
					       "echo", "kill",  "ls",    "readlink", "hostname",
					       "nc",   "pwd",   "env",   "grep",     "head",
					       "yes",  "touch", "test",  "seq",      "setsid",
					       "tr",   "wc",    "dd",    "stty",     "tty" };
	static const char passwd[] = "root:x:0:0:r:/root:/bin/sh\n"
				     "app:x:1000:1000:a:/home/app:/bin/sh\n";
	static const char group[] = "root:x:0:\napp:x:1000:\nmore:x:2000:app\n";
	_cleanup_(buf_done) struct buf busybox = BUF_INIT;
	char name[64];

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++)
		if (mkdirat(root_fd, dirs[i], 0755) < 0)
			return false;
	if (fd_read_file(AT_FDCWD, "/bin/busybox", (size_t)8 << 20, &busybox) < 0 ||
	    !bed_put(root_fd, "bin/busybox", buf_data(&busybox), busybox.len, 0755))
		return false;
	for (size_t i = 0; i < ARRAY_SIZE(applets); i++) {
		(void)str_printf(name, sizeof(name), "bin/%s", applets[i]);
		if (symlinkat("busybox", root_fd, name) < 0)
			return false;
	}
	return bed_put(root_fd, "etc/passwd", passwd, sizeof(passwd) - 1, 0644) &&
	       bed_put(root_fd, "etc/group", group, sizeof(group) - 1, 0644);
}

bool bed_prepare(void)
{
	_cleanup_fd_ int cgroup_fd = cgroup_open_root(NULL);
	_cleanup_fd_ int root_fd = -1;
	int fd;

	if (geteuid() != 0 || cgroup_fd < 0 || access("/bin/busybox", X_OK) < 0)
		return false;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET | CLONE_NEWIPC | CLONE_NEWUTS) < 0 ||
	    mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return false;
	/* Attached over a directory that every system has, in our own mount namespace only. */
	fd = bed_tmpfs("256m");
	if (fd < 0 || sysio_move_mount(fd, "", AT_FDCWD, "/mnt", MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return false;
	if (mkdirat(fd, "root", 0755) < 0 || mkdirat(fd, "shm", 0755) < 0 ||
	    mkdirat(fd, "own-shm", 0777) < 0)
		return false;
	root_fd = openat(fd, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root_fd < 0 || !bed_fill_root(root_fd))
		return false;
	prepared_base_fd = fd;
	/* As in every keeper: a write to a closed pipe is an error of that write. */
	if (sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL) < 0)
		return false;
	return prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0;
}

static int bed_number(const char *id)
{
	return (int)strtol(id, NULL, 16);
}

static void bed_on_container(void *userdata, const struct container_view *view, bool removed)
{
	struct bed *b = userdata;
	int n = bed_number(view->id);

	b->last[n] = view->status;
	b->removed[n] = b->removed[n] || removed;
}

static void bed_cgroup_name(char *name, size_t size)
{
	(void)str_printf(name, size, "nacre-cell-test-%d", (int)getpid());
}

void bed_open(struct bed *b)
{
	_cleanup_fd_ int top_fd = cgroup_open_root(NULL);
	struct keeper_config config = { .on_container = bed_on_container, .userdata = b };
	char name[64];

	*b = (struct bed){ .base_fd = prepared_base_fd, .late = CONTAINER_FDS_NONE };
	bed_cgroup_name(name, sizeof(name));
	b->cgroup_fd = cgroup_make(top_fd, name, NULL);
	b->proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	b->shm_fd = openat(b->base_fd, "own-shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (b->cgroup_fd < 0 || b->proc_fd < 0 || b->shm_fd < 0 || loop_new(&b->loop) < 0)
		abort();
	config.loop = b->loop;
	config.cgroup_fd = b->cgroup_fd;
	config.proc_fd = b->proc_fd;
	config.shm_parent_fd = openat(b->base_fd, "shm", O_PATH | O_DIRECTORY | O_CLOEXEC);
	config.shm_fd = b->shm_fd;
	config.host_mount_ns_fd = -1;
	if (keeper_new(&b->keeper, &config) < 0)
		abort();
	/* Kept for bed_close(). */
	b->last[0].pid = config.shm_parent_fd;
	b->n_ids = 1;
}

void bed_close(struct bed *b)
{
	_cleanup_fd_ int top_fd = cgroup_open_root(NULL);
	int shm_parent_fd = (int)b->last[0].pid;
	char name[64];

	b->keeper = keeper_free(b->keeper);
	while (waitpid(-1, NULL, 0) > 0 || errno == EINTR)
		;
	bed_cgroup_name(name, sizeof(name));
	for (int i = 0; i < 2000 && cgroup_remove(top_fd, name) == -EBUSY; i++)
		(void)usleep(10000);
	b->loop = loop_free(b->loop);
	fd_close(shm_parent_fd);
	fd_close(b->shm_fd);
	fd_close(b->proc_fd);
	fd_close(b->cgroup_fd);
}

const char *bed_id(int n)
{
	static char id[ID_SIZE];

	(void)str_printf(id, sizeof(id), "%016x", (unsigned)n);
	return id;
}

static void bed_log_name(char *name, size_t size, int n)
{
	(void)str_printf(name, size, "log-%d", n);
}

static void bed_started(void *userdata, const struct container_view *view)
{
	struct bed *b = userdata;

	b->n_started++;
}

int bed_start(struct bed *b, const struct bed_start *s, struct error *err)
{
	char *script[] = { (char[]){ "/bin/sh" }, (char[]){ "-c" }, NULL, NULL };
	_cleanup_str_ char *text = strdup(s->script ?: "true");
	struct cell_spec cell = { .name = s->cell ?: "c",
				  .shares_instance = s->shares,
				  .hostname = s->hostname,
				  .host_network = s->host_network,
				  .given_network = s->network_fd > 0 };
	struct container_spec spec = { .kind = s->process ? CONTAINER_PROCESS : CONTAINER_IMAGE,
				       .argv = s->argv ?: script,
				       .env = s->env,
				       .cwd = s->cwd ?: "",
				       .user = s->user ?: "",
				       .stdin_open = s->stdin_open,
				       .tty = s->tty,
				       .terminal = s->terminal,
				       .hold_output = s->hold_output,
				       .keep_log = s->keep_log,
				       .image = s->image,
				       .late = s->late,
				       .log = s->log };
	char log_name[32], name[32];
	struct container_fds fds = { .rootfs = -1,
				     .log = s->log_fd > 0 ? s->log_fd : -1,
				     .log_dir = s->log_dir_fd > 0 ? s->log_dir_fd : -1,
				     .network = s->network_fd > 0 ? s->network_fd : -1 };
	int n = b->n_ids++;
	int r;

	script[2] = text;
	/* As a daemon asks for where nothing else is wanted: what waits ahead is made for it. */
	spec.security = (struct container_security){ .has_caps = s->late,
						     .caps = cap_baseline,
						     .may_gain = s->late };
	/* A test that says nothing waits for its log. */
	if (!spec.log.drop && !spec.log.block_for)
		spec.log.block_for = NSEC_NEVER;
	(void)str_printf(name, sizeof(name), "n%d", n);
	spec.name = s->name ?: name;
	(void)str_copy(spec.id, sizeof(spec.id), bed_id(n));
	bed_log_name(log_name, sizeof(log_name), n);
	if (fds.log < 0 && !s->no_log && !s->keep_log)
		fds.log = openat(b->base_fd, log_name,
				 O_CREAT | O_TRUNC | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (!s->process)
		fds.rootfs =
			sysio_open_tree(b->base_fd, "root", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	if (s->late) {
		spec.rootfs_token = 1;
		spec.log_token = fds.log >= 0 ? 2 : 0;
		b->late = fds;
		fds = (struct container_fds)CONTAINER_FDS_NONE;
	}
	r = keeper_start(b->keeper, &cell, &spec, &fds, bed_started, b, err);
	return r < 0 ? r : n;
}

void bed_turn(struct bed *b)
{
	loop_turn(b->loop, false);
	/* Polling, so that a condition that never comes ends the wait. */
	(void)usleep(500);
}

const struct container_status *bed_wait(struct bed *b, int n)
{
	const struct container_status *s = &b->last[n];

	if (n < 0)
		abort();
	BED_UNTIL(b, s->state == CONTAINER_EXITED || s->state == CONTAINER_FAILED);
	return s;
}

void bed_wait_running(struct bed *b, int n)
{
	if (n < 0)
		abort();
	BED_UNTIL(b, b->last[n].state != CONTAINER_STARTING);
}

void bed_log(struct bed *b, int n, int stream, struct buf *ret)
{
	enum crilog_stream wanted = stream == 1 ? CRILOG_STDOUT : CRILOG_STDERR;
	_cleanup_(buf_done) struct buf raw = BUF_INIT;
	const uint8_t *p, *end;
	char name[32];

	bed_log_name(name, sizeof(name), n);
	if (fd_read_file(b->base_fd, name, (size_t)64 << 20, &raw) < 0 || raw.len == 0)
		return;
	p = buf_data(&raw);
	for (end = p + raw.len; p < end;) {
		const uint8_t *feed = memchr(p, '\n', (size_t)(end - p));
		struct crilog_record record;

		/* A line that is being written. */
		if (!feed)
			return;
		if (crilog_parse(&record, p, (size_t)(feed - p) + 1) < 0)
			abort();
		if (record.stream == wanted && buf_add(ret, record.data, record.len) < 0)
			abort();
		p = feed + 1;
	}
}

uint64_t bed_decode(const void *lines, size_t len, struct buf *ret)
{
	const uint8_t *line = lines, *end = line + len;
	struct crilog_record record;

	while (line < end) {
		const uint8_t *feed = memchr(line, '\n', (size_t)(end - line));

		if (crilog_parse(&record, line, (size_t)(feed - line) + 1) < 0)
			abort();
		/* Without memory a test misses it. */
		(void)!buf_add(ret, record.data, record.len);
		line = feed + 1;
	}
	return crilog_count(lines, len);
}

const char *bed_log_text(struct bed *b, int n, int stream)
{
	static char text[8192];
	_cleanup_(buf_done) struct buf log = BUF_INIT;

	bed_log(b, n, stream, &log);
	(void)str_printf(text, sizeof(text), "%.*s", (int)log.len,
			 log.len ? (const char *)buf_data(&log) : "");
	return text;
}

int bed_small_tmpfs(struct bed *b, const char *name)
{
	int fd = bed_tmpfs("64k");

	if (fd < 0 || sysio_move_mount(fd, "", b->base_fd, name, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		abort();
	return fd;
}

void bed_group(struct bed *b, const char *cell, const char *container, char ret[BED_GROUP_SIZE])
{
	char name[80];

	(void)str_printf(name, sizeof(name), "cell.%s", cell);
	if (cgroup_find_below(b->cgroup_fd, ".", name, container, ret, BED_GROUP_SIZE) < 0)
		abort();
}

bool bed_has_cgroup(struct bed *b, const char *name)
{
	const char *slash = strchr(name, '/');
	char first[80], path[BED_GROUP_SIZE];

	(void)str_printf(first, sizeof(first), "%.*s", (int)strcspn(name, "/"), name);
	if (cgroup_find_below(b->cgroup_fd, ".", first, slash ? slash + 1 : NULL, path,
			      sizeof(path)) < 0)
		abort();
	return faccessat(b->cgroup_fd, path, F_OK, 0) == 0;
}

size_t bed_procs(struct bed *b, const char *group)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	char name[BED_GROUP_SIZE + 16];
	size_t n = 0;

	(void)str_printf(name, sizeof(name), "%s/cgroup.procs", group);
	if (fd_read_file(b->cgroup_fd, name, 4096, &text) < 0)
		return 0;
	for (size_t i = 0; i < text.len; i++)
		n += ((const char *)buf_data(&text))[i] == '\n';
	return n;
}

int bed_count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

int bed_count_mounts(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int n = 0;

	if (fd_read_file(AT_FDCWD, "/proc/self/mountinfo", (size_t)4 << 20, &b) < 0)
		return -1;
	for (size_t i = 0; i < b.len; i++)
		n += buf_data(&b)[i] == '\n';
	return n;
}
