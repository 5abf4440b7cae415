/* SPDX-License-Identifier: Apache-2.0 */
#include "net/port/segment.h"

#include <assert.h>
#include <errno.h>

#include "base/text/str.h"
#include "net/netlink/address.h"
#include "net/netlink/netlink.h"
#include "net/port/inside.h"
#include "net/port/ipv6.h"
#include "net/port/tap.h"

/* ---- the parts, for a thread that stands in the namespace ---- */

static int segment_lo_up(struct netlink *nl, struct error *err)
{
	const struct link_change up = { .power = LINK_UP };
	struct link lo;
	int r;

	r = link_find(nl, "lo", &lo, err);
	return r < 0 ? r : link_set(nl, lo.index, &up, err);
}

/* A device in the bridge, or in none (0): its descriptor. */
static int segment_tap(struct netlink *nl, const char *name, uint32_t bridge, uint32_t mtu,
		       struct error *err)
{
	const struct link_change up = {
		.master = bridge, .power = LINK_UP, .mtu = mtu, .no_auto_ipv6 = true
	};
	_cleanup_fd_ int fd = -1;
	struct link link;
	int r;

	fd = tap_open(name, err);
	if (fd < 0)
		return fd;
	r = link_find(nl, name, &link, err);
	if (r == 0)
		r = link_set(nl, link.index, &up, err);
	if (r < 0)
		return error_wrap(err, r, "the TAP device %s", name);
	return TAKE_FD(fd);
}

/*
 * The bridge goes up behind its port. One that is up before has no carrier and no queue; when it
 * gets a port that works, the kernel gives it one in its own time, and drops what is sent
 * meanwhile.
 */
static int segment_fill_bridge(struct netlink *nl, uint32_t bridge, const char *tap, uint32_t mtu,
			       struct error *err)
{
	const struct link_change up = { .power = LINK_UP, .mtu = mtu, .no_auto_ipv6 = true };
	_cleanup_fd_ int tap_fd = segment_tap(nl, tap, bridge, mtu, err);
	int r;

	if (tap_fd < 0)
		return tap_fd;
	r = link_set(nl, bridge, &up, err);
	return r < 0 ? error_wrap(err, r, "the bridge of %s", tap) : TAKE_FD(tap_fd);
}

/* A bridge with a device in it, both up: the descriptor of the device. What fails leaves nothing.
 */
static int segment_bridge(struct netlink *nl, const char *name, const uint8_t *mac, const char *tap,
			  uint32_t mtu, uint32_t *ret, struct error *err)
{
	uint32_t index;
	int fd, r;

	r = link_add_bridge(nl, name, mac, &index, err);
	if (r < 0)
		return r;
	fd = segment_fill_bridge(nl, index, tap, mtu, err);
	if (fd < 0)
		(void)link_delete(nl, index, NULL);
	else
		*ret = index;
	return fd;
}

void segment_pod_tap(unsigned n, char ret[IF_NAMESIZE])
{
	(void)str_printf(ret, IF_NAMESIZE, SEGMENT_POD_TAP "%u", n);
}

void segment_pod_mac(unsigned n, uint8_t ret[LINK_MAC_LEN])
{
	int r = link_parse_mac(SEGMENT_POD_MAC, ret);

	assert(r == 0);
	ret[LINK_MAC_LEN - 1] = (uint8_t)(ret[LINK_MAC_LEN - 1] + n);
}

/* What is put beside them later may have IPv6: the other end of a port that its guest has. */
static int segment_pod_taps(struct netlink *nl, struct segment *s, uint32_t mtu, struct error *err)
{
	char name[IF_NAMESIZE];

	for (unsigned n = 0; n < SEGMENT_POD_TAPS; n++) {
		segment_pod_tap(n, name);
		s->pod_fds[n] = segment_tap(nl, name, 0, mtu, err);
		if (s->pod_fds[n] < 0)
			return s->pod_fds[n];
	}
	return ipv6_of_later(err);
}

/* ---- a new one ---- */

struct segment_build {
	const struct segment_plan *plan;
	struct segment *ret;
};

static int segment_build(void *arg, struct error *err)
{
	const struct segment_build *b = arg;
	const struct segment_plan *plan = b->plan;
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	_cleanup_segment_ struct segment s = SEGMENT_NONE;
	uint32_t bridge;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	s.ns_fd = inside_of_socket(nl.fd, err);
	if (s.ns_fd < 0)
		return s.ns_fd;
	/* Nobody speaks it here, and the guest may be anybody. */
	r = ipv6_off(err);
	if (r == 0)
		r = segment_lo_up(&nl, err);
	if (r < 0)
		return r;
	s.tap_fd = segment_bridge(&nl, SEGMENT_BRIDGE, plan->node_mac, SEGMENT_TAP, plan->mtu,
				  &bridge, err);
	if (s.tap_fd < 0)
		return s.tap_fd;
	r = address_add(&nl, bridge, &plan->node, err);
	/* So nobody has to be asked for it, and nobody else can answer. */
	if (r == 0 && prefix_size(&plan->guest) > 0)
		r = neighbour_set(&nl, bridge, &plan->guest, plan->guest_mac, err);
	if (r == 0 && plan->has_pod)
		r = segment_pod_taps(&nl, &s, plan->mtu, err);
	if (r < 0)
		return r;
	*b->ret = s;
	s = (struct segment)SEGMENT_NONE;
	return 0;
}

