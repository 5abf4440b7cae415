/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_nics.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "net/port/inside.h"
#include "net/port/segment.h"
#include "vm/driver/gate.h"
#include "wire/message/bootmsg.h"

#define NIC_NUMBER 1
#define NIC_NAME_DIGITS 12

void machine_nic_init(struct machine_nic *nic, void (*fn)(struct machine_nic *nic))
{
	*nic = (struct machine_nic){ .fn = fn, .ns_fd = -1, .tap_fd = -1 };
}

/* Locally administered, and nobody else's: from the id, which is random. */
static void nic_make_mac(struct machine_nic *nic)
{
	static const uint8_t none[6] = { 0 };
	unsigned long long digits = strtoull(nic->id, NULL, 16);

	memcpy(nic->mac, nic->wanted.mac, sizeof(nic->mac));
	if (memcmp(nic->mac, none, sizeof(none)) != 0)
		return;
	for (size_t i = sizeof(nic->mac); i-- > 0; digits >>= 8)
		nic->mac[i] = (uint8_t)digits;
	nic->mac[0] = (uint8_t)((nic->mac[0] & 0xfcU) | 0x02U);
}

static void nic_name(const char *id, char ret[IF_NAMESIZE])
{
	(void)str_printf(ret, IF_NAMESIZE, "vm%.*s", NIC_NAME_DIGITS, id);
}

/* In the network namespace of this daemon. */
static int nic_lay(struct machine_nic *nic, struct error *err)
{
	_cleanup_netlink_ struct netlink nl = NETLINK_NONE;
	char name[IF_NAMESIZE];
	_cleanup_fd_ int host_fd = -1;
	struct cable_end far = { .name = name, .bridge = nic->wanted.bridge };
	struct link bridge;
	int r;

	r = netlink_open(&nl, err);
	if (r < 0)
		return r;
	host_fd = inside_of_socket(nl.fd, err);
	if (host_fd < 0)
		return host_fd;
	r = link_find(&nl, nic->wanted.bridge, &bridge, err);
	if (r < 0)
		return r;
	nic_name(nic->id, name);
	far.ns_fd = host_fd;
	nic->mtu = MAX(MIN(bridge.mtu, (uint32_t)UINT16_MAX), (uint32_t)BOOTMSG_MTU_MIN);
	return segment_add_device(nic->ns_fd, NIC_NUMBER, &far, nic->mtu, &nic->tap_fd, err);
}

static void nic_run(struct pool_work *work)
{
	struct machine_nic *nic = container_of(work, struct machine_nic, work);

	nic->r = nic_lay(nic, &nic->err);
	if (nic->r < 0)
		(void)error_wrap(&nic->err, nic->r, "hand over a network device in the bridge %s",
				 nic->wanted.bridge);
}

static void nic_ended(struct pool_work *work)
{
	struct machine_nic *nic = container_of(work, struct machine_nic, work);

	nic->ns_fd = fd_close(nic->ns_fd);
	nic->fn(nic);
}

void machine_nic_start(struct machine_nic *nic, struct pool *pool, int ns_fd,
		       const struct instance_nic *wanted, const char *id)
{
	nic->work = (struct pool_work){ .run = nic_run, .done = nic_ended };
	nic->wanted = *wanted;
	(void)str_copy(nic->id, sizeof(nic->id), id);
	nic_make_mac(nic);
	/* Of its own: the instance may go meanwhile. Without one the work fails. */
	nic->ns_fd = fcntl(ns_fd, F_DUPFD_CLOEXEC, 3);
	pool_submit(pool, &nic->work);
}

static int nic_say(const struct bootmsg *m, struct gate *gate, struct error *err)
{
	_cleanup_(buf_done) struct buf frame = BUF_INIT;
	uint8_t *room;
	int r;

	r = buf_reserve(&frame, BOOTMSG_FRAME_MAX, &room);
	if (r < 0)
		return error_set(err, r, "what a guest is told of its network");
	r = bootmsg_encode(m, room, err);
	if (r < 0)
		return r;
	r = gate_send(gate, room, (size_t)r);
	return r < 0 ? error_set(err, r, "tell a guest of its network") : 0;
}

int machine_nic_tell(const struct machine_nic *nic, struct gate *gate, struct error *err)
{
	struct bootmsg m = {
		.type = BOOTMSG_NIC,
		.nic = { .mtu = nic->mtu,
			 .address = nic->wanted.address,
			 .gateway = nic->wanted.gateway },
	};

	memcpy(m.nic.mac, nic->mac, sizeof(m.nic.mac));
	return nic_say(&m, gate, err);
}

int machine_link_tell(const struct instance_link *link, struct gate *gate, struct error *err)
{
	const uint32_t mtu = MAX(MIN(link->mtu, (uint32_t)UINT16_MAX), (uint32_t)BOOTMSG_MTU_MIN);
	struct bootmsg m = {
		.type = BOOTMSG_LINK,
		.link = { .mtu = mtu,
			  .leads_out = link->leads_out,
			  .name = link->name,
			  .address = link->address,
			  .gateway = link->gateway,
			  .address6 = link->address6 },
	};

	segment_pod_mac(0, m.link.device);
	memcpy(m.link.mac, link->mac, sizeof(m.link.mac));
	return nic_say(&m, gate, err);
}

void machine_nic_done(struct machine_nic *nic)
{
	assert(!nic->work.busy);
	nic->ns_fd = fd_close(nic->ns_fd);
	nic->tap_fd = fd_close(nic->tap_fd);
}

void machine_nic_remove(struct pool *pool, const char *id)
{
	char name[IF_NAMESIZE];

	nic_name(id, name);
	cable_cut(pool, name);
}
