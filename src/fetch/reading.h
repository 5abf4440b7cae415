/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_READING_H
#define NACRE_FETCH_READING_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "fetch/staging.h"
#include "wire/fetchmsg.h"

/* What the readers of both kinds of archive share. */

#define READING_DOCUMENT_MAX (4 << 20)

struct source;

struct reading {
	struct source *source;
	struct staging staging;
	int sock_fd;
	char architecture[64]; /* of this machine, as OCI names it */
	unsigned n_images;
};

struct reading_layer {
	char digest[DIGEST_SIZE];
	uint64_t size;
	enum fetch_compression compression;
};

/* An image whose blobs are in staging. */
struct reading_image {
	const struct buf *config; /* the document */
	char id[DIGEST_SIZE];     /* its digest */
	char digest[DIGEST_SIZE]; /* of the manifest */
	const struct reading_layer *layers;
	size_t n_layers;
	char *const *names; /* as the archive says them; what is no reference is left out */
};

/* Checks the configuration (platform, diff ids, types) and tells the core of the image. */
int reading_send(struct reading *r, const struct reading_image *image, struct error *err);

#endif
