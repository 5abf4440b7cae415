/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Limits of what containers write as quotas of projects, where the root directory is on a file
 * system that has them. The disk is ext4 with `project,quota`; what counts is the kernel's word.
 */

#include "isolate/disk/quota.h"

#include <dirent.h>
#include <linux/dqblk_xfs.h>
#include <linux/quota.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/file/fd.h"
#include "guest.h"
#include "unit.h"

#define QUOTA_CONFIG "/run/config.yaml"
#define QUOTA_DISK "/run/quota"
#define QUOTA_NODE QUOTA_DISK "/node"
#define QUOTA_GROUPS "/sys/fs/cgroup/quota"
#define QUOTA_BASE QUOTA_GROUPS "/base"
#define MIB (1LL << 20)
/* Of a file that ends before the limit of 32 MiB does. */
#define FILL "dd if=/dev/zero of=/fill bs=64k count=1024 2>&1; sync; wc -c </fill"

static pid_t node_pid = -1;

#define NACRE(...) GUEST_RUN("nacre", __VA_ARGS__)

#define CHECK_NACRE(...)                                                                           \
	do {                                                                                       \
		int quota_status_ = NACRE(__VA_ARGS__);                                            \
		if (quota_status_ != 0)                                                            \
			guest_show();                                                              \
		CHECK_INT(quota_status_, 0);                                                       \
	} while (0)

static int open_dir(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* How many projects have a limit, by the kernel. */
static int limits(void)
{
	_cleanup_fd_ int fd = open_dir(QUOTA_DISK);
	uint32_t from = QUOTA_PROJECT_FIRST;
	int n = 0;

	for (;;) {
		struct fs_disk_quota q = { .d_version = FS_DQUOT_VERSION };

		if (syscall(SYS_quotactl_fd, fd, QCMD(Q_XGETNEXTQUOTA, PRJQUOTA), from, &q) < 0)
			return n;
		n += q.d_blk_hardlimit > 0;
		from = q.d_id + 1;
	}
}

static void wait_for_limits(int n)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;

	while (limits() != n && guest_now() < end)
		guest_pause();
	CHECK_INT(limits(), n);
}

/* The directory of the only container there is. */
static int open_container(void)
{
	DIR *dir = opendir(QUOTA_NODE "/containers");
	const struct dirent *e;
	int fd = -1;

	while (dir && (e = readdir(dir)))
		if (e->d_name[0] != '.' && fd < 0)
			fd = openat(dirfd(dir), e->d_name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir)
		(void)closedir(dir);
	return fd;
}

/* The last line that a program said, as a number. */
static long long last_number(void)
{
	char *end = guest_output + strlen(guest_output);

	while (end > guest_output && end[-1] == '\n')
		*--end = '\0';
	while (end > guest_output && end[-1] != '\n')
		end--;
	return strtoll(end, NULL, 10);
}

/* ---- the calls ---- */

static void is_enforced_where_it_is_mounted_so(void)
{
	_cleanup_fd_ int root_fd = open_dir("/"), tmp_fd = open_dir("/tmp");
	_cleanup_fd_ int fd = -1;

	CHECK(mkdir(QUOTA_DISK, 0755) == 0);
	/* It is counted then, but there are no limits. */
	CHECK(mount("/dev/guest/quota", QUOTA_DISK, "ext4", 0, "noprjquota") < 0 ||
	      umount(QUOTA_DISK) == 0);
	CHECK(mount("/dev/guest/quota", QUOTA_DISK, "ext4", 0, NULL) == 0);
	fd = open_dir(QUOTA_DISK);
	CHECK_INT(quota_is_enforced(fd), 0);
	fd = fd_close(fd);
	CHECK(umount(QUOTA_DISK) == 0);
	CHECK(mount("/dev/guest/quota", QUOTA_DISK, "ext4", 0, "prjquota") == 0);
	fd = open_dir(QUOTA_DISK);
	CHECK_INT(quota_is_enforced(fd), 1);
	CHECK_INT(quota_is_enforced(root_fd), 0);
	CHECK_INT(quota_is_enforced(tmp_fd), 0);
	CHECK_INT((int)quota_project(tmp_fd), 0);
}

static void gives_ids_that_are_free(void)
{
	static const char *const dirs[] = { QUOTA_DISK "/a", QUOTA_DISK "/b", QUOTA_DISK "/c" };
	struct error err = ERROR_INIT;
	uint32_t projects[3];
	struct quota_use use;

	for (size_t i = 0; i < 3; i++) {
		_cleanup_fd_ int fd = -1;

		CHECK(mkdir(dirs[i], 0700) == 0);
		fd = open_dir(dirs[i]);
		CHECK_INT((int)quota_project(fd), 0);
		CHECK_INT(quota_look(fd, &use), -ENOENT);
		/* All searches begin at the same id. */
		CHECK_INT(quota_give(fd, "same", (uint64_t)MIB, &err), 0);
		projects[i] = quota_project(fd);
		CHECK(projects[i] >= QUOTA_PROJECT_FIRST);
		CHECK(i == 0 || projects[i] == projects[i - 1] + 1);
		CHECK_INT(quota_look(fd, &use), 0);
		CHECK(use.limit == (uint64_t)MIB && use.used >= 1024 && use.used < 65536);
	}
	CHECK_INT(limits(), 3);
	for (size_t i = 0; i < 3; i++) {
		_cleanup_fd_ int fd = open_dir(dirs[i]);

		CHECK_INT(quota_free(fd), 0);
		CHECK(rmdir(dirs[i]) == 0);
	}
	CHECK_INT(limits(), 0);
}

