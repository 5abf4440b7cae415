/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_SECCOMP_PROFILE_H
#define NACRE_ISOLATE_SECCOMP_PROFILE_H

#include <linux/filter.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/macros.h"

/*
 * A user's seccomp profile in the form of the OCI runtime specification (linux.seccomp), compiled
 * into a filter of the kernel. The words (actions, operators, architectures, flags) are those of
 * the specification; what it leaves open is answered as the runtimes of the field do:
 *
 * - The builder's own architecture is always filtered; one that this machine cannot execute is
 *   passed over. A call by an ABI that is not listed kills the process.
 * - A name that does not exist on an ABI is passed over there. One that exists nowhere is told in
 *   `unknown`.
 * - A rule without conditions wins over those with conditions of the same call, and among rules of
 *   one kind the earlier wins. Where no rule matches the default action is taken.
 * - The conditions of a rule must all hold; but where two of them look at the same argument, each
 *   condition of the rule is a rule of its own, so that one is enough.
 * - Arguments are compared as unsigned 64-bit numbers; by a 32-bit ABI the lower halves are.
 * - SCMP_CMP_MASKED_EQ: (argument & value) == (value_two & value).
 * - Where the default is to refuse with EPERM, a number above all that the profile names on that
 *   ABI is refused with ENOSYS, so that libc falls back to what it knows.
 * - On i386 an unconditional rule for a call which socketcall() and ipc() carry too is one for
 *   that way as well. A conditional one cannot be: the arguments are in memory there.
 */

#define SECCOMP_PROFILE_RULES_MAX 2048
#define SECCOMP_PROFILE_NAMES_MAX 16384 /* of all rules */
#define SECCOMP_PROFILE_ARGS_MAX 32     /* of one rule */
#define SECCOMP_PROFILE_WORDS_MAX 64    /* architectures, or flags */
#define SECCOMP_PROFILE_UNKNOWN_MAX 256 /* bytes of text */

struct seccomp_profile_arg {
	unsigned index; /* 0 to 5 */
	uint64_t value, value_two;
	const char *op; /* "SCMP_CMP_EQ", ... */
};

struct seccomp_profile_rule {
	const char *const *names;
	size_t n_names;
	const char *action;   /* "SCMP_ACT_ALLOW", ... */
	bool has_errno;       /* else EPERM */
	uint32_t errno_value; /* for SCMP_ACT_ERRNO and SCMP_ACT_TRACE only; at most 4095 */
	const struct seccomp_profile_arg *args;
	size_t n_args;
};

struct seccomp_profile {
	const char *default_action;
	bool has_default_errno;
	uint32_t default_errno;
	const char *const *archs; /* "SCMP_ARCH_X86_64", ... */
	size_t n_archs;
	const char *const *flags; /* "SECCOMP_FILTER_FLAG_LOG", ... */
	size_t n_flags;
	/* The socket that gets the listener; must be there where a rule says SCMP_ACT_NOTIFY. What
	 * is sent to it is the caller's affair. */
	const char *listener_path;
	const struct seccomp_profile_rule *rules;
	size_t n_rules;
};

struct seccomp_filter {
	struct sock_fprog prog; /* points into this struct */
	unsigned flags;   /* SECCOMP_FILTER_FLAG_*, without NEW_LISTENER. Never TSYNC: the process
			     that   gets it has one thread */
	bool notify;      /* needs a listener */
	size_t n_unknown; /* names that exist nowhere, */
	char unknown[SECCOMP_PROFILE_UNKNOWN_MAX]; /* and as many of them as there is room for */
	struct sock_filter insns[];
};

/*
 * Pure. ERROR_INVALID with the member of linux.seccomp that is to blame ("syscalls[3].action"),
 * ERROR_EXHAUSTED where a limit from above or the kernel's on the length of filters is passed, or
 * -ENOMEM. The caller frees the result with seccomp_filter_freep() or free().
 */
int seccomp_profile_compile(struct seccomp_filter **ret, const struct seccomp_profile *profile,
			    struct error *err) _must_check_;

void seccomp_filter_freep(struct seccomp_filter **filter);

/* The words that are understood, each list ends with NULL: for `features`. */
extern const char *const seccomp_profile_actions[];
extern const char *const seccomp_profile_ops[];
extern const char *const seccomp_profile_archs[]; /* those that this build can execute */
extern const char *const seccomp_profile_flags[];

#endif
