/* SPDX-License-Identifier: Apache-2.0 */

/*
 * `nacre oci` where every controller of cgroup v2 is there: limits of a bundle, pause, update, OOM
 * kills. It is the part of the OCI command line that podman and containerd use v1 for on a host
 * that has both versions.
 */

#include <sys/stat.h>

#include "guest.h"
#include "unit.h"

#define OCI_BUNDLE "/run/bundle"
#define OCI_GROUP "/sys/fs/cgroup/oci/c1"
#define OCI_COUNT "/images/rootfs/count"

#define OCI(...) GUEST_RUN("nacre", "oci", __VA_ARGS__)

#define CHECK_OCI(...)                                                                             \
	do {                                                                                       \
		int oci_status_ = OCI(__VA_ARGS__);                                                \
		if (oci_status_ != 0)                                                              \
			guest_show();                                                              \
		CHECK_INT(oci_status_, 0);                                                         \
	} while (0)

static const char oci_config[] =
	"{\"ociVersion\":\"1.2.0\",\"process\":{\"user\":{\"uid\":0,\"gid\":0},\"cwd\":\"/\","
	"\"env\":[\"PATH=/bin\"],\"args\":[\"sh\",\"-c\","
	"\"while :; do echo x >>/count; sleep 0.05; done\"]},"
	"\"root\":{\"path\":\"/images/rootfs\"},\"mounts\":["
	"{\"destination\":\"/proc\",\"type\":\"proc\",\"source\":\"proc\"},"
	"{\"destination\":\"/"
	"dev\",\"type\":\"tmpfs\",\"source\":\"tmpfs\",\"options\":[\"nosuid\"]}],"
	"\"linux\":{\"cgroupsPath\":\"/oci/c1\",\"namespaces\":[{\"type\":\"pid\"},"
	"{\"type\":\"mount\"},{\"type\":\"ipc\"},{\"type\":\"uts\"},{\"type\":\"network\"},"
	"{\"type\":\"cgroup\"}],\"resources\":{\"memory\":{\"limit\":67108864},"
	"\"pids\":{\"limit\":50},\"cpu\":{\"quota\":50000,\"period\":100000}}}}";

/* Whether the file of the group has this for its first line. */
static bool group_has(const char *file, const char *value)
{
	char path[128];
	const char *text;

	(void)snprintf(path, sizeof(path), OCI_GROUP "/%s", file);
	text = guest_read(path);
	if (strncmp(text, value, strlen(value)) == 0 && text[strlen(value)] == '\n')
		return true;
	printf("# %s is %s\n", file, text);
	return false;
}

static long long count_size(void)
{
	struct stat st;

	return stat(OCI_COUNT, &st) == 0 ? st.st_size : 0;
}

static bool count_grows(void)
{
	long long before = count_size();
	time_t end = guest_now() + GUEST_PATIENCE_S;

	while (count_size() <= before && guest_now() < end)
		guest_pause();
	return count_size() > before;
}

