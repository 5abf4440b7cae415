/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_HELPER_ENV_H
#define NACRE_IMAGE_HELPER_ENV_H

/*
 * The environment of nacre-fetch; private to this area. Empty in the product (helper_env_none.c).
 * In a build with -Dfaults=true (helper_env_faults.c) what NACRE_FETCH_SYSIO says is its
 * NACRE_SYSIO, so that a test can fail the helper alone. The caller owns the list; NULL without
 * memory.
 */
char **helper_env(void);

#endif
