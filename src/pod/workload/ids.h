/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_IDS_H
#define NACRE_POD_IDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "isolate/spawn/ids.h"

/*
 * Ranges of ids for the user namespaces of workloads. Each workload that wants one has POD_IDS of
 * them for itself, the same numbers for users and groups, from its making until it is removed: its
 * record has them, and what is free is what no record has. Nothing else is kept.
 */

#define POD_IDS 65536U
#define POD_IDS_RANGES_MAX 32768U
/* Above the users of a host, those of /etc/subuid as tools choose them, and what systemd gives to
 * its containers; below what systemd calls foreign. */
#define POD_IDS_FIRST 0x70000000U
#define POD_IDS_COUNT (4094U * POD_IDS)

struct ids_range {
	uint32_t first, count;
};

/* Where they are taken from; first is at most 2147483647, and ids past that are left out. */
struct ids_space {
	uint32_t first, count;
	struct ids_range *others; /* owned: of somebody else (ids_space_read()) */
	size_t n_others;
};

/* Adds the ranges of /etc/subuid and /etc/subgid, which are not given to workloads. A file that is
 * missing has none; a line that has no range in it is skipped. -ENOMEM. */
int ids_space_read(struct ids_space *s);
/* One of these files; for tests. */
int ids_space_parse(struct ids_space *s, const char *text);
void ids_space_done(struct ids_space *s);

/* The ranges that are taken: the others', and those that are added. A value. */
struct ids_taken {
	uint32_t first, n;
	uint8_t bits[POD_IDS_RANGES_MAX / 8];
};
void ids_taken_init(struct ids_taken *t, const struct ids_space *s);
void ids_taken_add(struct ids_taken *t, const struct isolate_ids *ids);
/* Chooses a range that is free. ERROR_EXHAUSTED. */
int ids_choose(const struct ids_taken *t, struct isolate_ids *ret, struct error *err);

#endif
