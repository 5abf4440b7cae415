/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_VARIANT_H
#define NACRE_FETCH_VARIANT_H

/*
 * How well an image for `architecture`/`variant` fits where `wanted`/`wanted_variant` is wanted: 0
 * not at all, more is better. Newer variants run what was made for older ones (arm v8, v7, v6, v5;
 * amd64 v4 to v1), so the newest that is not too new fits best. An image that says no variant is
 * for the oldest one, but of arm for v7 and of arm64 for v8, as these are named without. Where no
 * variant is wanted, those that every machine of the architecture has are taken.
 */
int variant_rank(const char *wanted, const char *wanted_variant, const char *architecture,
		 const char *variant);

#endif
