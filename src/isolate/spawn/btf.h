/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_BTF_H
#define NACRE_ISOLATE_BTF_H

#include <stddef.h>
#include <stdint.h>

#include "base/memory/buf.h"

/*
 * The types of a kernel as it tells them (BTF, Documentation/bpf/btf.rst): where members of its
 * structures lie. Its text is checked all the same: nothing outside of it is read.
 */
struct btf {
	struct buf data;
	const uint32_t **types; /* by id, from 1; n_types of them */
	uint32_t n_types;
	const char *strings;
	uint32_t n_strings;
};

/* Takes the data over, also where it fails: -EBADMSG, -ENOMEM. */
int btf_take(struct btf *b, struct buf *data);
void btf_done(struct btf *b);

/* The id of the first type of that kind (BTF_KIND_*) and name; 0: there is none. */
uint32_t btf_find(const struct btf *b, unsigned kind, const char *name);
/* Bytes from the start of the structure, also of a member of a nameless one in it; -ENOENT. */
int btf_offset(const struct btf *b, const char *structure, const char *member);

#endif
