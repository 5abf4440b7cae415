/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_PULL_H
#define NACRE_FETCH_PULL_H

#include "base/error.h"
#include "fetch/network.h"

/* The job `pull` (wire/fetchmsg.h). dir_fd: the staging directory. */
int pull_run(struct network *n, int dir_fd, struct error *err);

#endif
