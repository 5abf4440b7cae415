/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_CONFINE_H
#define NACRE_ISOLATE_CONFINE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/macros.h"

/*
 * The privilege that our own processes give up once they have started. A seccomp filter and the
 * bounding set are inherited, so nothing below a process can have more than it; who shall have
 * everything (the keeper of the node, whose executables are processes of the host) is made before.
 *
 *   what                           daemon    keeper of an instance   keeper of the node
 *   system calls: confine.rules    yes       inherited               no
 *   bounding and permitted set     CAPS      CAPS                    as it was
 *   effective set                  CAPS      CAPS                    CAPS
 *   ambient, inheritable set       empty     empty                   empty
 *   core dumps, ptrace, W->X       no        no                      no
 *
 * CAPS is confine_caps. no_new_privs is not set: workloads would inherit it, and an image may have
 * a setuid program whose user was promised that it works. The filter refuses and does not kill,
 * because it cannot tell the daemon from a workload that tries what its kernel may have.
 */

/* The capabilities that nacre itself needs, and those that a container can have. */
extern const uint64_t confine_caps;

/* Not dumpable, and no memory that is or was writable can become executable (since 6.3). Neither is
 * inherited: programs have their own compilers. What the kernel does not know is passed over. */
void confine_memory(void);

/*
 * The daemon, with its keeper of the node made and before it serves anybody. Covers all threads for
 * the filter, and the calling one for capabilities: see pool_renew(). Once only. What could not be
 * done is told, and the rest is done.
 */
int confine_daemon(struct error *err) _must_check_;

/* A keeper, before it serves. Again for each program that goes on in its process. */
int confine_keeper(bool node, struct error *err) _must_check_;

#endif
