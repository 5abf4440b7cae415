/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_JSONWRITE_H
#define NACRE_WIRE_JSONWRITE_H

#include "base/memory/buf.h"
#include "wire/document/jsonread.h"

/*
 * Writes JSON into a buffer: texts, and trees as json_parse() made them. A number is written as it
 * was read, so that what is handed on is not changed by us. -ENOMEM.
 */

/* With its quotes. The text is valid UTF-8. */
int json_write_text(struct buf *b, const char *text) _must_check_;
/* The name of a member, with a comma in front where it is not the first one of its object. */
int json_write_name(struct buf *b, const char *name) _must_check_;
/* The value without its name. */
int json_write_value(struct buf *b, const struct json_value *v) _must_check_;

#endif
