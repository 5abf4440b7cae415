/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BENCH_BARE_WHOLE_H
#define NACRE_BENCH_BARE_WHOLE_H

/*
 * The part of the bare kernel sequence that makes a container of a process with namespaces and a
 * root: the same calls as the steps of isolate (src/isolate/steps/steps.c) for a container from an
 * image without further wishes, in their plainest form, nothing checked that the kernel does not
 * check. In the child; each returns what has failed, or NULL.
 */

/* Below the root that is mounted at this path, still outside of it. */
const char *bare_whole_mounts(const char *root);
/* In the root, right before the exec. */
const char *bare_whole_privilege(void);

#endif
