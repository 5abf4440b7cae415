/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_ATTACH_H
#define NACRE_NETWORK_ATTACH_H

#include "base/log/error.h"
#include "network/attachment.h"

struct networks;

/*
 * Reserves what the wish asks for. owner is its path. Blames a field of the wish: "network"
 * (ERROR_NOT_FOUND, ERROR_PRECONDITION: this host cannot have networks), "ip" and "ip6"
 * (ERROR_INVALID: not of the network; ERROR_EXISTS: with its owner), "publish[N]" (ERROR_EXISTS:
 * with the owner of the port; ERROR_PRECONDITION: the network is internal). ERROR_EXHAUSTED: no
 * address is left. Nothing is reserved then.
 */
int network_attach(struct networks *all, const struct network_wish *wish, const char *owner,
		   struct attachment **ret, struct error *err);
/* One of an earlier life of the daemon, which may be in the kernel: PLUGGED. A port of the host
 * that somebody took meanwhile is logged. -EBADMSG: no such text; ERROR_NOT_FOUND: its network is
 * gone. */
int network_adopt(struct networks *all, const char *text, const char *owner,
		  struct attachment **ret, struct error *err);

#endif
