/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_KEEPER_ROOT_H
#define NACRE_ISOLATE_KEEPER_ROOT_H

#include "base/log/error.h"

/*
 * The files in the private root of a keeper besides its file systems; private to this area. A
 * static program needs nothing (keeper_root_alone.c: the product). A dynamic one, which a sanitizer
 * needs, finds its linker and libraries (keeper_root_dynamic.c). The build chooses by its option
 * `static`.
 *
 * root_fd: the new root, attached already; the spawner's tree is still that of "/".
 */
int keeper_root_fill(int root_fd, struct error *err);

#endif
