/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BENCH_BARE_NETWORK_H
#define NACRE_BENCH_BARE_NETWORK_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * The part of the bare kernel sequence that puts a process on a network: a veth pair, addresses,
 * routes, neighbours and settings at both ends, and the elements of the packet filter, by the very
 * messages of net/port and net/filter and nothing around them. In a network namespace of its own,
 * with a table of its own. What fails ends the program.
 */

/* Goes to that namespace; ports: how many others are there. */
void bare_network_prepare(unsigned ports);
/* The network namespace of the process, which is to be a new one, gets a port. */
void bare_network_plug(pid_t pid);
/* Its rules go; the port itself goes with the process. */
void bare_network_unplug(void);

#endif
