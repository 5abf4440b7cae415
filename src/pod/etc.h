/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_ETC_H
#define NACRE_POD_ETC_H

#include "base/error.h"

/*
 * The files below /etc that a container cannot bring along, since they say where it runs: hosts,
 * with localhost and its own name. Written into the container's own layer where the image has none
 * or an empty one. What an image has in that place otherwise, also a link, is its own choice and
 * stays.
 */
int etc_fill(int root_fd, const char *hostname, struct error *err);

#endif
