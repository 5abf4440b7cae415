/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_OCI_H
#define NACRE_FETCH_OCI_H

#include "base/log/error.h"
#include "fetch/job/descriptor.h"

/* An OCI image layout, as a directory or a tar; and the documents of OCI wherever they come from.
 */

struct reading;

/* Takes each image of the layout that is for this machine. */
int oci_read(struct reading *r, struct error *err);
/* Takes the image that a descriptor of an index or a manifest names: of indexes the entry that fits
 * the platform best. `names` as struct reading_image has them. */
int oci_take(struct reading *r, const struct descriptor *entry, char *const *names,
	     struct error *err);

/* The indexes on the way to a manifest, into which its descriptor points. */
struct oci_kept {
	json_t *indexes[DESCRIPTOR_DEPTH_MAX];
};

/* The manifest that oci_take() would take. oci_kept_done() is due whatever comes back. */
int oci_find(struct reading *r, const struct descriptor *entry, struct descriptor *ret,
	     struct oci_kept *keep, struct error *err);
void oci_kept_done(struct oci_kept *k);

#endif
