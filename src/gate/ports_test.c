/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ports.h"

#include <endian.h>
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "unit.h"

static struct loop *loop;

/* A port, and the end of it that is the guest's. */
static struct bed {
	struct boot_port port;
	struct console console;
	int guest_fd;
	unsigned n_frames, n_ends;
	int last; /* of the last error */
} bed;

static void on_boot(struct boot_port *p, const struct error *err)
{
	(void)p;
	if (err) {
		bed.n_ends++;
		bed.last = err->code;
	} else {
		bed.n_frames++;
	}
}

static void on_console_end(struct console *c)
{
	(void)c;
	bed.n_ends++;
}

static bool open_lines(int *ours)
{
	int ends[2];

	memset(&bed, 0, sizeof(bed));
	bed.port.fd = bed.console.fd = bed.guest_fd = -1;
	if (loop_new(&loop) < 0)
		return false;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) < 0) {
		loop_free(loop);
		return false;
	}
	*ours = ends[0];
	bed.guest_fd = ends[1];
	return true;
}

static bool open_port(void)
{
	int fd;

	if (!open_lines(&fd))
		return false;
	boot_port_init(&bed.port, loop, fd, on_boot);
	return true;
}

static void close_all(void)
{
	boot_port_done(&bed.port);
	console_done(&bed.console);
	bed.guest_fd = fd_close(bed.guest_fd);
	loop_free(loop);
}

static void turns(int n)
{
	while (n-- > 0)
		loop_turn(loop, false);
}

static void say(const void *data, size_t len)
{
	CHECK(send(bed.guest_fd, data, len, MSG_NOSIGNAL) == (ssize_t)len);
	turns(3);
}

static size_t frame(uint8_t *to, uint32_t len, uint8_t fill)
{
	uint32_t head = htole32(len);

	memcpy(to, &head, sizeof(head));
	memset(to + sizeof(head), fill, len);
	return sizeof(head) + len;
}

static void keeps_whole_frames(void)
{
	uint8_t bytes[64];
	size_t len = frame(bytes, 10, 'a');

	if (!open_port())
		return;
	/* In pieces, and two at once. */
	say(bytes, 3);
	CHECK_INT(bed.n_frames, 0);
	say(bytes + 3, len - 3);
	CHECK_INT(bed.n_frames, 1);
	memcpy(bytes + len, bytes, len);
	say(bytes, 2 * len);
	CHECK_INT(bed.n_frames, 3);
	CHECK_INT(bed.port.n_frames, 3);
	CHECK(bed.port.frames[2].len == len &&
	      memcmp(buf_data(&bed.port.frames[2]), bytes, len) == 0);
	CHECK_INT(bed.n_ends, 0);
	close_all();
}

static void bounds_the_number_of_frames(void)
{
	uint8_t bytes[16];
	size_t len = frame(bytes, 2, 'b');

	if (!open_port())
		return;
	for (int n = 0; n < BOOT_FRAMES_MAX; n++)
		say(bytes, len);
	CHECK_INT(bed.n_frames, BOOT_FRAMES_MAX);
	CHECK_INT(bed.n_ends, 0);
	say(bytes, len);
	CHECK_INT(bed.n_frames, BOOT_FRAMES_MAX);
	CHECK_INT(bed.n_ends, 1);
	CHECK_INT(bed.last, -E2BIG);
	/* Nothing is read any more, however much is said. */
	say(bytes, len);
	CHECK_INT(bed.n_ends, 1);
	close_all();
}

static void bounds_a_frame(void)
{
	uint32_t head = htole32(BOOTMSG_BODY_MAX + 1);

	if (!open_port())
		return;
	say(&head, sizeof(head));
	CHECK_INT(bed.n_ends, 1);
	CHECK_INT(bed.last, -EBADMSG);
	close_all();
	if (!open_port())
		return;
	head = UINT32_MAX;
	say(&head, sizeof(head));
	CHECK_INT(bed.last, -EBADMSG);
	close_all();
}

static void tells_the_end_of_the_port_once(void)
{
	if (!open_port())
		return;
	bed.guest_fd = fd_close(bed.guest_fd);
	turns(5);
	CHECK_INT(bed.n_ends, 1);
	CHECK_INT(bed.last, -EPIPE);
	close_all();
}

static void sends_frames_of_the_right_length_only(void)
{
	uint8_t bytes[64], got[64];
	size_t len = frame(bytes, 20, 'c');

	if (!open_port())
		return;
	CHECK_INT(boot_port_send(&bed.port, bytes, len - 1), -EBADMSG);
	CHECK_INT(boot_port_send(&bed.port, bytes, 2), -EBADMSG);
	CHECK_INT(boot_port_send(&bed.port, bytes, len), 0);
	CHECK(recv(bed.guest_fd, got, sizeof(got), MSG_DONTWAIT) == (ssize_t)len &&
	      memcmp(got, bytes, len) == 0);
	close_all();
}

static void a_guest_that_does_not_read_has_a_bound(void)
{
	static uint8_t bytes[BOOTMSG_FRAME_MAX];
	size_t len = frame(bytes, BOOTMSG_BODY_MAX, 'd');
	int r = 0;

	if (!open_port())
		return;
	for (int n = 0; n < 1000 && r == 0; n++)
		r = boot_port_send(&bed.port, bytes, len);
	CHECK_INT(r, -ENOBUFS);
	CHECK(bed.port.out.len <= BOOT_OUT_MAX);
	close_all();
}

static void keeps_the_end_of_a_console(void)
{
	static uint8_t last[GATE_CONSOLE_MAX];
	uint8_t line[1000];
	size_t total = 0, len;
	int fd;

	if (!open_lines(&fd))
		return;
	console_init(&bed.console, loop, fd, on_console_end);
	CHECK_INT(console_last(&bed.console, last), 0);
	say("hello", 5);
	CHECK_INT(console_last(&bed.console, last), 5);
	CHECK(memcmp(last, "hello", 5) == 0);
	for (int n = 0; n < 100; n++) {
		memset(line, 'a' + n % 26, sizeof(line));
		say(line, sizeof(line));
		total += sizeof(line);
	}
	CHECK(bed.console.total == total + 5);
	len = console_last(&bed.console, last);
	CHECK_INT(len, bed.console.ring ? GATE_CONSOLE_MAX : 0);
	if (len > 0) {
		CHECK(last[len - 1] == 'a' + 99 % 26);
		CHECK(last[len - sizeof(line) - 1] == 'a' + 98 % 26);
	}
	bed.guest_fd = fd_close(bed.guest_fd);
	turns(3);
	CHECK_INT(bed.n_ends, 1);
	close_all();
}

UNIT_MAIN({ "keeps whole frames", keeps_whole_frames },
	  { "bounds the number of frames", bounds_the_number_of_frames },
	  { "bounds a frame", bounds_a_frame },
	  { "tells the end of the port once", tells_the_end_of_the_port_once },
	  { "sends frames of the right length only", sends_frames_of_the_right_length_only },
	  { "a guest that does not read has a bound", a_guest_that_does_not_read_has_a_bound },
	  { "keeps the end of a console", keeps_the_end_of_a_console })
