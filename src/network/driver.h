/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_DRIVER_H
#define NACRE_NETWORK_DRIVER_H

#include "net/port/bridge.h"
#include "network/attachment.h"
#include "network/spec.h"

/*
 * The driver of a network, and the device that a pod gets on it:
 *
 * routed   a port without a bridge (net/port/port.h)
 * bridge   a port of a bridge of the node (net/port/bridge.h)
 * macvlan  a child of a device of the node, its parent (net/port/lan.h)
 * ipvlan   likewise
 * device   the parent itself, lent to one pod at a time
 *
 * Of the last three the node sees no packet, so there are no published ports, no masquerade and no
 * isolation. The words of drivers and modes are those of docker and podman.
 */

const char *network_driver_word(enum network_driver driver);
/* "": routed. -EINVAL: there is no such driver. */
int network_driver_of(const char *word, enum network_driver *ret);
/* Of a network of children; "" for the others. */
const char *network_mode_word(const struct network *n);

/* Whether packets of its pods pass the node. */
static inline bool network_passes_node(const struct network *n)
{
	return n->driver == NETWORK_ROUTED || n->driver == NETWORK_BRIDGE;
}

/* ---- private to this area ---- */

/* Checks the driver's part of a spec, on this host as it is now: blames "driver", "mode", "parent",
 * "subnets", "gateway6", "internal" or "node_open". */
int driver_check_spec(const struct network_spec *spec, struct error *err);
/* Takes that part over: driver, parent and mode. ERROR_PRECONDITION: the parent is not there, or
 * not fit for it, or lent already. */
int driver_take_spec(struct network *n, const struct network_spec *spec, struct error *err);
/* The same from a record: -EBADMSG. */
int driver_take_record(struct network *n, const char *driver, const char *parent, const char *mode);
/* Bytes of a packet, where none were asked for: those of the parent, or 0. */
uint32_t driver_mtu(const struct network *n);
/* Whether the wish can be had: blames "publish[0]", "mac", "rate_to_pod", or "network" for a device
 * that somebody has, or that is not there. Notes the state of a lent device. */
int driver_take_wish(struct attachment *a, const struct network_wish *wish, struct error *err);

/* The copy of an attachment's plan for its device that a thread works with. */
struct driver_plan {
	enum network_driver driver;
	struct port_plan port;
	struct lan_plan lan; /* of the last three drivers */
	enum lan_kind kind;
	struct lan_home home;
	uint32_t number; /* of the network */
	bool hairpin;
	char network[NETWORK_NAME_SIZE];
};

void driver_plan(const struct attachment *a, struct driver_plan *ret);
/* The bridge of that network. */
void driver_plan_bridge(const struct network *n, struct bridge_plan *ret);

/* On a thread. *ret_link and *ret_bridge are indexes of the node's, 0 where there is none. -EEXIST:
 * the pod, or the node, has a device of that name. */
int driver_make(const struct driver_plan *plan, int netns_fd, uint32_t *ret_link,
		uint32_t *ret_bridge, struct error *err);
/* Its device goes, or comes back to the node. netns_fd may be -1 for those that pass the node, and
 * for a lent one whose namespace is gone: -ENODEV where it has not come back. */
int driver_remove(const struct driver_plan *plan, int netns_fd, struct error *err);
int driver_lead_out(const struct driver_plan *plan, int netns_fd, struct error *err);

#endif
