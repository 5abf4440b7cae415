/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_AUTH_H
#define NACRE_CRI_AUTH_H

#include "api/cri.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "image/registry.h"

/*
 * The credentials of a pull: for server_address, which may be a URL, or else for the registry of
 * the reference; they are shown to no other host. *ret has none where `auth` is NULL or empty. What
 * it has lives in the arena and points into the request. ERROR_INVALID names the field, and never
 * what is in it.
 */
int cri_auth_take(struct arena *a, const Runtime__V1__AuthConfig *auth, const char *reference,
		  struct image_auths *ret, struct error *err);

#endif
