/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_VERIFY_H
#define NACRE_FETCH_VERIFY_H

#include "base/log/error.h"
#include "fetch/transfer/network.h"

/* The job `verify` (wire/message/fetchmsg.h). dir_fd: the staging directory, where nothing is
 * written. */
int verify_run(struct network *n, int dir_fd, struct error *err);

#endif
