/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_KEEPER_ENV_H
#define NACRE_INSTANCE_KEEPER_ENV_H

/*
 * The environment of a keeper; private to this area. Empty in the product (keeper_env_none.c). In a
 * build with -Dfaults=true what steers the test hooks and the sanitizers goes on to keepers of
 * every depth (keeper_env_faults.c):
 *
 *   NACRE_SYSIO, NACRE_FAILPOINT, NACRE_CLOCK_SWING, ASAN_OPTIONS, UBSAN_OPTIONS,
 *   LSAN_OPTIONS, TSAN_OPTIONS, ASAN_SYMBOLIZER_PATH
 *
 * and where NACRE_KEEPER_SYSIO or NACRE_KEEPER_FAILPOINT is set (also to ""), a keeper finds its
 * value under the name without KEEPER_, so that a test can fail either side alone.
 *
 * Valid until the next call; for one thread only.
 */
char *const *keeper_env(void);

#endif
