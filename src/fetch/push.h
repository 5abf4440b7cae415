/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_PUSH_H
#define NACRE_FETCH_PUSH_H

#include "base/error.h"
#include "fetch/network.h"

/* The job `push` (wire/fetchmsg.h). */
int push_run(struct network *n, struct error *err);

#endif
