/* SPDX-License-Identifier: Apache-2.0 */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "api/cri.pb-c.h"
#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/cmd/doctor_check.h"
#include "cli/output/alloc.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "isolate/cgroup/cgroup.h"

#define KUBERNETES_FILE_MAX ((size_t)1 << 20)
#define CRI_SERVICE "/runtime.v1.RuntimeService/"

/* NULL where it cannot be read. */
static char *kubernetes_read(int dir_fd, const char *path)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	return fd_read_file(dir_fd, path, KUBERNETES_FILE_MAX, &b) < 0 ? NULL : buf_take_str(&b);
}

/* A condition of the CRI's Status; false with the reason. */
static bool kubernetes_condition(const struct cli *cli, const char *type, char **ret_detail)
{
	Runtime__V1__StatusRequest request = RUNTIME__V1__STATUS_REQUEST__INIT;
	_cleanup_message_ Runtime__V1__StatusResponse *m = NULL;
	struct error err = ERROR_INIT;

	m = client_ask_once(&cli->daemon, CRI_SERVICE "Status", &request.base,
			    &runtime__v1__status_response__descriptor, DOCTOR_TIMEOUT, &err);
	for (size_t i = 0; m && m->status && i < m->status->n_conditions; i++) {
		const Runtime__V1__RuntimeCondition *c = m->status->conditions[i];

		if (!str_eq(c->type, type))
			continue;
		*ret_detail =
			c->status ? xformat("%s", type) : xformat("%s: %s", c->reason, c->message);
		return c->status;
	}
	*ret_detail = m ? xformat("no condition %s", type) : xstrdup(error_text(&err));
	return false;
}

static bool runtime(const struct cli *cli, char **ret_detail)
{
	return kubernetes_condition(cli, "RuntimeReady", ret_detail);
}

static bool network(const struct cli *cli, char **ret_detail)
{
	return kubernetes_condition(cli, "NetworkReady", ret_detail);
}

/* The kubelet limits these resources in its own cgroups and in those of pods. */
static bool limits(const struct cli *cli, char **ret_detail)
{
	static const char *const wanted[] = { "cpu", "cpuset", "memory", "pids" };
	_cleanup_fd_ int root_fd = cgroup_open_root(NULL);
	_cleanup_str_ char *text =
		root_fd < 0 ? NULL : kubernetes_read(root_fd, "cgroup.controllers");
	bool found[ARRAY_SIZE(wanted)] = { false };
	char *save = NULL;

	(void)cli;
	for (char *word = text ? strtok_r(text, " \n", &save) : NULL; word;
	     word = strtok_r(NULL, " \n", &save))
		for (size_t i = 0; i < ARRAY_SIZE(wanted); i++)
			found[i] = found[i] || str_eq(word, wanted[i]);
	for (size_t i = 0; i < ARRAY_SIZE(wanted); i++) {
		if (found[i])
			continue;
		*ret_detail = xformat("cgroup v2 has no controller %s here", wanted[i]);
		return false;
	}
	*ret_detail = xstrdup("cpu, cpuset, memory and pids of cgroup v2");
	return true;
}

/* The first line is a head. */
static bool swap(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *text = kubernetes_read(AT_FDCWD, "/proc/swaps");
	const char *second = text ? strchr(text, '\n') : NULL;
	bool on = second && second[1];

	(void)cli;
	*ret_detail = on ? xformat("%.*s is on", (int)strcspn(second + 1, " \t\n"), second + 1)
			 : xstrdup("off");
	return !on;
}

static bool forwards(const struct cli *cli, char **ret_detail)
{
	_cleanup_str_ char *text = kubernetes_read(AT_FDCWD, "/proc/sys/net/ipv4/ip_forward");

	(void)cli;
	*ret_detail = xformat("net.ipv4.ip_forward = %.1s", text ? text : "?");
	return text && text[0] == '1';
}

/* Whether the file has the daemon's socket as its value of the key, as text. */
static bool kubernetes_names_us(const struct cli *cli, const char *path, const char *key,
				char **ret_detail)
{
	_cleanup_str_ char *text = kubernetes_read(AT_FDCWD, path);
	_cleanup_str_ char *socket = xformat("unix://%s", cli->daemon.socket);
	char *rest = NULL;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line;
	     line = strtok_r(NULL, "\n", &rest)) {
		if (!str_has_prefix(line, key) || line[strlen(key)] != ':')
			continue;
		*ret_detail = xformat("%s in %s", line, path);
		return strstr(line, socket) != NULL;
	}
	*ret_detail = text ? xformat("%s does not say %s", path, key)
			   : xformat("%s cannot be read", path);
	return false;
}

static bool kubelet(const struct cli *cli, char **ret_detail)
{
	return kubernetes_names_us(cli, "/var/lib/kubelet/config.yaml", "containerRuntimeEndpoint",
				   ret_detail);
}

static bool crictl(const struct cli *cli, char **ret_detail)
{
	return kubernetes_names_us(cli, "/etc/crictl.yaml", "runtime-endpoint", ret_detail);
}

const struct check doctor_kubernetes[] = {
	{ "CRI", true, runtime, "the node does not become ready", "nacre check tells more" },
	{ "network of pods", true, network, "the node does not become ready",
	  "install the cluster's plugin of CNI, or set cri.network: builtin" },
	{ "limits of pods", true, limits, "a kubelet does not start, and pods with limits neither",
	  "boot with cgroup v2 alone (systemd.unified_cgroup_hierarchy=1 cgroup_no_v1=all)" },
	{ "swap", false, swap, "a kubelet does not start, unless it has failSwapOn: false",
	  "swapoff -a" },
	{ "forwarding of pods", false, forwards,
	  "kubeadm refuses the host, and pods reach no other node",
	  "sysctl -w net.ipv4.ip_forward=1" },
	{ "kubelet", false, kubelet, "a kubelet with this configuration looks for another runtime",
	  "containerRuntimeEndpoint: unix:///run/nacre/nacre.sock, or the flag "
	  "--container-runtime-endpoint" },
	{ "crictl", false, crictl, "crictl looks for another runtime",
	  "runtime-endpoint: unix:///run/nacre/nacre.sock in /etc/crictl.yaml" },
};
const size_t doctor_n_kubernetes = ARRAY_SIZE(doctor_kubernetes);
