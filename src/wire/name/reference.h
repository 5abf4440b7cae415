/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_REFERENCE_H
#define NACRE_WIRE_REFERENCE_H

#include "base/log/error.h"
#include "wire/name/digest.h"

/*
 * References of images as Docker and OCI write them, in their full form:
 *
 *   busybox                    docker.io/library/busybox:latest
 *   quay.io/a/b:1              quay.io/a/b:1
 *   busybox@sha256:...         docker.io/library/busybox@sha256:...
 *
 * A first component with a dot, a colon or capital letters, or "localhost", is a registry's host.
 */

#define REFERENCE_NAME_MAX 255
#define REFERENCE_TAG_MAX 128
#define REFERENCE_SIZE (REFERENCE_NAME_MAX + 1 + REFERENCE_TAG_MAX + 1 + DIGEST_SIZE)

struct reference {
	char name[REFERENCE_NAME_MAX + 1]; /* host and path */
	char tag[REFERENCE_TAG_MAX + 1];   /* "" only beside a digest */
	char digest[DIGEST_SIZE];          /* "" where there is none */
};

/* ERROR_INVALID with the reason. */
int reference_parse(struct reference *ret, const char *text, struct error *err);
/* name[:tag][@digest] */
void reference_format(const struct reference *ref, char ret[REFERENCE_SIZE]);
/* Whether a text is the host of a registry, as the full form of a reference has it: "docker.io",
 * "localhost", "[::1]:5000". */
bool reference_is_registry(const char *text);
/* Parses and formats: the full form of a text. */
int reference_normalise(char ret[REFERENCE_SIZE], const char *text, struct error *err);

#endif
