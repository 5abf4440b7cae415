/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/networks/nics.h"

#include <errno.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "net/netlink/bed_test.h"
#include "net/netlink/link.h"
#include "unit.h"

static struct instance above = { .path = "v" };
static struct instance node = { .path = "" };
static const struct instance_choice vm = { .kind = INSTANCE_VM };
static const struct instance_choice cell = { .kind = INSTANCE_CELL };
static struct instance_nic nic;
static struct error err;

static int take(const char *bridge, const char *address, const char *gateway, const char *mac)
{
	Aurae__Runtime__V0__Nic m = AURAE__RUNTIME__V0__NIC__INIT;
	Aurae__Runtime__V0__Nic *list[] = { &m };

	m.bridge = (char *)(uintptr_t)bridge;
	m.address = (char *)(uintptr_t)address;
	m.gateway = (char *)(uintptr_t)gateway;
	m.mac = (char *)(uintptr_t)mac;
	err = (struct error)ERROR_INIT;
	return nics_take("own", list, 1, NULL, &vm, &nic, &err);
}

/* A node with a bridge br0, and with eth0, which is none. */
static bool bed(void)
{
	bool made;

	bed_enter();
	made = link_add_bridge(&bed_nl, "br0", NULL, NULL, &err) == 0 &&
	       link_add_dummy(&bed_nl, "eth0", NULL, &err) == 0;
	netlink_done(&bed_nl);
	bed_sys_fd = fd_close(bed_sys_fd);
	return made;
}

static void is_taken(void)
{
	if (!bed())
		return;
	CHECK_INT(nics_take("own", NULL, 0, &above, &cell, &nic, &err), 0);
	CHECK_STR(nic.bridge, "");
	if (take("br0", "", "", "") < 0) {
		CHECK_INT(err.code, -ENOMEM);
		return;
	}
	CHECK_STR(nic.bridge, "br0");
	CHECK_STR(nic.address, "");
	CHECK_INT(nic.mac[0], 0);
	CHECK_INT(take("br0", "192.0.2.5/24", "192.0.2.1", "02:00:00:00:00:05"), 0);
	CHECK_STR(nic.address, "192.0.2.5/24");
	CHECK_STR(nic.gateway, "192.0.2.1");
	CHECK_INT(nic.mac[5], 5);
}

static void is_refused(void)
{
	static const struct {
		const char *bridge, *address, *gateway, *mac, *field;
	} wrong[] = {
		{ "", "", "", "", "nics[0].bridge" },
		{ "a/b", "", "", "", "nics[0].bridge" },
		{ "br1", "", "", "", "nics[0].bridge" },
		{ "eth0", "", "", "", "nics[0].bridge" },
		{ "br0", "192.0.2.5", "", "", "nics[0].address" },
		{ "br0", "192.0.2/24", "", "", "nics[0].address" },
		{ "br0", "2001:db8::5/64", "", "", "nics[0].address" },
		{ "br0", "", "192.0.2.1", "", "nics[0].gateway" },
		{ "br0", "192.0.2.5/24", "192.0.3.1", "", "nics[0].gateway" },
		{ "br0", "192.0.2.5/24", "192.0.2.5", "", "nics[0].gateway" },
		{ "br0", "192.0.2.5/24", "192.0.2.1/24", "", "nics[0].gateway" },
		{ "br0", "", "", "01:00:00:00:00:05", "nics[0].mac" },
		{ "br0", "", "", "00:00:00:00:00:00", "nics[0].mac" },
		{ "br0", "", "", "5", "nics[0].mac" },
	};

	if (!bed())
		return;
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		CHECK(take(wrong[i].bridge, wrong[i].address, wrong[i].gateway, wrong[i].mac) < 0);
		CHECK_STR(err.field, wrong[i].field);
	}
	CHECK_STR(err.text, "nics[0].mac: \"5\" is no address of one Ethernet device, as in "
			    "02:00:00:00:00:05");
}

static void is_for_a_machine_of_the_node(void)
{
	Aurae__Runtime__V0__Nic m = AURAE__RUNTIME__V0__NIC__INIT;
	Aurae__Runtime__V0__Nic *list[] = { &m, &m };

	m.bridge = (char[]){ "br0" };
	if (!bed())
		return;
	CHECK_INT(nics_take("own", list, 1, &node, &vm, &nic, &err), 0);
	CHECK(nics_take("own", list, 1, NULL, &cell, &nic, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(nics_take("own", list, 1, &above, &vm, &nic, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(nics_take("own", list, 2, NULL, &vm, &nic, &err) < 0);
	CHECK_STR(err.field, "nics");
	CHECK_INT(nics_take("host", NULL, 0, NULL, &cell, &nic, &err), 0);
	CHECK(nics_take("host", NULL, 0, NULL, &vm, &nic, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.field, "network");
}

UNIT_MAIN({ "is_taken", is_taken }, { "is_refused", is_refused },
	  { "is_for_a_machine_of_the_node", is_for_a_machine_of_the_node })
