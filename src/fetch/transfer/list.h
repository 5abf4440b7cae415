/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_LIST_H
#define NACRE_FETCH_LIST_H

#include "base/log/error.h"
#include "fetch/transfer/network.h"

/* The job `list` (wire/message/fetchmsg.h). */
int list_run(struct network *n, struct error *err);
/* The job `login`. */
int list_login(struct network *n, struct error *err);

#endif
