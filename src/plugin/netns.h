/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_NETNS_H
#define NACRE_PLUGIN_NETNS_H

#include <stdbool.h>

#include "base/log/error.h"

/*
 * A name for a network namespace: a bind mount, since plugins take a path, and some hand it to a
 * daemon that stands in another mount namespace.
 */

#define NETNS_PATH_MAX 512

/* A new name below dir, which is made where it is missing. */
int netns_bind(const char *dir, int ns_fd, char ret[NETNS_PATH_MAX], struct error *err);
/* Whether there is a namespace of that name. */
bool netns_is_there(const char *path);
/* Removes the name; no error where it is gone. */
void netns_unbind(const char *path);

#endif
