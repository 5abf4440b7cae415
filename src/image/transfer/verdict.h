/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_VERDICT_H
#define NACRE_IMAGE_VERDICT_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "image/registry.h"
#include "wire/message/fetchmsg.h"
#include "wire/name/digest.h"

/*
 * The policy's verdict on an image: as nacre-transfer tells it, message by message, and as the
 * database keeps it, a line for each name of an image. A line has these, parted by newlines: the
 * reference, the digest, the word of its kind, when (nanoseconds since 1970), the scope, and for
 * each signer key, fingerprint and identity. Annotations are not kept.
 */

/* A value. */
struct verdict {
	struct arena arena;
	struct image_verdict said; /* its texts, and what follows, are the arena's */
	struct image_signer signers[FETCH_SIGNERS_MAX];
	struct image_annotation *annotations[FETCH_SIGNERS_MAX];
	char digest[DIGEST_SIZE];
	bool done; /* the VERDICT has come */
};

void verdict_init(struct verdict *v);
void verdict_done(struct verdict *v);
/* A SIGNER, ANNOTATION or VERDICT: -EPROTO for one that cannot be now, -ENOMEM. */
int verdict_take(struct verdict *v, const struct fetchmsg *m, struct error *err);

/* To be freed; NULL without memory. */
char *verdict_line(const struct image_verdict *v);
/* Into the arena: -EINVAL where it is no such line, -ENOMEM. */
int verdict_read(struct image_verdict *ret, struct arena *a, const char *line);

/* Lists of lines: strvs. The line of a reference, or NULL. */
const char *verdicts_find(char *const *lines, const char *reference);
/* In the place of the one for the same reference. -ENOMEM: that one is gone. */
int verdicts_put(char ***lines, const char *line);
void verdicts_drop(char **lines, const char *reference);
/* Drops what is no line, and what is about a name that is not among these (strv): by a digest an
 * image is always known. */
void verdicts_keep(char **lines, char *const *names);

#endif
