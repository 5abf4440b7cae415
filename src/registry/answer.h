/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_ANSWER_H
#define NACRE_REGISTRY_ANSWER_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"

/* The small documents with which registries and token servers answer. Pure; texts live in the
 * arena. ERROR_INVALID where they break their rules. */

struct answer_token {
	const char *token;
	uint64_t seconds; /* that it is good for */
};

int answer_token(struct answer_token *ret, struct arena *arena, const void *data, size_t len,
		 struct error *err);

struct answer_tags {
	const char **tags; /* each one a tag by its form */
	size_t n_tags;
};

/* One page. */
int answer_tags(struct answer_tags *ret, struct arena *arena, const void *data, size_t len,
		struct error *err);

#define ANSWER_REASON_SIZE 200

/* The message of an error document, as one clean line ("MANIFEST_UNKNOWN: manifest unknown"); ""
 * where it has none that can be read. */
void answer_reason(char ret[ANSWER_REASON_SIZE], const void *data, size_t len);

#endif