static void starts_with_limits(void)
{
	pid_t pid;
	int fd;

	CHECK(mkdir("/sys/fs/cgroup/oci/test", 0755) == 0);
	CHECK(guest_write("/sys/fs/cgroup/oci/test/cgroup.procs", "0"));
	CHECK(mkdir(OCI_BUNDLE, 0755) == 0);
	fd = open(OCI_BUNDLE "/config.json", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	CHECK(write(fd, oci_config, strlen(oci_config)) == (ssize_t)strlen(oci_config));
	(void)close(fd);
	/* The container has the caller's streams: a pipe would stay open. */
	fd = open("/run/create", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	pid = guest_start(fd, (const char *const[]){ "nacre", "oci", "create", "--bundle",
						     OCI_BUNDLE, "c1", NULL });
	(void)close(fd);
	CHECK_INT(guest_wait(pid), 0);
	(void)guest_read("/run/create");
	guest_show();
	CHECK(group_has("memory.max", "67108864"));
	CHECK(group_has("pids.max", "50"));
	CHECK(group_has("cpu.max", "50000 100000"));
	CHECK_OCI("start", "c1");
	CHECK(count_grows());
}

static void pauses(void)
{
	long long then;

	CHECK_OCI("pause", "c1");
	then = count_size();
	CHECK(strstr(guest_read(OCI_GROUP "/cgroup.events"), "frozen 1") != NULL);
	CHECK_OCI("state", "c1");
	CHECK(strstr(guest_output, "\"paused\"") != NULL);
	for (int i = 0; i < 25; i++)
		guest_pause();
	CHECK_INT(count_size(), then);
	CHECK_OCI("resume", "c1");
	CHECK(strstr(guest_read(OCI_GROUP "/cgroup.events"), "frozen 0") != NULL);
	CHECK_OCI("state", "c1");
	CHECK(strstr(guest_output, "\"running\"") != NULL);
	CHECK(count_grows());
}

static void updates(void)
{
	CHECK_OCI("update", "--memory", "33554432", "--pids-limit", "20", "--cpu-quota", "20000",
		  "--cpuset-cpus", "1", "c1");
	CHECK(group_has("memory.max", "33554432"));
	CHECK(group_has("pids.max", "20"));
	CHECK(group_has("cpu.max", "20000 100000"));
	CHECK(group_has("cpuset.cpus.effective", "1"));
	CHECK_OCI("update", "--cpu-quota", "-1", "--pids-limit", "-1", "c1");
	CHECK(group_has("cpu.max", "max 100000"));
	CHECK(group_has("pids.max", "max"));
	/* What was not named is as it was. */
	CHECK(group_has("memory.max", "33554432"));
}

static void refuses_an_update(void)
{
	CHECK(OCI("update", "--memory", "16777216", "--cpuset-cpus", "99", "c1") != 0);
	CHECK(group_has("memory.max", "33554432"));
	CHECK(OCI("update", "--memory", "16777216", "--kernel-memory", "1048576", "c1") != 0);
	CHECK(group_has("memory.max", "33554432"));
}

static void counts(void)
{
	CHECK_OCI("events", "--stats", "c1");
	CHECK(guest_number(guest_output, "memory/usage/usage") > 0);
	CHECK_INT(guest_number(guest_output, "memory/usage/limit"), 33554432);
	CHECK(guest_number(guest_output, "pids/current") >= 1);
	CHECK(guest_number(guest_output, "cpu/usage/total") > 0);
}

static void tells_of_an_oom_kill(void)
{
	int fd = open("/run/events", O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	pid_t pid = guest_start(fd, (const char *const[]){ "nacre", "oci", "events", "c1", NULL });
	time_t end = guest_now() + GUEST_PATIENCE_S;
	bool told = false;

	(void)close(fd);
	/* It says how things are, and from then on what happens. */
	while (!*guest_read("/run/events") && guest_now() < end)
		guest_pause();
	CHECK(OCI("exec", "c1", "tail", "/dev/zero") != 0);
	while (!told && guest_now() < end) {
		told = strstr(guest_read("/run/events"), "\"oom\"") != NULL;
		guest_pause();
	}
	CHECK(told);
	CHECK(pid > 0 && kill(pid, SIGKILL) == 0);
	(void)guest_wait(pid);
	/* The container's own program lives. */
	CHECK(count_grows());
}

static void ends(void)
{
	time_t end = guest_now() + GUEST_PATIENCE_S;
	bool stopped = false;

	CHECK_OCI("kill", "c1", "KILL");
	while (!stopped && guest_now() < end) {
		(void)OCI("state", "c1");
		stopped = strstr(guest_output, "\"stopped\"") != NULL;
		guest_pause();
	}
	CHECK(stopped);
	CHECK_OCI("delete", "c1");
	CHECK(access(OCI_GROUP, F_OK) < 0);
	CHECK(OCI("state", "c1") != 0);
	CHECK(guest_write("/sys/fs/cgroup/oci/cgroup.subtree_control",
			  "-cpuset -cpu -io -memory -pids -hugetlb -rdma -misc"));
	CHECK(guest_write("/sys/fs/cgroup/oci/cgroup.procs", "0"));
	CHECK(rmdir("/sys/fs/cgroup/oci/test") == 0);
}

UNIT_MAIN({ "a container starts with its limits", starts_with_limits },
	  { "pause and resume", pauses }, { "update", updates },
	  { "an update that is refused changes nothing", refuses_an_update },
	  { "statistics", counts }, { "an OOM kill is told", tells_of_an_oom_kill },
	  { "kill, delete, and nothing is left", ends })
