/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_YAML_H
#define NACRE_FETCH_YAML_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * One YAML document as JSON, for what has the form of JSON: mappings whose keys are texts, lists,
 * and scalars. A plain scalar is null, a truth, a whole number (decimal, 0x, 0o or with a 0 in
 * front) or a text. Anchors, aliases and tags are refused: a short document cannot become a long
 * one. ERROR_INVALID with the line.
 */

#define YAML_DEPTH_MAX 32

int yaml_to_json(struct buf *to, const void *data, size_t len, struct error *err);

#endif
