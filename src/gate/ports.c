/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/ports.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"

/* ---- the boot port ---- */

static void boot_port_wait(struct boot_port *p)
{
	unsigned events = p->deaf ? 0 : LOOP_READ;

	loop_fd_set(&p->source, events | (p->out.len > 0 ? LOOP_WRITE : 0));
}

static void boot_port_give_up(struct boot_port *p, int r, const char *what)
{
	struct error err = ERROR_INIT;

	p->deaf = true;
	buf_clear(&p->in);
	if (r == -EPIPE)
		buf_clear(&p->out);
	boot_port_wait(p);
	(void)error_set(&err, r, "%s", what);
	p->fn(p, &err);
}

/* The length of the frame at the front, with its head; 0 while that is not there. */
static size_t boot_frame_size(const struct buf *b)
{
	uint32_t len;

	if (b->len < sizeof(len))
		return 0;
	memcpy(&len, buf_data(b), sizeof(len));
	return sizeof(len) + le32toh(len);
}

/* Takes what is whole. Its text is looked at by the daemon alone (wire/message/bootmsg.h). */
static void boot_port_take(struct boot_port *p)
{
	for (;;) {
		size_t size = boot_frame_size(&p->in);

		if (size > BOOTMSG_FRAME_MAX) {
			boot_port_give_up(p, -EBADMSG, "the guest's frame on the boot port");
			return;
		}
		if (size == 0 || p->in.len < size)
			return;
		if (p->n_frames == BOOT_FRAMES_MAX) {
			boot_port_give_up(p, -E2BIG, "the guest's frames on the boot port");
			return;
		}
		if (buf_add(&p->frames[p->n_frames], buf_data(&p->in), size) < 0) {
			boot_port_give_up(p, -ENOMEM, "keep a frame of the boot port");
			return;
		}
		p->n_frames++;
		buf_consume(&p->in, size);
		p->fn(p, NULL);
	}
}

static void boot_port_write(struct boot_port *p)
{
	while (p->out.len > 0) {
		ssize_t n = send(p->fd, buf_data(&p->out), p->out.len, MSG_DONTWAIT | MSG_NOSIGNAL);

		/* Whether the port has ended shows where it is read. */
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		buf_consume(&p->out, n < 0 ? p->out.len : (size_t)n);
	}
}

static void boot_port_event(struct loop_fd *source, unsigned events)
{
	struct boot_port *p = container_of(source, struct boot_port, source);
	uint8_t piece[4096];
	ssize_t n = -1;

	(void)events;
	boot_port_write(p);
	if (!p->deaf)
		n = recv(p->fd, piece, sizeof(piece), MSG_DONTWAIT);
	if (n == 0 || (n < 0 && !p->deaf && errno != EAGAIN && errno != EINTR)) {
		boot_port_give_up(p, -EPIPE, "the boot port");
		return;
	}
	if (n > 0 && buf_add(&p->in, piece, (size_t)n) < 0) {
		boot_port_give_up(p, -ENOMEM, "read the boot port");
		return;
	}
	if (n > 0)
		boot_port_take(p);
	boot_port_wait(p);
}

void boot_port_init(struct boot_port *p, struct loop *loop, int fd, boot_port_fn fn)
{
	*p = (struct boot_port){
		.fn = fn,
		.fd = fd,
		.in = BUF_INIT_LIMIT(BOOTMSG_FRAME_MAX + 4096),
		.out = BUF_INIT_LIMIT(BOOT_OUT_MAX),
	};
	for (size_t i = 0; i < BOOT_FRAMES_MAX; i++)
		p->frames[i] = (struct buf)BUF_INIT_LIMIT(BOOTMSG_FRAME_MAX);
	loop_fd_init(&p->source, loop, fd, LOOP_READ, boot_port_event);
}

void boot_port_done(struct boot_port *p)
{
	if (p->fd < 0)
		return;
	loop_fd_done(&p->source);
	p->fd = fd_close(p->fd);
	buf_done(&p->in);
	buf_done(&p->out);
	for (size_t i = 0; i < BOOT_FRAMES_MAX; i++)
		buf_done(&p->frames[i]);
}

int boot_port_send(struct boot_port *p, const uint8_t *frame, size_t len)
{
	uint32_t body;
	int r;

	if (len < sizeof(body) || len > BOOTMSG_FRAME_MAX)
		return -EBADMSG;
	memcpy(&body, frame, sizeof(body));
	if (le32toh(body) != len - sizeof(body))
		return -EBADMSG;
	r = buf_add(&p->out, frame, len);
	if (r < 0)
		return r;
	boot_port_write(p);
	boot_port_wait(p);
	return 0;
}

/* ---- the console ---- */

static void console_add(struct console *c, const uint8_t *data, size_t len)
{
	if (!c->ring)
		c->ring = calloc(1, GATE_CONSOLE_MAX);
	/* Without memory it is counted, and not kept. */
	while (len > 0) {
		size_t at = c->total % GATE_CONSOLE_MAX;
		size_t n = MIN(len, (size_t)GATE_CONSOLE_MAX - at);

		if (c->ring)
			memcpy(c->ring + at, data, n);
		c->total += n;
		data += n;
		len -= n;
	}
}

static void console_event(struct loop_fd *source, unsigned events)
{
	struct console *c = container_of(source, struct console, source);
	uint8_t piece[8192];
	ssize_t n = recv(c->fd, piece, sizeof(piece), MSG_DONTWAIT);

	(void)events;
	if (n > 0) {
		console_add(c, piece, (size_t)n);
		return;
	}
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	loop_fd_done(&c->source);
	c->on_end(c);
}

void console_init(struct console *c, struct loop *loop, int fd, console_end_fn on_end)
{
	*c = (struct console){ .fd = fd, .on_end = on_end };
	loop_fd_init(&c->source, loop, fd, LOOP_READ, console_event);
}

void console_done(struct console *c)
{
	if (c->fd < 0)
		return;
	loop_fd_done(&c->source);
	c->fd = fd_close(c->fd);
	free(c->ring);
	c->ring = NULL;
}

size_t console_last(const struct console *c, uint8_t *to)
{
	size_t len = c->ring ? (size_t)MIN(c->total, (uint64_t)GATE_CONSOLE_MAX) : 0;
	size_t at = (size_t)((c->total - len) % GATE_CONSOLE_MAX);
	size_t first = MIN(len, (size_t)GATE_CONSOLE_MAX - at);

	if (len > 0) {
		memcpy(to, c->ring + at, first);
		memcpy(to + first, c->ring, len - first);
	}
	return len;
}
