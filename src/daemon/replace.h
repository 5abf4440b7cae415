/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_REPLACE_H
#define NACRE_DAEMON_REPLACE_H

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * `nacre daemon --replace`: asks the daemon that holds a lock (of fcntl(2)) to drain and end, and
 * waits until it has. Before anything is served, so it may block.
 *
 * Should: find the process by what the kernel says about the lock.
 * Must not: signal any other, such as one that has got its number meanwhile.
 *
 * ERROR_NOT_FOUND: nobody holds it any more. ERROR_DEADLINE: it did not end within the limit; it
 * was asked, and goes on ending.
 */
int replace_owner(int lock_fd, nsec_t limit, struct error *err);

#endif
