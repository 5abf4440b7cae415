/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_BUILD_ID_H
#define NACRE_BASE_BUILD_ID_H

/*
 * Which build this program is: the GNU build-id that the linker has made of its contents, in
 * hexadecimal, at most BUILD_ID_MAX characters; "" where the program carries none. Two builds of
 * the same version that differ have different ones.
 */
#define BUILD_ID_MAX 64

const char *build_id(void);

#endif
