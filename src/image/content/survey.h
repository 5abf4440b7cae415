/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_SURVEY_H
#define NACRE_IMAGE_SURVEY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/pool.h"

/*
 * The present contents of the root directory of the images, found on the pool: a list of names,
 * each with its size where that is wanted. Records may come and go between the beginning and the
 * end of a survey; so the code that removes an entry asks survey_is_garbage() then, on the loop
 * thread.
 */

struct image_store;

enum survey_kind {
	SURVEY_BLOB,
	SURVEY_LAYER,
	SURVEY_EROFS,
	SURVEY_PARTIAL,
	SURVEY_CONTAINER,
	SURVEY_STAGING,
	SURVEY_DATABASE,
	SURVEY_KIND_COUNT
};

struct survey_entry {
	enum survey_kind kind;
	char *name;
	uint64_t bytes;
	int64_t changed; /* seconds since 1970 */
};

struct survey {
	struct list link;
	struct image_store *store;
	struct pool_work work;
	bool sizes;
	bool incomplete; /* some of the sizes */
	struct survey_entry *entries;
	size_t n, size;
	uint64_t free_bytes; /* of the file system, for who is root */
	struct error err;
	void (*done)(struct survey *s, void *userdata);
	void *userdata;
	void *memory;
};

/* The word for people: "blob", "layer", "erofs", "partial", "container", "staging", "database". */
const char *survey_kind_word(enum survey_kind kind);

/* done is called once, not before this has returned; then the survey is freed, with `memory` (which
 * may be NULL). -ENOMEM, and memory is the caller's still. */
int survey_start(struct image_store *store, bool sizes,
		 void (*done)(struct survey *s, void *userdata), void *userdata, void *memory);
/* At the store's end; nobody is told. */
void survey_free_all(struct image_store *store);

/* Whether nothing needs the entry: no record, no lease, nothing that is under way. A partial
 * download is no garbage while it is younger than partial_seconds. */
bool survey_is_garbage(const struct survey *s, const struct survey_entry *e,
		       int64_t partial_seconds);
/* The directory that the entry lies in. */
int survey_dir_fd(const struct survey *s, const struct survey_entry *e);

#endif
