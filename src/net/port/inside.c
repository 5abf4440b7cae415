/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/inside.h"

#include <assert.h>
#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/process/thread.h"

struct inside {
	int ns_fd;
	inside_fn fn;
	void *arg;
	struct error *err;
	int r;
};

static void *inside_thread(void *arg)
{
	struct inside *in = arg;

	if (in->ns_fd == INSIDE_NEW && unshare(CLONE_NEWNET) < 0)
		in->r = error_set(in->err, -errno, "make a network namespace");
	else if (in->ns_fd != INSIDE_NEW && setns(in->ns_fd, CLONE_NEWNET) < 0)
		in->r = error_set(in->err, -errno, "enter a network namespace");
	else
		in->r = in->fn(in->arg, in->err);
	return NULL;
}

int inside_run(int ns_fd, inside_fn fn, void *arg, struct error *err)
{
	struct inside in = { .ns_fd = ns_fd, .fn = fn, .arg = arg, .err = err };
	pthread_t thread;
	int r;

	r = thread_start(&thread, inside_thread, &in);
	if (r < 0)
		return error_set(err, r, "make a thread for a network namespace");
	r = pthread_join(thread, NULL);
	assert(r == 0);
	return in.r;
}

static int inside_open(void *arg, struct error *err)
{
	return netlink_open(arg, err);
}

int inside_netlink(struct netlink *ret, int ns_fd, struct error *err)
{
	return inside_run(ns_fd, inside_open, ret, err);
}

int inside_of_socket(int socket_fd, struct error *err)
{
	int fd = ioctl(socket_fd, SIOCGSKNS);

	return fd < 0 ? error_set(err, -errno, "open the network namespace of a socket") : fd;
}
