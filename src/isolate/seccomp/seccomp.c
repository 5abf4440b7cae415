/* SPDX-License-Identifier: Apache-2.0 */
#include <assert.h>
#include <endian.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>

#include "base/macros.h"
#include "isolate/plan/plan.h"

/*
 * The filters are made while building (seccomp_gen.c) and stand in the program as data: one for a
 * container without any capability that unlocks a call; and one of which, for another set of
 * capabilities, a copy is made in which the instructions that the table of patches names are
 * replaced by "allow". Copies stay for ever, since plans point to them.
 */

/* Any of caps turns the instruction at `at` into "allow". */
struct seccomp_patch {
	unsigned at;
	uint64_t caps;
};

#include "isolate/seccomp_table.h"

/* Sets of unlocking capabilities that one process may meet. Past that the filter without any is
 * given: a limit that closes and never opens. */
#define SECCOMP_COPIES_MAX 32

struct seccomp_copy {
	uint64_t caps; /* those that unlock something */
	struct sock_fprog prog;
	struct sock_filter insns[ARRAY_SIZE(seccomp_filter)];
};

static struct seccomp_copy seccomp_copies[SECCOMP_COPIES_MAX];
static size_t seccomp_n_copies;

_Static_assert(ARRAY_SIZE(seccomp_filter) <= BPF_MAXINSNS, "the kernel takes no longer filter");
_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the filter loads the low half of arguments");

static void seccomp_copy_fill(struct seccomp_copy *c, uint64_t caps)
{
	memcpy(c->insns, seccomp_filter, sizeof(seccomp_filter));
	for (size_t i = 0; i < ARRAY_SIZE(seccomp_patches); i++)
		if (seccomp_patches[i].caps & caps)
			c->insns[seccomp_patches[i].at] =
				(struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	c->prog = (struct sock_fprog){ .len = ARRAY_SIZE(c->insns), .filter = c->insns };
	c->caps = caps;
}

const struct sock_fprog *isolate_seccomp_default(uint64_t caps)
{
	static const struct sock_fprog plain = {
		.len = ARRAY_SIZE(seccomp_plain_filter),
		.filter = (struct sock_filter *)(uintptr_t)seccomp_plain_filter,
	};
	uint64_t unlocking = 0;

	for (size_t i = 0; i < ARRAY_SIZE(seccomp_patches); i++)
		unlocking |= seccomp_patches[i].caps;
	caps &= unlocking;

	if (caps == 0)
		return &plain;
	for (size_t i = 0; i < seccomp_n_copies; i++)
		if (seccomp_copies[i].caps == caps)
			return &seccomp_copies[i].prog;
	if (seccomp_n_copies == SECCOMP_COPIES_MAX)
		return &plain;
	seccomp_copy_fill(&seccomp_copies[seccomp_n_copies], caps);
	return &seccomp_copies[seccomp_n_copies++].prog;
}
