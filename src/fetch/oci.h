/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_OCI_H
#define NACRE_FETCH_OCI_H

#include "base/error.h"

/* An OCI image layout, as a directory or a tar; and the documents of OCI wherever they come from.
 */

struct reading;
struct descriptor;

/* Takes each image of the layout that is for this machine. */
int oci_read(struct reading *r, struct error *err);
/* Takes the image that a descriptor of an index or a manifest names: of indexes the entry that fits
 * the platform best. `names` as struct reading_image has them. */
int oci_take(struct reading *r, const struct descriptor *entry, char *const *names,
	     struct error *err);

#endif
