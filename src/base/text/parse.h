/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_PARSE_H
#define NACRE_BASE_PARSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/time/clock.h"

/*
 * Text to values. The whole text must be the value: no blanks, no sign where none is meant, nothing
 * behind it. -EINVAL for a wrong form, -ERANGE for a right form out of range.
 */
int parse_u64(const char *s, uint64_t min, uint64_t max, uint64_t *ret);
int parse_u32(const char *s, uint32_t *ret);

/* "10", "10s", "250ms", "5m", "2h"; a bare number counts seconds. */
int parse_duration(const char *s, nsec_t *ret);
/* "4096", "64KiB", "16MiB", "1GiB": bytes. */
int parse_size(const char *s, uint64_t *ret);

/*
 * A name of an object: 1 to 63 of [a-z0-9-], neither first nor last a '-' (RFC 1123 label): safe as
 * a file name, as a host name and as a component of a cgroup path.
 */
#define NAME_LABEL_MAX 63
bool name_is_label(const char *s);
/* The same with capital letters, which are letters of their own: what cells of Aurae's API may be
 * called, and so any instance. */
bool name_is_label_of_any_case(const char *s);

/*
 * A path of names, "a/b/c", of at most NAME_DEPTH_MAX labels of any case (architecture 9.11). The
 * empty string is the node itself and not a path.
 */
#define NAME_DEPTH_MAX 8
#define NAME_PATH_MAX (NAME_DEPTH_MAX * (NAME_LABEL_MAX + 1))
bool name_is_path(const char *s);
/* How many labels the path has; 0 for "". */
size_t name_depth(const char *path);
/* The last label of a path. */
const char *name_last(const char *path);
/* "LABEL-N", of a label that is cut where both are too long for one. */
void name_number(char ret[NAME_LABEL_MAX + 1], const char *label, unsigned n);

#endif
