/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_port.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "base/time/clock.h"

#define PORT_APPEARS_WITHIN (60 * NSEC_PER_SEC)
#define PORT_SAYS_WITHIN (NSEC_PER_SEC)
#define PORT_PAUSE_MIN (NSEC_PER_MSEC)
#define PORT_PAUSE_MAX (32 * NSEC_PER_MSEC)
#define PORT_PIECE 4096

static void port_pause(nsec_t time)
{
	struct timespec ts = { .tv_nsec = (long)time };

	(void)nanosleep(&ts, NULL);
}

/* Whether that entry of /sys/class/virtio-ports has our name. */
static bool port_is_ours(int class_fd, const char *entry)
{
	_cleanup_(buf_done) struct buf name = BUF_INIT_LIMIT(256);
	char path[128];

	return str_printf(path, sizeof(path), "%s/name", entry) > 0 &&
	       fd_read_file(class_fd, path, 128, &name) == 0 &&
	       name.len == strlen(BOOTMSG_PORT "\n") &&
	       memcmp(buf_data(&name), BOOTMSG_PORT "\n", name.len) == 0;
}

static int port_look(void)
{
	_cleanup_fd_ int class_fd = -1;
	_cleanup_strv_ char **entries = NULL;
	char path[128];
	int fd;

	class_fd = sysio_openat(AT_FDCWD, "/sys/class/virtio-ports",
				O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (class_fd < 0 || fd_list_dir(class_fd, &entries) < 0)
		return -ENOENT;
	for (size_t i = 0; entries && entries[i]; i++) {
		if (!port_is_ours(class_fd, entries[i]) ||
		    str_printf(path, sizeof(path), "/dev/%s", entries[i]) < 0)
			continue;
		fd = sysio_openat(AT_FDCWD, path, O_RDWR | O_NONBLOCK | O_CLOEXEC, 0);
		return fd < 0 ? -errno : fd;
	}
	return -ENOENT;
}

int guest_port_open(struct guest_port *p, struct error *err)
{
	nsec_t began = clock_mono(), pause = PORT_PAUSE_MIN;

	for (;;) {
		p->fd = port_look();
		if (p->fd >= 0)
			return 0;
		if (clock_mono() - began > PORT_APPEARS_WITHIN)
			return error_set(err, p->fd, "find the port " BOOTMSG_PORT);
		port_pause(pause);
		pause = MIN(pause * 2, PORT_PAUSE_MAX);
	}
}

int guest_port_read(struct guest_port *p, struct bootmsg *ret, struct error *err)
{
	for (;;) {
		uint8_t *room;
		ssize_t n;
		int r = bootmsg_next(ret, buf_data(&p->in), p->in.len, err);

		if (r != 0)
			return r;
		r = buf_reserve(&p->in, MIN((size_t)PORT_PIECE, BOOTMSG_FRAME_MAX - p->in.len),
				&room);
		if (r < 0)
			return error_set(err, r, "read from the boot port");
		n = sysio_read(p->fd, room, MIN((size_t)PORT_PIECE, BOOTMSG_FRAME_MAX - p->in.len));
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return 0;
		if (n < 0)
			return error_set(err, -errno, "read from the boot port");
		if (n == 0)
			return -EPIPE;
		buf_added(&p->in, (size_t)n);
	}
}

bool guest_port_is_spoken_to(const struct guest_port *p, nsec_t within)
{
	struct pollfd poll_fd = { .fd = p->fd, .events = POLLIN };

	return poll(&poll_fd, 1, (int)(within / NSEC_PER_MSEC)) == 1 && poll_fd.revents == POLLIN;
}

int guest_port_wait(struct guest_port *p, struct bootmsg *ret, struct error *err)
{
	nsec_t pause = PORT_PAUSE_MIN;

	for (;;) {
		struct pollfd poll_fd = { .fd = p->fd, .events = POLLIN };
		int r = guest_port_read(p, ret, err);

		if (r != 0 && r != -EPIPE)
			return r;
		if (r == 0) {
			(void)poll(&poll_fd, 1, -1);
			continue;
		}
		/* A port that nobody holds at the other end is always ready. */
		port_pause(pause);
		pause = MIN(pause * 2, PORT_PAUSE_MAX);
	}
}

static int port_write(int fd, const uint8_t *data, size_t len, struct error *err)
{
	nsec_t began = clock_mono();

	while (len > 0) {
		ssize_t n = sysio_write(fd, data, len);

		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return error_set(err, -errno, "write to the boot port");
		if (n > 0) {
			data += n;
			len -= (size_t)n;
			continue;
		}
		if (clock_mono() - began > PORT_SAYS_WITHIN)
			return error_set(err, -ETIMEDOUT, "write to the boot port");
		port_pause(PORT_PAUSE_MIN);
	}
	return 0;
}

int guest_port_say(struct guest_port *p, const struct bootmsg *m, struct error *err)
{
	/* Not of the heap, which may be the reason for a last word. */
	static uint8_t frame[BOOTMSG_FRAME_MAX];
	int n = bootmsg_encode(m, frame, err);

	return n < 0 ? n : port_write(p->fd, frame, (size_t)n, err);
}
