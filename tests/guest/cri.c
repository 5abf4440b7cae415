/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Kubernetes' interface where every controller of cgroup v2 is there: the limits of a container
 * that is created, and of one that runs, as the kernel has them and as they are told.
 */

#include <signal.h>
#include <sys/stat.h>

#include "api/cri.pb-c.h"
#include "cli/remote/client.h"
#include "cli/remote/target.h"
#include "guest.h"
#include "unit.h"

#define CRI_CONFIG "/run/config.yaml"
#define CRI_BASE "/sys/fs/cgroup/cri"
#define CRI_GROUP CRI_BASE "/base"
#define CRI_SOCKET "/run/nacre/nacre.sock"
#define CRI_METHOD "/runtime.v1.RuntimeService/"
#define MIB ((int64_t)1 << 20)

static const struct client_target here = { .socket = CRI_SOCKET };
static pid_t node_pid = -1;
static struct client *client;
static char sandbox[64], created[64], running[64];

static void *ask(const char *method, const ProtobufCMessage *request,
		 const ProtobufCMessageDescriptor *type)
{
	struct error err = ERROR_INIT;
	void *answer = client_ask(client, method, request, type, &err);

	CHECK_STR(err.text, "");
	return answer;
}

static char *text(const char *s)
{
	return (char *)(uintptr_t)s;
}