/* ---- the node ---- */

static void start_daemon(void)
{
	int log_fd = open("/run/daemon.log", O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
	time_t end = guest_now() + GUEST_PATIENCE_S;

	node_pid = guest_start(log_fd,
			       (const char *const[]){ "nacre", "daemon", "--config", QUOTA_CONFIG,
						      "--root", QUOTA_NODE, NULL });
	(void)close(log_fd);
	while (NACRE("info") != 0 && guest_now() < end)
		guest_pause();
	CHECK_NACRE("info");
}

static void starts(void)
{
	int config_fd = open(QUOTA_CONFIG, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(config_fd >= 0 && dprintf(config_fd, "cgroup: /quota/base\nspare: no\n"
						   "network:\n  default: none\n") > 0);
	(void)close(config_fd);
	CHECK(mkdir(QUOTA_GROUPS "/test", 0755) == 0);
	CHECK(guest_write(QUOTA_GROUPS "/test/cgroup.procs", "0"));
	start_daemon();
	CHECK_NACRE("image", "import", "/images/busybox.tar");
	(void)NACRE("doctor");
	CHECK(strstr(guest_output, "--disk is a quota of a project in " QUOTA_NODE) != NULL);
}

static void ends_at_the_limit(void)
{
	CHECK_NACRE("run", "--rm", "--disk", "32m", "busybox", "sh", "-c",
		    FILL "; /bin/busybox df -k / | tail -n 1");
	/* Blocks, as the kernel tells them of the root. */
	CHECK(strstr(guest_output, " 32768 ") != NULL);
	CHECK(strstr(guest_output, "No space") != NULL || strstr(guest_output, "quota") != NULL);
	CHECK_NACRE("run", "--rm", "--disk", "32m", "busybox", "sh", "-c", FILL);
	CHECK(last_number() > 24 * MIB && last_number() < 32 * MIB);
	wait_for_limits(0);
}

/* Some ways around it: another project, and directories whose files have none. */
static void has_no_way_around(void)
{
	static const char *const tries[] = {
		"/project give /fill",
		"mkdir /d; /project leave /d",
		"/project leave /",
	};

	CHECK_NACRE("run", "-d", "--name", "p", "--disk", "32m", "busybox", "sleep", "1000");
	CHECK_INT(limits(), 1);
	CHECK_NACRE("exec", "p", "sh", "-c", "echo >/fill");
	CHECK_NACRE("cp", "/bin/project", "p:/project");
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++) {
		(void)NACRE("exec", "p", "sh", "-c", tries[i]);
		if (!strstr(guest_output, "not permitted"))
			guest_show();
		CHECK(strstr(guest_output, "not permitted") != NULL);
	}
	CHECK_NACRE("exec", "p", "sh", "-c", "mkdir -p /d; cd /d; ln -s /d/fill /other; " FILL);
	CHECK(last_number() > 24 * MIB && last_number() < 32 * MIB);
	CHECK(NACRE("exec", "p", "sh", "-c", "dd if=/dev/zero of=/d/more bs=64k count=128 2>&1") !=
	      0);
}

static void is_told(void)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;
	_cleanup_fd_ int fd = open_container();
	struct quota_use use = { .limit = 0 };

	CHECK_INT(quota_look(fd, &use), 0);
	CHECK(use.limit == 32U << 20 && use.used > 24U << 20);
	CHECK(faccessat(fd, "disk", F_OK, 0) < 0);
	do {
		(void)NACRE("stats", "-o", "json", "p");
		if (guest_number(guest_output, "containers/files/bytes") > 24 * MIB)
			break;
		guest_pause();
	} while (guest_now() < end);
	CHECK(guest_number(guest_output, "containers/files/bytes") > 24 * MIB);
	CHECK_INT(guest_number(guest_output, "containers/files/limit"), 32 * MIB);
}

static void outlives_the_daemon(void)
{
	CHECK(kill(node_pid, SIGKILL) == 0);
	(void)guest_wait(node_pid);
	start_daemon();
	CHECK_INT(limits(), 1);
	CHECK_NACRE("check");
	CHECK_NACRE("exec", "p", "sh", "-c", FILL);
	CHECK(last_number() > 24 * MIB && last_number() < 32 * MIB);
	CHECK_NACRE("rm", "-f", "p");
	wait_for_limits(0);
	CHECK_NACRE("check");
}

