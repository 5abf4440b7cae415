/* SPDX-License-Identifier: Apache-2.0 */

/* What the daemon has given up (isolate/seccomp/confine.h) leaves it what the networks of guests
 * and pods need. */

#include <errno.h>
#include <netinet/in.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "isolate/seccomp/confine.h"
#include "net/filter/filter.h"
#include "net/filter/forward.h"
#include "net/netlink/conntrack.h"
#include "net/port/inside.h"
#include "net/port/port.h"
#include "net/port/segment.h"
#include "net/range/subnets.h"
#include "unit.h"

/* A child's word is a line that it prints; its exit status says whether all was well. */
static void in_child(void (*test)(void))
{
	int status = -1;
	pid_t pid;

	(void)fflush(stdout);
	pid = fork();
	if (pid == 0) {
		unit_failures = 0;
		test();
		(void)fflush(stdout);
		_exit(unit_failures ? 1 : 0);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void segment_in_child(void)
{
	const struct segment_plan plan = segment_plan_usual();
	struct cable_end far = { .name = "guest1", .bridge = "pods0" };
	_cleanup_segment_ struct segment s = SEGMENT_NONE;
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_fd_ int own_fd = -1;
	_cleanup_fd_ int tap_fd = -1;
	struct error err = ERROR_INIT;
	struct link link;
	int r;

	CHECK(unshare(CLONE_NEWNET) == 0);
	CHECK_INT(confine_daemon(&err), 0);
	errno = 0;
	CHECK(syscall(SYS_reboot, -1, -1, -1, -1) < 0 && errno == EPERM);
	r = segment_make(&s, &plan, &err);
	/* Without memory there is no thread. */
	if (failmalloc_has_failed && failmalloc_has_failed() && r < 0)
		return;
	CHECK_INT(r, 0);
	CHECK_INT(netlink_open(&nl, &err), 0);
	own_fd = inside_of_socket(nl.fd, &err);
	CHECK(own_fd >= 0);
	far.ns_fd = own_fd;
	CHECK_INT(link_add_bridge(&nl, far.bridge, NULL, NULL, &err), 0);
	r = segment_add_device(s.ns_fd, 1, &far, 0, &tap_fd, &err);
	if (failmalloc_has_failed && failmalloc_has_failed() && r < 0)
		return;
	CHECK_INT(r, 0);
	CHECK_INT(link_find(&nl, far.name, &link, &err), 0);
	if (unit_failures)
		printf("# %s\n", error_text(&err));
}

static void the_network_of_a_guest(void)
{
	in_child(segment_in_child);
}

/* The network namespace of a pod that has a user namespace of its own; nobody is in it. */
static int pod_of_own_users(void)
{
	char path[64], word = 0;
	int pipe_fd[2], fd = -1;
	pid_t pid;

	CHECK(pipe2(pipe_fd, O_CLOEXEC) == 0);
	pid = fork();
	if (pid == 0) {
		if (unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0 && write(pipe_fd[1], "y", 1) == 1)
			(void)pause();
		_exit(1);
	}
	(void)fd_close(pipe_fd[1]);
	CHECK(pid > 0 && read(pipe_fd[0], &word, 1) == 1);
	(void)fd_close(pipe_fd[0]);
	(void)snprintf(path, sizeof(path), "/proc/%d/ns/net", (int)pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	CHECK(fd >= 0);
	CHECK(kill(pid, SIGKILL) == 0 && waitpid(pid, NULL, 0) == pid);
	return fd;
}

static struct prefix of(const char *text)
{
	struct prefix p = { .family = 0 };

	CHECK_INT(prefix_parse(text, &p), 0);
	return p;
}

static void port_in_child(void)
{
	struct port_plan plan = { .pod_name = "eth0",
				  .alias = "a pod",
				  .group = PORT_GROUP + 1,
				  .ip4 = of("10.99.0.7"),
				  .ip6 = of("fd99::7"),
				  .gateway4 = of("10.99.0.1"),
				  .is_default = true,
				  .pool4 = of("10.99.0.0/24"),
				  .pool6 = of("fd99::/64"),
				  .loopback = true,
				  .rate_to_pod = 1000000000,
				  .rate_from_pod = 1000000000 };
	_cleanup_fd_ int pod_fd = -1;
	struct forward forward = { .n_links = 0 };
	struct error err = ERROR_INIT;
	uint32_t index = 0;
	int r;

	port_name(&plan.ip4, plan.name);
	port_mac(&plan.ip4, plan.mac);
	pod_fd = pod_of_own_users();
	CHECK(unshare(CLONE_NEWNET) == 0);
	CHECK_INT(confine_daemon(&err), 0);
	r = port_make(&plan, pod_fd, &index, &err);
	if (failmalloc_has_failed && failmalloc_has_failed() && r < 0)
		return;
	CHECK_INT(r, 0);
	r = forward_settle(&forward, &err);
	if (r == 0)
		r = subnets_settle_routes(&plan.pool4, 1, &err);
	if (r == 0)
		r = port_remove(plan.name, &err);
	if (failmalloc_has_failed && failmalloc_has_failed() && r < 0)
		return;
	CHECK_INT(r, 0);
	if (unit_failures)
		printf("# %s\n", error_text(&err));
}

static void the_port_of_a_pod(void)
{
	in_child(port_in_child);
}

static void filter_in_child(void)
{
	const struct filter_network network = {
		.number = 1, .pool4 = { .family = AF_INET, .length = 24, .bytes = { 10, 171 } }
	};
	const struct filter_state state = { .networks = &network, .n_networks = 1 };
	const struct conntrack_stale stale = { .protocol = IPPROTO_UDP, .host_port = 53 };
	struct filter *f = NULL;
	struct error err = ERROR_INIT;
	int watch_fd;

	CHECK(unshare(CLONE_NEWNET) == 0);
	CHECK_INT(confine_daemon(&err), 0);
	CHECK_INT(filter_new(&f, &err), 0);
	if (f)
		CHECK_INT(filter_sync(f, &state, &err), 0);
	f = filter_free(f);
	CHECK(!f);
	watch_fd = filter_watch_open(&err);
	CHECK(watch_fd >= 0);
	(void)fd_close(watch_fd);
	CHECK_INT(conntrack_forget(&stale, 1, &err), 0);
	if (unit_failures)
		printf("# %s\n", error_text(&err));
}

static void the_packet_filter(void)
{
	in_child(filter_in_child);
}

UNIT_MAIN({ "the_network_of_a_guest", the_network_of_a_guest },
	  { "the_port_of_a_pod", the_port_of_a_pod }, { "the_packet_filter", the_packet_filter })
