/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/seccomp/seccomp_code.h"

#include <linux/seccomp.h>

/* A conditional jump says how far in one byte; and a hop in between moves the other target on by
 * one. */
#define CODE_NEAR (UINT8_MAX - 1)

struct sock_filter *seccomp_code_start(const struct seccomp_code *c)
{
	return c->room + (c->max - c->n);
}

static unsigned code_put(struct seccomp_code *c, struct sock_filter insn)
{
	if (c->n == c->max) {
		c->full = true;
		return c->n;
	}
	c->n++;
	*seccomp_code_start(c) = insn;
	return c->n;
}

unsigned seccomp_code_add(struct seccomp_code *c, uint16_t code, uint32_t k)
{
	return code_put(c, (struct sock_filter){ .code = code, .k = k });
}

unsigned seccomp_code_return(struct seccomp_code *c, uint32_t action)
{
	return seccomp_code_add(c, BPF_RET | BPF_K, action);
}

unsigned seccomp_code_load(struct seccomp_code *c, unsigned offset)
{
	return seccomp_code_add(c, BPF_LD | BPF_W | BPF_ABS, offset);
}

static unsigned code_hop(struct seccomp_code *c, unsigned label)
{
	return c->n - label > CODE_NEAR ? seccomp_code_add(c, BPF_JMP | BPF_JA, c->n - label)
					: label;
}

unsigned seccomp_code_branch(struct seccomp_code *c, uint16_t test, uint32_t k, unsigned yes,
			     unsigned no)
{
	no = code_hop(c, no);
	yes = code_hop(c, yes);
	return code_put(c, (struct sock_filter){ .code = (uint16_t)(BPF_JMP | test | BPF_K),
						 .jt = (uint8_t)(c->n - yes),
						 .jf = (uint8_t)(c->n - no),
						 .k = k });
}

unsigned seccomp_code_goto(struct seccomp_code *c, unsigned label)
{
	return c->n == label ? label : seccomp_code_add(c, BPF_JMP | BPF_JA, c->n - label);
}

struct code_search {
	const uint32_t *starts;
	unsigned (*leaf)(void *userdata, unsigned range);
	void *userdata;
};

/* The ranges [first, last). As deep as their number has bits. */
static unsigned code_search(struct seccomp_code *c, const struct code_search *s, unsigned first,
			    unsigned last)
{
	unsigned middle = first + (last - first) / 2;
	unsigned low, high;

	if (last - first == 1)
		return s->leaf(s->userdata, first);
	high = code_search(c, s, middle, last);
	low = code_search(c, s, first, middle);
	return seccomp_code_branch(c, BPF_JGE, s->starts[middle], high, low);
}

unsigned seccomp_code_search(struct seccomp_code *c, const uint32_t *starts, unsigned n,
			     unsigned (*leaf)(void *userdata, unsigned range), void *userdata)
{
	const struct code_search s = { .starts = starts, .leaf = leaf, .userdata = userdata };

	return seccomp_code_goto(c, code_search(c, &s, 0, n));
}
