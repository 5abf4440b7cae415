/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_PORTS_H
#define NACRE_GATE_PORTS_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "loop/loop.h"
#include "wire/message/bootmsg.h"
#include "wire/message/gatemsg.h"

/*
 * The ports of a machine, which its monitor hands out as sockets: the boot port, of which whole
 * frames are taken and kept for the daemon, and the console, of which the end is kept. A guest may
 * write whatever it wants to either: both stay within their bounds. Values inside their owner.
 */

/* Frames of a guest that are kept; a guest that says more is not listened to any more. */
#define BOOT_FRAMES_MAX 8
/* Bytes for the guest that wait in here. */
#define BOOT_OUT_MAX (2 * BOOTMSG_FRAME_MAX)

struct boot_port;
/* A frame has come whole (err NULL); or nothing will come any more: at the end of the port -EPIPE,
 * else -EBADMSG or -E2BIG. */
typedef void (*boot_port_fn)(struct boot_port *p, const struct error *err);

struct boot_port {
	struct loop_fd source;
	boot_port_fn fn;
	int fd;
	struct buf in, out;
	struct buf frames[BOOT_FRAMES_MAX]; /* each with its length in front */
	unsigned n_frames;
	bool deaf; /* nothing is read any more */
};

/* Takes fd over. */
void boot_port_init(struct boot_port *p, struct loop *loop, int fd, boot_port_fn fn);
void boot_port_done(struct boot_port *p);
/* A whole frame: 0, -EBADMSG for what is none, -ENOBUFS, -ENOMEM. */
int boot_port_send(struct boot_port *p, const uint8_t *frame, size_t len);

struct console;
typedef void (*console_end_fn)(struct console *c);

struct console {
	struct loop_fd source;
	console_end_fn on_end;
	int fd;
	uint8_t *ring; /* GATE_CONSOLE_MAX bytes, once something came */
	uint64_t total;
};

/* Takes fd over. */
void console_init(struct console *c, struct loop *loop, int fd, console_end_fn on_end);
void console_done(struct console *c);
/* Copies the end of what came, in its order, into `to`, which has room for GATE_CONSOLE_MAX bytes.
 */
size_t console_last(const struct console *c, uint8_t *to);

#endif
