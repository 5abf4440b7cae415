/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A thread goes to a new namespace, opens a socket there, and ends: the namespace lives as long as
 * the socket, from which any thread gets its descriptor. The caller goes nowhere, and no path is
 * needed.
 */

#include "image/hush.h"

#include <errno.h>
#include <linux/sockios.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "base/error.h"
#include "base/fd.h"
#include "base/thread.h"
#include "image/model.h"

/* The socket, or a negative errno, in *arg. */
static void *hush_make(void *arg)
{
	int *ret = arg;

	*ret = unshare(CLONE_NEWNET) < 0 ? -1 : socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (*ret < 0)
		*ret = -errno;
	return NULL;
}

int hush_open(struct image_store *s, struct error *err)
{
	_cleanup_fd_ int sock_fd = -1;
	pthread_t thread;
	int made = -1, r;

	if (s->hush_fd >= 0)
		return s->hush_fd;
	r = thread_start(&thread, hush_make, &made);
	if (r < 0)
		return error_set(err, r, "make a thread for a network namespace");
	(void)pthread_join(thread, NULL);
	if (made < 0)
		return error_set(err, made, "make a network namespace");
	sock_fd = made;
	r = ioctl(sock_fd, SIOCGSKNS);
	if (r < 0)
		return error_set(err, -errno, "open a network namespace");
	s->hush_fd = r;
	return r;
}

void hush_close(struct image_store *s)
{
	s->hush_fd = fd_close(s->hush_fd);
}
