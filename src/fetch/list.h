/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_LIST_H
#define NACRE_FETCH_LIST_H

#include "base/error.h"
#include "fetch/network.h"

/* The job `list` (wire/fetchmsg.h). */
int list_run(struct network *n, struct error *err);

#endif
