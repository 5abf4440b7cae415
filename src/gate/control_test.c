/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/control.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "unit.h"

static struct loop *loop;
static struct control control;
static struct sockaddr_un address;
static socklen_t address_len;
static unsigned n_connects, n_messages, n_to_tell;
static enum gatemsg_type last;

static void on_connect(struct control *c)
{
	(void)c;
	n_connects++;
}

static void on_message(struct control *c, const struct gatemsg *m)
{
	(void)c;
	n_messages++;
	last = m->type;
}

static bool next(struct control *c, struct gatemsg *m)
{
	(void)c;
	if (n_to_tell == 0)
		return false;
	n_to_tell--;
	*m = (struct gatemsg){ .type = GATEMSG_END };
	return true;
}

static const struct control_ops ops = { on_connect, on_message, next };

/* A listening socket with a name that the kernel draws. */
static bool begin(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	n_connects = n_messages = n_to_tell = 0;
	address = (struct sockaddr_un){ .sun_family = AF_UNIX };
	address_len = sizeof(sa_family_t);
	if (fd < 0 || bind(fd, (struct sockaddr *)&address, address_len) < 0 || listen(fd, 8) < 0)
		return false;
	address_len = sizeof(address);
	if (getsockname(fd, (struct sockaddr *)&address, &address_len) < 0 || loop_new(&loop) < 0 ||
	    control_init(&control, loop, fd, &ops) < 0) {
		(void)fd_close(fd);
		return false;
	}
	return true;
}

static void end(void)
{
	if (control.fd >= 0) {
		loop_fd_done(&control.source);
		control.fd = fd_close(control.fd);
	}
	loop_fd_done(&control.listener);
	control.listen_fd = fd_close(control.listen_fd);
	free(control.packet);
	loop_free(loop);
}

static int dial(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	CHECK(connect(fd, (struct sockaddr *)&address, address_len) == 0);
	for (int n = 0; n < 4; n++)
		loop_turn(loop, false);
	return fd;
}

static void turns(void)
{
	for (int n = 0; n < 4; n++)
		loop_turn(loop, false);
}

static bool is_closed(int fd)
{
	char byte;

	return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
}

static void tells_a_new_daemon_and_reads_it(void)
{
	static uint8_t packet[GATEMSG_SIZE_MAX];
	struct gatemsg m = { .type = GATEMSG_END };
	int fd, len;

	if (!begin())
		return;
	n_to_tell = 2;
	fd = dial();
	CHECK_INT(n_connects, 1);
	CHECK_INT(n_to_tell, 0);
	CHECK(recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0);
	CHECK(recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0);
	len = gatemsg_encode(&m, packet, NULL);
	CHECK(len > 0 && send(fd, packet, (size_t)len, 0) == len);
	turns();
	CHECK_INT(n_messages, 1);
	CHECK_INT(last, GATEMSG_END);
	n_to_tell = 1;
	control_kick(&control);
	CHECK(recv(fd, packet, sizeof(packet), MSG_DONTWAIT) > 0);
	(void)fd_close(fd);
	end();
}

static void hangs_up_on_what_is_no_message(void)
{
	uint8_t nonsense[40] = { 0xff, 1, 2 };
	int fd;

	if (!begin())
		return;
	fd = dial();
	CHECK(send(fd, nonsense, sizeof(nonsense), 0) == sizeof(nonsense));
	turns();
	CHECK_INT(n_messages, 0);
	CHECK(is_closed(fd));
	/* It is open for the next. */
	(void)fd_close(fd);
	fd = dial();
	CHECK_INT(n_connects, 2);
	(void)fd_close(fd);
	turns();
	end();
}

static void the_newest_daemon_counts(void)
{
	int first, second;

	if (!begin())
		return;
	first = dial();
	second = dial();
	CHECK_INT(n_connects, 2);
	CHECK(is_closed(first));
	CHECK(!is_closed(second));
	(void)fd_close(first);
	(void)fd_close(second);
	end();
}

static void a_daemon_that_does_not_read_costs_nothing(void)
{
	int fd;

	if (!begin())
		return;
	n_to_tell = 1000000;
	fd = dial();
	/* What the socket takes was sent; the rest was not asked for. */
	CHECK(n_to_tell > 0);
	CHECK(control.len <= GATEMSG_SIZE_MAX);
	CHECK(!is_closed(fd) || control.fd >= 0);
	(void)fd_close(fd);
	n_to_tell = 0;
	turns();
	CHECK_INT(control.fd, -1);
	end();
}

UNIT_MAIN({ "tells a new daemon and reads it", tells_a_new_daemon_and_reads_it },
	  { "hangs up on what is no message", hangs_up_on_what_is_no_message },
	  { "the newest daemon counts", the_newest_daemon_counts },
	  { "a daemon that does not read costs nothing",
	    a_daemon_that_does_not_read_costs_nothing })