static void starts(void)
{
	int log_fd = open("/run/daemon.log", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	int config_fd = open(CRI_CONFIG, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	time_t end = guest_now() + GUEST_PATIENCE_S;

	CHECK(config_fd >= 0 && dprintf(config_fd, "cgroup: /cri/base\nspare: no\n"
						   "network:\n  default: none\n") > 0);
	(void)close(config_fd);
	CHECK(mkdir(CRI_BASE "/test", 0755) == 0);
	CHECK(guest_write(CRI_BASE "/test/cgroup.procs", "0"));
	node_pid = guest_start(
		log_fd, (const char *const[]){ "nacre", "daemon", "--config", CRI_CONFIG, NULL });
	(void)close(log_fd);
	while (GUEST_RUN("nacre", "info") != 0 && guest_now() < end)
		guest_pause();
	CHECK_INT(GUEST_RUN("nacre", "image", "import", "/images/busybox.tar"), 0);
	client = client_open(&here, NULL);
	CHECK(client != NULL);
}

/* Of the node's network: the guest has no other. */
static void makes_a_sandbox(void)
{
	Runtime__V1__NamespaceOption names = RUNTIME__V1__NAMESPACE_OPTION__INIT;
	Runtime__V1__LinuxSandboxSecurityContext context =
		RUNTIME__V1__LINUX_SANDBOX_SECURITY_CONTEXT__INIT;
	Runtime__V1__LinuxPodSandboxConfig own = RUNTIME__V1__LINUX_POD_SANDBOX_CONFIG__INIT;
	Runtime__V1__PodSandboxMetadata metadata = RUNTIME__V1__POD_SANDBOX_METADATA__INIT;
	Runtime__V1__PodSandboxConfig config = RUNTIME__V1__POD_SANDBOX_CONFIG__INIT;
	Runtime__V1__RunPodSandboxRequest q = RUNTIME__V1__RUN_POD_SANDBOX_REQUEST__INIT;
	Runtime__V1__RunPodSandboxResponse *m;

	names.network = RUNTIME__V1__NAMESPACE_MODE__NODE;
	context.namespace_options = &names;
	own.security_context = &context;
	metadata.name = metadata.namespace_ = metadata.uid = text("pod");
	config.metadata = &metadata;
	config.linux = &own;
	q.config = &config;
	m = ask(CRI_METHOD "RunPodSandbox", &q.base,
		&runtime__v1__run_pod_sandbox_response__descriptor);
	(void)snprintf(sandbox, sizeof(sandbox), "%s", m ? m->pod_sandbox_id : "");
	client_message_freep(&m);
}

static void create(const char *name, Runtime__V1__LinuxContainerResources *limits, bool start,
		   char ret[64])
{
	static char sleep_word[] = "sleep", forever[] = "100000";
	char *command[] = { sleep_word, forever };
	Runtime__V1__ContainerMetadata metadata = RUNTIME__V1__CONTAINER_METADATA__INIT;
	Runtime__V1__ImageSpec image = RUNTIME__V1__IMAGE_SPEC__INIT;
	Runtime__V1__LinuxContainerConfig own = RUNTIME__V1__LINUX_CONTAINER_CONFIG__INIT;
	Runtime__V1__ContainerConfig config = RUNTIME__V1__CONTAINER_CONFIG__INIT;
	Runtime__V1__CreateContainerRequest q = RUNTIME__V1__CREATE_CONTAINER_REQUEST__INIT;
	Runtime__V1__StartContainerRequest go = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;
	Runtime__V1__CreateContainerResponse *m;
	Runtime__V1__StartContainerResponse *gone;

	metadata.name = text(name);
	image.image = text("busybox");
	own.resources = limits;
	config.metadata = &metadata;
	config.image = &image;
	config.linux = &own;
	config.command = command;
	config.n_command = 2;
	q.pod_sandbox_id = sandbox;
	q.config = &config;
	m = ask(CRI_METHOD "CreateContainer", &q.base,
		&runtime__v1__create_container_response__descriptor);
	(void)snprintf(ret, 64, "%s", m ? m->container_id : "");
	client_message_freep(&m);
	go.container_id = ret;
	if (!start)
		return;
	gone = ask(CRI_METHOD "StartContainer", &go.base,
		   &runtime__v1__start_container_response__descriptor);
	client_message_freep(&gone);
}

static int update(char *id, Runtime__V1__LinuxContainerResources *limits, struct error *err)
{
	Runtime__V1__UpdateContainerResourcesRequest q =
		RUNTIME__V1__UPDATE_CONTAINER_RESOURCES_REQUEST__INIT;
	Runtime__V1__UpdateContainerResourcesResponse *m;

	q.container_id = id;
	q.linux = limits;
	m = client_ask(client, CRI_METHOD "UpdateContainerResources", &q.base,
		       &runtime__v1__update_container_resources_response__descriptor, err);
	client_message_freep(&m);
	return err->code;
}

/* Whether the file of the container's group holds just this line. */
static bool holds(char *id, const char *file, const char *line)
{
	Runtime__V1__ContainerStatusRequest q = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;
	Runtime__V1__ContainerStatusResponse *m;
	char path[4400], group[4096];
	const char *at;

	q.container_id = id;
	q.verbose = true;
	m = ask(CRI_METHOD "ContainerStatus", &q.base,
		&runtime__v1__container_status_response__descriptor);
	(void)snprintf(path, sizeof(path), "/proc/%lld/cgroup",
		       m && m->n_info ? guest_number(m->info[0]->value, "pid") : -1);
	client_message_freep(&m);
	at = strchr(guest_read(path), '/');
	(void)snprintf(group, sizeof(group), "%.*s", at ? (int)strcspn(at, "\n") : 0, at ? at : "");
	(void)snprintf(path, sizeof(path), "/sys/fs/cgroup%s/%s", group, file);
	at = guest_read(path);
	if (strncmp(at, line, strlen(line)) == 0 && strcmp(at + strlen(line), "\n") == 0)
		return true;
	printf("# %s is %s\n", path, at);
	return false;
}

/* What is told of it, in the words of the request; 0 where it is not. */
static Runtime__V1__ContainerStatusResponse *status(char *id)
{
	Runtime__V1__ContainerStatusRequest q = RUNTIME__V1__CONTAINER_STATUS_REQUEST__INIT;

	q.container_id = id;
	return ask(CRI_METHOD "ContainerStatus", &q.base,
		   &runtime__v1__container_status_response__descriptor);
}

static void limits_are_set(void)
{
	Runtime__V1__LinuxContainerResources limits = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	Runtime__V1__LinuxContainerResources__UnifiedEntry high =
		RUNTIME__V1__LINUX_CONTAINER_RESOURCES__UNIFIED_ENTRY__INIT;
	Runtime__V1__LinuxContainerResources__UnifiedEntry *files[] = { &high };
	Runtime__V1__ContainerStatusResponse *m;

	limits.cpu_quota = 50000;
	limits.cpu_period = 100000;
	limits.cpu_shares = 512;
	limits.memory_limit_in_bytes = 64 * MIB;
	limits.memory_swap_limit_in_bytes = 64 * MIB;
	limits.cpuset_cpus = text("0");
	high.key = text("memory.high");
	high.value = text("33554432");
	limits.unified = files;
	limits.n_unified = 1;
	create("running", &limits, true, running);
	CHECK(holds(running, "cpu.max", "50000 100000"));
	CHECK(holds(running, "cpu.weight", "59"));
	CHECK(holds(running, "memory.max", "67108864"));
	CHECK(holds(running, "memory.high", "33554432"));
	CHECK(holds(running, "memory.swap.max", "0"));
	CHECK(holds(running, "cpuset.cpus", "0"));
	m = status(running);
	CHECK(m && m->status->resources && m->status->resources->linux);
	if (m && m->status->resources && m->status->resources->linux) {
		CHECK_INT(m->status->resources->linux->cpu_shares, 512);
		CHECK_INT(m->status->resources->linux->memory_limit_in_bytes, 64 * MIB);
		CHECK_INT(m->status->resources->linux->memory_swap_limit_in_bytes, 64 * MIB);
	}
	client_message_freep(&m);
}

static void limits_are_updated(void)
{
	Runtime__V1__LinuxContainerResources limits = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	Runtime__V1__ContainerStatusResponse *m;
	struct error err = ERROR_INIT;

	limits.memory_limit_in_bytes = 96 * MIB;
	limits.cpu_quota = -1;
	limits.cpu_shares = 2048;
	CHECK_INT(update(running, &limits, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(holds(running, "memory.max", "100663296"));
	CHECK(holds(running, "memory.swap.max", "0"));
	CHECK(holds(running, "cpu.max", "max 100000"));
	/* What the own API changes is told too. */
	CHECK_INT(GUEST_RUN("nacre", "update", sandbox, "-c", "running", "-m", "80m"), 0);
	m = status(running);
	CHECK(m && m->status->resources && m->status->resources->linux);
	if (m && m->status->resources && m->status->resources->linux) {
		CHECK_INT(m->status->resources->linux->cpu_shares, 2048);
		CHECK_INT(m->status->resources->linux->cpu_quota, -1);
		CHECK_INT(m->status->resources->linux->memory_limit_in_bytes, 80 * MIB);
		CHECK_INT(m->status->resources->linux->memory_swap_limit_in_bytes, 80 * MIB);
	}
	client_message_freep(&m);
}

/* All or none: there is no such processor. */
static void limits_are_refused(void)
{
	Runtime__V1__LinuxContainerResources limits = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	struct error err = ERROR_INIT;

	limits.memory_limit_in_bytes = 70 * MIB;
	limits.cpuset_cpus = text("500");
	CHECK(update(running, &limits, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "linux.cpuset_cpus") != NULL);
	CHECK(holds(running, "memory.max", "83886080"));
}

static void created_ones_start_with_them(void)
{
	Runtime__V1__LinuxContainerResources limits = RUNTIME__V1__LINUX_CONTAINER_RESOURCES__INIT;
	Runtime__V1__StartContainerRequest go = RUNTIME__V1__START_CONTAINER_REQUEST__INIT;
	Runtime__V1__StartContainerResponse *m;
	struct error err = ERROR_INIT;

	limits.memory_limit_in_bytes = 64 * MIB;
	create("created", &limits, false, created);
	limits.memory_limit_in_bytes = 48 * MIB;
	limits.cpu_quota = 30000;
	CHECK_INT(update(created, &limits, &err), 0);
	CHECK_STR(err.text, "");
	go.container_id = created;
	m = ask(CRI_METHOD "StartContainer", &go.base,
		&runtime__v1__start_container_response__descriptor);
	client_message_freep(&m);
	CHECK(holds(created, "memory.max", "50331648"));
	CHECK(holds(created, "cpu.max", "30000 100000"));
}

static void ends(void)
{
	Runtime__V1__RemovePodSandboxRequest q = RUNTIME__V1__REMOVE_POD_SANDBOX_REQUEST__INIT;
	Runtime__V1__RemovePodSandboxResponse *m;
	time_t end = guest_now() + GUEST_PATIENCE_S;
	bool empty = false;

	q.pod_sandbox_id = sandbox;
	m = ask(CRI_METHOD "RemovePodSandbox", &q.base,
		&runtime__v1__remove_pod_sandbox_response__descriptor);
	client_message_freep(&m);
	client = client_free(client);
	CHECK(node_pid > 0 && kill(node_pid, SIGTERM) == 0);
	CHECK_INT(guest_wait(node_pid), 0);
	(void)guest_write(CRI_GROUP "/cgroup.kill", "1");
	while (!empty && guest_now() < end) {
		empty = access(CRI_GROUP, F_OK) < 0 ||
			strstr(guest_read(CRI_GROUP "/cgroup.events"), "populated 0") != NULL;
		guest_pause();
	}
	CHECK(empty);
	CHECK_INT(GUEST_RUN("sh", "-c",
			    "rmdir " CRI_GROUP "/*/* " CRI_GROUP "/* " CRI_GROUP
			    "; test ! -e " CRI_GROUP),
		  0);
	CHECK(guest_write(CRI_BASE "/cgroup.subtree_control", "-cpuset -cpu -io -memory -pids"));
	CHECK(guest_write(CRI_BASE "/cgroup.procs", "0"));
	CHECK(rmdir(CRI_BASE "/test") == 0);
}

UNIT_MAIN({ "the daemon starts and imports an image", starts },
	  { "a sandbox is made", makes_a_sandbox },
	  { "limits of a request are set", limits_are_set },
	  { "limits are changed while it runs", limits_are_updated },
	  { "limits that the kernel refuses", limits_are_refused },
	  { "a container that is created starts with its last limits",
	    created_ones_start_with_them },
	  { "the daemon ends, and nothing is left", ends })