/* What is left by a daemon that died before it wrote that there is a container. */
static void what_is_left_is_freed(void)
{
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = -1;

	CHECK(kill(node_pid, SIGKILL) == 0);
	(void)guest_wait(node_pid);
	CHECK(mkdir(QUOTA_NODE "/containers/stale", 0700) == 0);
	fd = open_dir(QUOTA_NODE "/containers/stale");
	CHECK_INT(quota_give(fd, "stale", 16U << 20, &err), 0);
	CHECK_INT(limits(), 1);
	start_daemon();
	wait_for_limits(0);
	CHECK_NACRE("check");
}

static void one_that_is_taken_away_is_found(void)
{
	_cleanup_fd_ int fd = -1;

	CHECK_NACRE("run", "-d", "--name", "p", "--disk", "32m", "busybox", "sleep", "1000");
	CHECK_NACRE("check");
	fd = open_container();
	CHECK_INT(quota_free(fd), 0);
	CHECK(NACRE("check") != 0);
	CHECK(strstr(guest_output, "the quota of a project, and that has none") != NULL);
	CHECK_NACRE("rm", "-f", "p");
}

/* Once more with the files that it has, and read when it has ended. */
static void holds_when_it_is_started_again(void)
{
	CHECK_NACRE("run", "--name", "p", "--disk", "32m", "busybox", "sh", "-c",
		    "dd if=/dev/zero of=/old bs=1M count=8 2>/dev/null; " FILL);
	CHECK(last_number() > 16 * MIB && last_number() < 24 * MIB);
	CHECK_INT(limits(), 1);
	CHECK_NACRE("start", "p");
	CHECK_NACRE("wait", "p");
	CHECK_NACRE("cp", "p:/fill", "/run/fill");
	CHECK(unlink("/run/fill") == 0);
	CHECK_NACRE("logs", "p");
	CHECK(last_number() > 16 * MIB && last_number() < 24 * MIB);
	CHECK_NACRE("rm", "-f", "p");
	wait_for_limits(0);
}

/* Whoever could change the project of its files has a file system of its own, as before. */
static void is_not_used_where_it_does_not_hold(void)
{
	static const char *const options[][3] = { { "--security-opt", "seccomp=unconfined", NULL },
						  { "--cap-add", "SYS_ADMIN", NULL },
						  { "--privileged", NULL, NULL } };

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		const char *argv[16] = { "nacre", "run", "-d", "--name", "p", "--disk", "32m" };
		_cleanup_fd_ int fd = -1;
		size_t n = 7;

		for (size_t k = 0; options[i][k]; k++)
			argv[n++] = options[i][k];
		argv[n++] = "busybox";
		argv[n++] = "sleep";
		argv[n++] = "1000";
		CHECK_INT(guest_run(argv), 0);
		CHECK_INT(limits(), 0);
		fd = open_container();
		CHECK(faccessat(fd, "disk", F_OK, 0) == 0);
		CHECK_NACRE("rm", "-f", "p");
	}
}

static void ends(void)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;
	bool empty = false;

	wait_for_limits(0);
	CHECK_NACRE("check");
	CHECK(node_pid > 0 && kill(node_pid, SIGTERM) == 0);
	CHECK_INT(guest_wait(node_pid), 0);
	/* The keeper of the node, if there is one, outlives the daemon. */
	(void)guest_write(QUOTA_BASE "/cgroup.kill", "1");
	while (!empty && guest_now() < end) {
		empty = access(QUOTA_BASE, F_OK) < 0 ||
			strstr(guest_read(QUOTA_BASE "/cgroup.events"), "populated 0") != NULL;
		guest_pause();
	}
	CHECK(empty);
	CHECK_INT(GUEST_RUN("sh", "-c",
			    "rmdir " QUOTA_BASE "/*/* " QUOTA_BASE "/* " QUOTA_BASE
			    "; test ! -e " QUOTA_BASE),
		  0);
	CHECK(guest_write(QUOTA_GROUPS "/cgroup.subtree_control",
			  "-cpuset -cpu -io -memory -pids"));
	CHECK(guest_write(QUOTA_GROUPS "/cgroup.procs", "0"));
	CHECK(rmdir(QUOTA_GROUPS "/test") == 0);
	CHECK(umount2(QUOTA_DISK, MNT_DETACH) == 0);
}

UNIT_MAIN({ "it is enforced where it is mounted so", is_enforced_where_it_is_mounted_so },
	  { "free ids are given", gives_ids_that_are_free },
	  { "a node starts on that disk, and doctor tells", starts },
	  { "what a container writes ends at its limit", ends_at_the_limit },
	  { "it has no way around that", has_no_way_around }, { "the limit is told", is_told },
	  { "the limit outlives the daemon", outlives_the_daemon },
	  { "what a dead daemon has left is freed", what_is_left_is_freed },
	  { "a limit that is gone is found", one_that_is_taken_away_is_found },
	  { "a container that is started again has it", holds_when_it_is_started_again },
	  { "it is not used where it does not hold", is_not_used_where_it_does_not_hold },
	  { "the daemon ends, and nothing is left", ends })
