/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SECCOMP_CODE_H
#define NACRE_ISOLATE_SECCOMP_CODE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>

/*
 * A classic BPF program, written from its end to its beginning: jumps only go forward, so every
 * target is known when a jump to it is written. A label is the number of instructions from its own
 * to the end; each function returns that of what it wrote. Used while building (seccomp_gen.c) and
 * by the core (seccomp_profile.c), so it needs nothing of either.
 */
struct seccomp_code {
	struct sock_filter *room;
	unsigned max, n;
	bool full; /* something did not fit: the program is worth nothing */
};

#define SECCOMP_CODE_INIT(room_, max_)                                                             \
	{                                                                                          \
		.room = (room_), .max = (max_)                                                     \
	}

/* Where the program begins; it has `n` instructions. */
struct sock_filter *seccomp_code_start(const struct seccomp_code *c);

unsigned seccomp_code_add(struct seccomp_code *c, uint16_t code, uint32_t k);
unsigned seccomp_code_return(struct seccomp_code *c, uint32_t action);
/* Loads 32 bits at this offset of struct seccomp_data. */
unsigned seccomp_code_load(struct seccomp_code *c, unsigned offset);
/* test: BPF_JEQ, BPF_JGT, BPF_JGE or BPF_JSET with `k`. Targets may be any distance away. */
unsigned seccomp_code_branch(struct seccomp_code *c, uint16_t test, uint32_t k, unsigned yes,
			     unsigned no);
/* Goes on at the label: nothing where that comes next. */
unsigned seccomp_code_goto(struct seccomp_code *c, unsigned label);

/*
 * A binary search with the number in the accumulator: `starts` are where the n ranges begin, in
 * order; the first begins at 0 whatever it says, the last has no end. `leaf` writes what is done
 * for a range, or returns the label of what was written before; it is called from the last range
 * to the first.
 */
unsigned seccomp_code_search(struct seccomp_code *c, const uint32_t *starts, unsigned n,
			     unsigned (*leaf)(void *userdata, unsigned range), void *userdata);

#endif
