/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_TAP_H
#define NACRE_NET_TAP_H

#include <stdint.h>

#include "base/log/error.h"

/*
 * A TAP device: a link whose other end is a descriptor, on which whole Ethernet frames are read and
 * written, each behind a header about checksums and segments (struct virtio_net_hdr). That is what
 * a machine monitor is handed (QEMU: -netdev tap,fd=N); it sets the length of that header and what
 * it can take by itself, for which the descriptor is enough, without any privilege. Until it does,
 * the header has 10 bytes, and every frame is whole and has its checksum.
 *
 * The device lives as long as the descriptor: closing it, or dying, leaves nothing. To close the
 * last copy takes tens of milliseconds.
 */

/* Waits, for seconds at most, until there is /dev/net/tun: a guest loads that, and before it all
 * that makes bridges, behind its boot. Not for a loop thread. */
void tap_await(void);
/*
 * In the namespace of the calling thread, as `name`, which must be free (-EBUSY) and gets no
 * pattern; the link is down. Needs CAP_NET_ADMIN there, and /dev/net/tun: -ENOENT or -ENODEV where
 * the kernel has no such devices. Returns the descriptor, which does not block.
 */
int tap_open(const char *name, struct error *err) _must_check_;
/* The same in the namespace ns_fd; not for a loop thread (net/port/inside.h). */
int tap_open_in(int ns_fd, const char *name, struct error *err) _must_check_;

#endif