int segment_make(struct segment *ret, const struct segment_plan *plan, struct error *err)
{
	struct segment_build b = { plan, ret };
	int r;

	r = inside_run(INSIDE_NEW, segment_build, &b, err);
	return r < 0 ? error_wrap(err, r, "make the network of a guest") : 0;
}

void segment_done(struct segment *s)
{
	s->tap_fd = fd_close(s->tap_fd);
	for (size_t n = 0; n < ARRAY_SIZE(s->pod_fds); n++)
		s->pod_fds[n] = fd_close(s->pod_fds[n]);
	s->ns_fd = fd_close(s->ns_fd);
}

struct segment_plan segment_plan_usual(void)
{
	struct segment_plan plan = { .mtu = 0 };
	int r;

	r = prefix_parse(SEGMENT_NODE_ADDRESS, &plan.node);
	assert(r == 0);
	r = prefix_parse(SEGMENT_GUEST_ADDRESS, &plan.guest);
	assert(r == 0);
	r = link_parse_mac(SEGMENT_NODE_MAC, plan.node_mac);
	assert(r == 0);
	r = link_parse_mac(SEGMENT_GUEST_MAC, plan.guest_mac);
	assert(r == 0);
	return plan;
}

/* ---- further devices ---- */

struct segment_addition {
	char bridge[IF_NAMESIZE], tap[IF_NAMESIZE];
	uint32_t mtu;
	int tap_fd; /* made */
};

static int segment_add_here(void *arg, struct error *err)
{
	struct segment_addition *a = arg;
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	uint32_t bridge;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	a->tap_fd = segment_bridge(&nl, a->bridge, NULL, a->tap, a->mtu, &bridge, err);
	return a->tap_fd < 0 ? a->tap_fd : 0;
}

/* The device itself goes with its descriptor. */
static void segment_take_back(int ns_fd, const char *bridge)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	struct link link;

	if (inside_netlink(&nl, ns_fd, NULL) == 0 && link_find(&nl, bridge, &link, NULL) == 0)
		(void)link_delete(&nl, link.index, NULL);
}

int segment_add_device(int ns_fd, unsigned n, const struct cable_end *far, uint32_t mtu,
		       int *ret_tap_fd, struct error *err)
{
	struct segment_addition a = { .mtu = mtu, .tap_fd = -1 };
	char out[IF_NAMESIZE];
	_cleanup_fd_ int tap_fd = -1;
	int r;

	if (n == 0 || n > SEGMENT_DEVICES_MAX)
		return error_set(err, -ERANGE, "add device %u of a guest", n);
	(void)str_printf(a.bridge, sizeof(a.bridge), "nacre%u", n);
	(void)str_printf(a.tap, sizeof(a.tap), "tap%u", n);
	(void)str_printf(out, sizeof(out), "out%u", n);
	r = inside_run(ns_fd, segment_add_here, &a, err);
	tap_fd = a.tap_fd;
	if (r == 0) {
		const struct cable_end ends[2] = {
			{ .ns_fd = ns_fd, .name = out, .bridge = a.bridge }, *far
		};

		r = cable_lay(ends, mtu, err);
		if (r < 0)
			segment_take_back(ns_fd, a.bridge);
	}
	if (r < 0)
		return error_wrap(err, r, "add device %u of a guest", n);
	*ret_tap_fd = TAKE_FD(tap_fd);
	return 0;
}

/* ---- on a thread of a pool ---- */

static void segment_job_run(struct pool_work *work)
{
	struct segment_job *job = container_of(work, struct segment_job, work);

	tap_await();
	job->r = segment_make(&job->made, &job->plan, &job->err);
}

static void segment_job_ended(struct pool_work *work)
{
	struct segment_job *job = container_of(work, struct segment_job, work);

	job->fn(job);
}

void segment_job_start(struct segment_job *job, struct pool *pool, const struct segment_plan *plan,
		       segment_job_fn fn)
{
	*job = (struct segment_job){
		.work = { .run = segment_job_run, .done = segment_job_ended },
		.plan = *plan,
		.fn = fn,
		.made = SEGMENT_NONE,
		.err = ERROR_INIT,
	};
	pool_submit(pool, &job->work);
}

void segment_job_done(struct segment_job *job)
{
	assert(!job->work.busy);
	segment_done(&job->made);
}
