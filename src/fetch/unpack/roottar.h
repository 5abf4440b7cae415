/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_ROOTTAR_H
#define NACRE_FETCH_ROOTTAR_H

#include "base/log/error.h"

/*
 * The tar of a root file system, plain or compressed, as an image: the file as it is becomes the
 * only layer, under a configuration and a manifest that are written here. The same file with the
 * same settings is the same image, so that no time is in them. That the file is a tar is seen when
 * it is unpacked, as that of any other layer.
 */

struct reading;

/* fd: the file, open for reading at its begin. settings: JSON with the members `architecture`
 * (missing: this machine's), `variant` and `config` of an image configuration. */
int roottar_read(struct reading *r, int fd, const char *settings, struct error *err);

#endif
