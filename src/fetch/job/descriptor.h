/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_DESCRIPTOR_H
#define NACRE_FETCH_DESCRIPTOR_H

#include <jansson.h>
#include <stdint.h>

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"

/*
 * How the documents of OCI and Docker name each other, and what they have in common. A digest was
 * checked when this has been read, and no blob is to be fetched from anywhere but where its
 * document came from.
 */

#define DESCRIPTOR_LIST_MAX 256 /* entries of an index */
#define DESCRIPTOR_DEPTH_MAX 3  /* of indexes in indexes */

enum descriptor_role {
	DESCRIPTOR_OTHER,
	DESCRIPTOR_INDEX,
	DESCRIPTOR_MANIFEST,
	DESCRIPTOR_CONFIG,
	DESCRIPTOR_LAYER
};

struct descriptor_type {
	const char *name;
	enum descriptor_role role;
	enum fetch_compression compression;
};

/* NULL in it and DESCRIPTOR_OTHER for a type that is not known. */
struct descriptor_type descriptor_type_of(const char *media_type);

/* Texts are borrowed from the document. */
struct descriptor {
	struct descriptor_type type;
	const char *media_type;
	const char *digest;
	uint64_t size;
	json_t *node; /* that it was read from */
};

int descriptor_read(struct descriptor *ret, json_t *node, struct error *err);

/*
 * An index or a manifest: version 2, of the type that its descriptor (or NULL: nobody) says, and
 * without the members of the other kind: what could be read as both is neither (CVE-2021-41190).
 */
int descriptor_check_index(json_t *document, const char *media_type, struct error *err);
int descriptor_check_manifest(json_t *document, const char *media_type, struct error *err);

#endif
