/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_AUTH_H
#define NACRE_RUNTIME_IMAGE_AUTH_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"
#include "image/registry.h"

/* Credentials of a request, as the store of images takes them; they live in the arena and point
 * into the request. ERROR_INVALID names the field, and never what is in it. */
int image_auth_read(struct image_auths *ret, struct arena *a, Nacre__V1__RegistryAuth **auths,
		    size_t n, struct error *err);

/* A platform that a request asks for: ERROR_INVALID names `architecture` or `variant`. */
int image_auth_check_platform(const char *architecture, const char *variant, struct error *err);

#endif
