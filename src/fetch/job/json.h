/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_JSON_H
#define NACRE_FETCH_JSON_H

#include <jansson.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/macros.h"
#include "base/memory/buf.h"

/*
 * Strict reading of JSON documents: no member twice, no NUL, valid UTF-8, bounded depth, and each
 * member of the type that its format says. A wrong type is ERROR_INVALID with the member's name.
 */

#define _cleanup_json_ _cleanup_(json_decrefp)

/* An object. `what` names the document for the error. */
int json_read(json_t **ret, const struct buf *b, const char *what, struct error *err);
/* An array, at the top. */
int json_read_array(json_t **ret, const struct buf *b, const char *what, struct error *err);

/* Members; where they are missing or null: "" or NULL (get), or an error (need). Borrowed. */
int json_get_text(json_t *object, const char *name, const char **ret, struct error *err);
int json_need_text(json_t *object, const char *name, const char **ret, struct error *err);
int json_get_object(json_t *object, const char *name, json_t **ret, struct error *err);
int json_need_object(json_t *object, const char *name, json_t **ret, struct error *err);
/* With at most max elements. */
int json_get_array(json_t *object, const char *name, size_t max, json_t **ret, struct error *err);
int json_need_array(json_t *object, const char *name, size_t max, json_t **ret, struct error *err);
int json_need_number(json_t *object, const char *name, uint64_t max, uint64_t *ret,
		     struct error *err);

#endif
