/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_EXPORT_H
#define NACRE_IMAGE_EXPORT_H

struct image_store;

/* As import_free_all(). */
void export_free_all(struct image_store *s);

#endif
