/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_SEGMENT_H
#define NACRE_NET_SEGMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/file/fd.h"
#include "base/log/error.h"
#include "loop/pool.h"
#include "net/netlink/link.h"
#include "net/port/cable.h"
#include "net/range/prefix.h"

/*
 * The network between the node and one guest: a network namespace of its own, in which there are lo
 * (up), the bridge `nacre0`, which has the node's address, and in that the device `tap0`, whose
 * other end is a descriptor for the guest's machine monitor. The process that speaks with the guest
 * is in the namespace, too. Nothing leads out of it, so that every guest can have the same
 * addresses, and what one sends reaches nobody else.
 *
 * Where the plan says so there are further TAP devices beside these, for the networks of a pod in
 * the guest: up, in no bridge, and led nowhere until they are joined to a port (net/port/port.h).
 * They are there from the start, since QEMU's `microvm` takes no device while it runs.
 *
 * It consists of descriptors. When the last copy of each is closed, and nobody stands in the
 * namespace any more, the kernel takes all of it away.
 */
#define SEGMENT_POD_TAPS 4

struct segment {
	int ns_fd, tap_fd;
	int pod_fds[SEGMENT_POD_TAPS]; /* -1: it has none */
};

#define SEGMENT_NONE                                                                               \
	{                                                                                          \
		.ns_fd = -1, .tap_fd = -1, .pod_fds = { -1, -1, -1, -1 }                           \
	}

#define SEGMENT_BRIDGE "nacre0"
#define SEGMENT_TAP "tap0"
/* Those of its pod's networks are this and a number from 0 on. */
#define SEGMENT_POD_TAP "pod"

/* Its addresses: the same for every guest, so that a copy of a guest has the right one. */
#define SEGMENT_NODE_ADDRESS "169.254.74.1/30"
#define SEGMENT_NODE_MAC "02:6e:61:63:72:01"
#define SEGMENT_GUEST_ADDRESS "169.254.74.2/30"
#define SEGMENT_GUEST_MAC "02:6e:61:63:72:02"
/* Of the guest's first device for its pod, until it has that of the pod; the others count on. */
#define SEGMENT_POD_MAC "02:6e:61:63:72:03"

struct segment_plan {
	struct prefix node, guest; /* addresses; that of the guest may be none */
	uint8_t node_mac[LINK_MAC_LEN];
	uint8_t guest_mac[LINK_MAC_LEN]; /* where its address is known */
	uint32_t mtu;                    /* 0: the kernel's */
	bool has_pod;
};

/* The name of the nth device for a pod, and the MAC that the guest finds it by. */
void segment_pod_tap(unsigned n, char ret[IF_NAMESIZE]);
void segment_pod_mac(unsigned n, uint8_t ret[LINK_MAC_LEN]);

/* With the addresses above, and no device for a pod. */
struct segment_plan segment_plan_usual(void);

/*
 * Makes one; needs CAP_SYS_ADMIN, CAP_NET_ADMIN and /dev/net/tun (net/port/tap.h), and some
 * milliseconds: not for a loop thread.
 */
int segment_make(struct segment *ret, const struct segment_plan *plan,
		 struct error *err) _must_check_;
/* Closes what it has; may be called twice, and on SEGMENT_NONE. To close the last copy of tap_fd
 * takes the device away, which the kernel does before it returns, in tens of milliseconds: that is
 * not for a loop thread either. */
void segment_done(struct segment *s);
#define _cleanup_segment_ _cleanup_(segment_done)

/*
 * A further device for the guest, number `n` from 1 on: a bridge `nacreN` with a device `tapN`,
 * whose other end is *ret_tap_fd, and with a cable into the bridge of somebody else. It has no
 * address here. `far` is the other end of the cable; what fails leaves nothing.
 */
#define SEGMENT_DEVICES_MAX 8
int segment_add_device(int ns_fd, unsigned n, const struct cable_end *far, uint32_t mtu,
		       int *ret_tap_fd, struct error *err) _must_check_;

/* ---- for a loop thread: segment_make() on a thread of a pool ---- */

struct segment_job;
typedef void (*segment_job_fn)(struct segment_job *job);

/* A value inside its owner, which must stay where it is until fn was called. */
struct segment_job {
	struct pool_work work;
	struct segment_plan plan;
	segment_job_fn fn;
	/* The result, once fn is called. */
	int r;
	struct segment made; /* fn takes it out, or segment_job_done() closes it */
	struct error err;
};

#define SEGMENT_JOB_INIT                                                                           \
	{                                                                                          \
		.made = SEGMENT_NONE, .err = ERROR_INIT                                            \
	}

/* fn is called on the loop's thread, later. Not while it is under way. */
void segment_job_start(struct segment_job *job, struct pool *pool, const struct segment_plan *plan,
		       segment_job_fn fn);
/* Not while it is under way: `job->work.busy`. */
void segment_job_done(struct segment_job *job);

#endif
