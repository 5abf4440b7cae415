/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_PLUG_H
#define NACRE_NETWORK_PLUG_H

#include "network/attachment.h"

/*
 * An attachment on its way into the kernel and out of it, on a thread of the pool. Such work waits
 * for one that settles (network/settle.h), which never runs beside it.
 */

/* err NULL for success. */
typedef void (*plug_fn)(void *userdata, const struct error *err);

/*
 * From RESERVED to PLUGGED, or back where it fails: the port of a pod whose network namespace is
 * netns_fd, which is taken over. -ENOMEM comes at once, done follows otherwise.
 */
int attachment_plug(struct attachment *a, int netns_fd, plug_fn done, void *userdata);

/*
 * Takes its rules away and gives its addresses and ports back; its device goes with the pod's
 * network namespace. Not while it is PLUGGING. done (may be NULL) is called when it is free again;
 * where there is no memory for that it is called at once, and the rest is done by the next
 * settling.
 */
void attachment_unplug(struct attachment *a, plug_fn done, void *userdata);

/*
 * The same while the pod goes on, with its device: netns_fd is the pod's network namespace, which
 * is taken over, or -1. heir: of the same pod, gets the default routes; NULL: nobody does, or they
 * were not here. -ENOMEM at once, and nothing is changed.
 */
int attachment_withdraw(struct attachment *a, struct attachment *heir, int netns_fd, plug_fn done,
			void *userdata);

#endif
