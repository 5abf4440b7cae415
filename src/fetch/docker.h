/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_DOCKER_H
#define NACRE_FETCH_DOCKER_H

#include "base/error.h"

struct reading;

/*
 * Reads an archive of `docker save` (manifest.json with configurations, names and layers). It has
 * no manifest in the sense of OCI, so one is written, the same for the same image each time.
 */
int docker_read(struct reading *r, struct error *err);

#endif
