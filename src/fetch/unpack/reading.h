/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_READING_H
#define NACRE_FETCH_READING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "fetch/job/staging.h"
#include "fetch/unpack/choice.h"
#include "wire/message/fetchmsg.h"

/* The code that the readers of both kinds of archive share. */

#define READING_DOCUMENT_MAX (4 << 20)

struct source;
struct reading;
struct descriptor;

/* Where the content of OCI's documents is had. */
struct reading_ops {
	/* A whole document; its digest and size are checked by whoever asked for it. */
	int (*load)(struct reading *r, const struct descriptor *d, struct buf *ret,
		    struct error *err);
	/* A layer, into staging; NULL: the core asks for layers itself. */
	int (*take)(struct reading *r, const struct descriptor *d, struct error *err);
};

struct reading {
	const struct reading_ops *ops;
	/* The core is being told of a layer; may be NULL. */
	int (*on_layer)(struct reading *r, const char *digest, uint64_t size, struct error *err);
	struct source *source;
	struct staging staging;
	int sock_fd;
	char architecture[64]; /* that is wanted, as OCI names it */
	char variant[33];      /* of it; "": any */
	struct choice choice;
	unsigned n_images;
	/* Of an error: the document is sound, but is none of an image that can be run. */
	bool no_image;
};

struct reading_layer {
	char digest[DIGEST_SIZE];
	uint64_t size;
	enum fetch_compression compression;
};

/* Room for FETCH_LAYERS_MAX, too much for a stack; NULL: out of memory. */
struct reading_layer *reading_layers_new(void);
void reading_layers_done(struct reading_layer **layers);

/* An image whose blobs are in staging. */
struct reading_image {
	const struct buf *config; /* the document */
	char id[DIGEST_SIZE];     /* its digest */
	char digest[DIGEST_SIZE]; /* of the manifest */
	const struct reading_layer *layers;
	size_t n_layers;
	char *const *names; /* in full */
};

/* Checks the configuration (platform, diff ids, types) and tells the core of the image. */
int reading_send(struct reading *r, const struct reading_image *image, struct error *err);

#endif
