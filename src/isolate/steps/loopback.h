/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_LOOPBACK_H
#define NACRE_ISOLATE_LOOPBACK_H

#include "base/log/error.h"

/* Brings up "lo" of the caller's net namespace, which has its addresses as soon as it is up;
 * private to this area. */
int loopback_up(struct error *err);

#endif
