/* SPDX-License-Identifier: Apache-2.0 */

/* What the daemon has given up (isolate/confine.h) leaves it what the network of a guest needs. */

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "isolate/confine.h"
#include "net/inside.h"
#include "net/segment.h"
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

UNIT_MAIN({ "the_network_of_a_guest", the_network_of_a_guest })
