/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#include "base/fault/failpoint.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/time/clock.h"
#include "gates/issuer.h"
#include "instance/link.h"
#include "instance/model.h"
#include "provider/bundle.h"

#define MACHINE_ENTROPY 256
#define MACHINE_MTU 1500

int machine_random(void *data, size_t len, struct error *err)
{
	return getrandom(data, len, 0) == (ssize_t)len
		       ? 0
		       : error_set(err, -EIO, "draw random bytes for a guest");
}

/* What the guest is told; its length. */
static int machine_boot_frame(struct machine *m, uint8_t frame[BOOTMSG_FRAME_MAX],
			      struct error *err)
{
	const struct segment_plan *plan = &m->network.plan;
	char node[SPIFFE_SIZE], own[SPIFFE_SIZE];
	const struct instance *i = m->instance;
	uint8_t entropy[MACHINE_ENTROPY];
	struct bootmsg msg = {
		.type = BOOTMSG_BOOT,
		.boot = { .entropy = { entropy, sizeof(entropy) },
			  .wall_clock_ns = clock_real(),
			  .hostname = name_last(i->path),
			  .title = i->path,
			  .instance_id = i->id,
			  .prefix = plan->guest.length,
			  .mtu = plan->mtu ? plan->mtu : MACHINE_MTU,
			  .parent_id = node,
			  .own_id = own },
	};
	int r;

	memcpy(msg.boot.address, plan->guest.bytes, sizeof(msg.boot.address));
	memcpy(msg.boot.gateway, plan->node.bytes, sizeof(msg.boot.gateway));
	memcpy(msg.boot.mac, plan->guest_mac, sizeof(msg.boot.mac));
	memcpy(msg.boot.token, m->token, sizeof(msg.boot.token));
	r = machine_random(entropy, sizeof(entropy), err);
	if (r == 0)
		r = issuer_node_id(m->vms->config.issuer, node, err);
	if (r == 0)
		r = issuer_instance_id(m->vms->config.issuer, i->id, own, err);
	if (r < 0)
		return r;
	r = bundle_split(m->bundle, m->bundle_len, &msg.boot.bundle);
	if (r < 0)
		return error_set(err, r, "what a guest is to trust");
	return bootmsg_encode(&msg, frame, err);
}

int machine_tell(struct machine *m, struct error *err)
{
	_cleanup_(buf_done) struct buf frame = BUF_INIT;
	uint8_t *room;
	int len, r;

	r = FAILPOINT("vm.tell");
	if (r < 0)
		return error_set(err, r, "tell a guest who it is");
	if (m->instance->pod_link.is_wanted)
		r = machine_link_tell(&m->instance->pod_link, m->gate, err);
	if (r < 0)
		return r;
	r = buf_reserve(&frame, BOOTMSG_FRAME_MAX, &room);
	if (r < 0)
		return error_set(err, r, "what a guest is told");
	len = machine_boot_frame(m, room, err);
	if (len < 0)
		return len;
	r = gate_send(m->gate, room, (size_t)len);
	if (r < 0)
		(void)error_set(err, r, "tell a guest who it is");
	explicit_bzero(room, (size_t)len);
	explicit_bzero(m->token, sizeof(m->token));
	FAILPOINT_AFTER("vm.tell");
	return r;
}
