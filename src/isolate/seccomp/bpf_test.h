/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_BPF_TEST_H
#define NACRE_ISOLATE_BPF_TEST_H

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdint.h>
#include <string.h>

/* Where the kernel would refuse the program. */
#define BPF_TEST_BROKEN (UINT32_MAX - 1)

/* The classic machine as far as our filters use it. */
static inline uint32_t bpf_test_run(const struct sock_fprog *prog, const struct seccomp_data *data)
{
	uint32_t a = 0;

	for (unsigned pc = 0; pc < prog->len; pc++) {
		const struct sock_filter *f = &prog->filter[pc];

		switch (f->code) {
		case BPF_LD | BPF_W | BPF_ABS:
			if (f->k > sizeof(*data) - sizeof(a) || f->k % sizeof(a) != 0)
				return BPF_TEST_BROKEN;
			memcpy(&a, (const char *)data + f->k, sizeof(a));
			break;
		case BPF_ALU | BPF_AND | BPF_K:
			a &= f->k;
			break;
		case BPF_JMP | BPF_JA:
			pc += f->k;
			break;
		case BPF_JMP | BPF_JEQ | BPF_K:
			pc += a == f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JGT | BPF_K:
			pc += a > f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JGE | BPF_K:
			pc += a >= f->k ? f->jt : f->jf;
			break;
		case BPF_JMP | BPF_JSET | BPF_K:
			pc += a & f->k ? f->jt : f->jf;
			break;
		case BPF_RET | BPF_K:
			return f->k;
		default:
			return BPF_TEST_BROKEN;
		}
	}
	return BPF_TEST_BROKEN;
}

#endif
