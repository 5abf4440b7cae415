/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_METADATA_H
#define NACRE_GATE_METADATA_H

#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * `nacre-gate metadata`: the metadata services of the pods of this node. The daemon hands over
 * sockets that listen in the network namespaces of pods (GATEMSG_LISTEN) and says what is told
 * there (GATEMSG_METADATA, wire/document/imds.h); whoever connects to one is of its pod, and is
 * told of that alone. A request is read here and nowhere else. For a pod that may have its identity
 * a key is made here and signed by the daemon (GATEMSG_WISH); the answer is used again for a while
 * (POD_SVID_FRESH), so that a pod cannot make the daemon sign all the time. It lives as long as
 * the daemon that has started it; tokens of clients end with it.
 *
 * Of METADATA_CLIENTS_OF_ONE connections to a pod's service the oldest makes room, and so of
 * METADATA_CLIENTS_MAX to all of them.
 */

#define METADATA_FD_CONTROL 3 /* connected, SOCK_SEQPACKET */

#define METADATA_CLIENTS_OF_ONE 8
#define METADATA_CLIENTS_MAX 256
/* For a request to come, and for the answer to be taken. */
#define METADATA_PATIENCE (10 * NSEC_PER_SEC)

/* Runs until the daemon hangs up. */
int metadata_run(uid_t uid, gid_t gid, struct error *err);

#endif
