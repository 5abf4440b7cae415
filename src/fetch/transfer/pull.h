/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_PULL_H
#define NACRE_FETCH_PULL_H

#include "base/log/error.h"
#include "fetch/transfer/network.h"

/* The job `pull` (wire/message/fetchmsg.h). dir_fd: the staging directory. */
int pull_run(struct network *n, int dir_fd, struct error *err);

#endif
