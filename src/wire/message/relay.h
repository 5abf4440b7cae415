/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_RELAY_H
#define NACRE_WIRE_RELAY_H

/* Messages to `nacre-gate relay` and from it (gate/relay.h): single bytes. */

#define RELAY_RING_MAX 65536

#define RELAY_REPLAY 'r'
#define RELAY_LIVE 'l'

#define RELAY_ASKED 'a'   /* the agent was asked to power its guest off */
#define RELAY_SILENT 's'  /* no agent answers */
#define RELAY_REFUSED 'n' /* it has refused: its words follow */

#endif
