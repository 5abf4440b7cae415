/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_COPY_H
#define NACRE_FETCH_COPY_H

#include "base/log/error.h"
#include "fetch/transfer/network.h"

/* The job `copy` (wire/message/fetchmsg.h), from one network to the other, which was opened beside
 * it; dir_fd: of staging. */
int copy_run(struct network *from, struct network *to, int dir_fd, struct error *err);

#endif
