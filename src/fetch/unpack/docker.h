/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_DOCKER_H
#define NACRE_FETCH_DOCKER_H

#include "base/log/error.h"

struct reading;
struct reading_image;

/*
 * Reads an archive of `docker save` (manifest.json with configurations, names and layers). It has
 * no manifest in the sense of OCI, so one is written, the same for the same image each time.
 */
/* Writes an OCI manifest for an image that has none, whose configuration and layers are in staging:
 * sets its digest. */
int docker_put_manifest(struct reading *r, struct reading_image *image, struct error *err);
int docker_read(struct reading *r, struct error *err);

#endif
