/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_OCI_H
#define NACRE_FETCH_OCI_H

#include "base/error.h"

struct reading;

/* Reads an OCI image layout (oci-layout, index.json, blobs/sha256/HEX): the images for this
 * machine. */
int oci_read(struct reading *r, struct error *err);

#endif
