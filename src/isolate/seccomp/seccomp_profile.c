/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/seccomp/seccomp_profile.h"

#include <endian.h>
#include <errno.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/seccomp/seccomp_code.h"

/*
 * Theory of operation. Each name is looked up once, and gives a number for each ABI. For each ABI
 * there is a row of slots, one for each number: either an answer, or a chain of rules with
 * conditions. Neighbours with the same answer become a range, and the ranges of all ABIs that the
 * kernel calls by one name (x86_64 and x32, told apart by a bit of the number) one binary search.
 * libseccomp, which can do the same, takes 11 ms for the profile of podman; this takes 0.1 ms.
 */

struct seccomp_abi {
	const char *word;
	uint32_t audit; /* AUDIT_ARCH_* */
	uint32_t base;  /* of its numbers */
	bool wide;      /* arguments have 64 bits */
};

#include "isolate/seccomp_names.h"

_Static_assert(__BYTE_ORDER == __LITTLE_ENDIAN, "the filter loads halves of arguments");

#define PROFILE_INSNS_MAX BPF_MAXINSNS
/* Rules with conditions: each takes two instructions at least, so more could not become a filter.
 */
#define PROFILE_LINKS_MAX 2048
/* A range begins or ends at each number at most, and each ABI has two borders of its own. */
#define PROFILE_RANGES_MAX (SECCOMP_ABIS * (SECCOMP_NUMBERS + 4))
#define ERRNO_MAX 4095 /* of the kernel */

/* ---- words ---- */

static const struct {
	const char *word;
	uint32_t action;
	bool errno_allowed;
} profile_actions[] = {
	{ "SCMP_ACT_ALLOW", SECCOMP_RET_ALLOW, false },
	{ "SCMP_ACT_ERRNO", SECCOMP_RET_ERRNO, true },
	{ "SCMP_ACT_KILL", SECCOMP_RET_KILL_THREAD, false },
	{ "SCMP_ACT_KILL_PROCESS", SECCOMP_RET_KILL_PROCESS, false },
	{ "SCMP_ACT_KILL_THREAD", SECCOMP_RET_KILL_THREAD, false },
	{ "SCMP_ACT_LOG", SECCOMP_RET_LOG, false },
	{ "SCMP_ACT_NOTIFY", SECCOMP_RET_USER_NOTIF, false },
	{ "SCMP_ACT_TRACE", SECCOMP_RET_TRACE, true },
	{ "SCMP_ACT_TRAP", SECCOMP_RET_TRAP, false },
};

const char *const seccomp_profile_actions[] = {
	"SCMP_ACT_ALLOW",       "SCMP_ACT_ERRNO",
	"SCMP_ACT_KILL",        "SCMP_ACT_KILL_PROCESS",
	"SCMP_ACT_KILL_THREAD", "SCMP_ACT_LOG",
	"SCMP_ACT_NOTIFY",      "SCMP_ACT_TRACE",
	"SCMP_ACT_TRAP",        NULL,
};

_Static_assert(ARRAY_SIZE(seccomp_profile_actions) == ARRAY_SIZE(profile_actions) + 1,
	       "the two lists of actions go together");

enum profile_op { OP_EQ, OP_GE, OP_GT, OP_LE, OP_LT, OP_MASKED_EQ, OP_NE, OP_COUNT };

const char *const seccomp_profile_ops[] = {
	[OP_EQ] = "SCMP_CMP_EQ", [OP_GE] = "SCMP_CMP_GE", [OP_GT] = "SCMP_CMP_GT",
	[OP_LE] = "SCMP_CMP_LE", [OP_LT] = "SCMP_CMP_LT", [OP_MASKED_EQ] = "SCMP_CMP_MASKED_EQ",
	[OP_NE] = "SCMP_CMP_NE", [OP_COUNT] = NULL,
};

const char *const seccomp_profile_archs[] = { SECCOMP_ABI_WORDS NULL };

/* Those of the specification that no kernel of this machine executes stand here too. */
static const char *const profile_all_archs[] = {
	SECCOMP_ABI_WORDS "SCMP_ARCH_X86",
	"SCMP_ARCH_X86_64",
	"SCMP_ARCH_X32",
	"SCMP_ARCH_ARM",
	"SCMP_ARCH_AARCH64",
	"SCMP_ARCH_MIPS",
	"SCMP_ARCH_MIPS64",
	"SCMP_ARCH_MIPS64N32",
	"SCMP_ARCH_MIPSEL",
	"SCMP_ARCH_MIPSEL64",
	"SCMP_ARCH_MIPSEL64N32",
	"SCMP_ARCH_PPC",
	"SCMP_ARCH_PPC64",
	"SCMP_ARCH_PPC64LE",
	"SCMP_ARCH_S390",
	"SCMP_ARCH_S390X",
	"SCMP_ARCH_PARISC",
	"SCMP_ARCH_PARISC64",
	"SCMP_ARCH_RISCV64",
	"SCMP_ARCH_LOONGARCH64",
	"SCMP_ARCH_M68K",
	"SCMP_ARCH_SH",
	"SCMP_ARCH_SHEB",
};

static const struct {
	const char *word;
	unsigned flag;
	bool of_listener; /* means something with a listener only */
} profile_flags[] = {
	{ "SECCOMP_FILTER_FLAG_TSYNC", 0, false },
	{ "SECCOMP_FILTER_FLAG_LOG", SECCOMP_FILTER_FLAG_LOG, false },
	{ "SECCOMP_FILTER_FLAG_SPEC_ALLOW", SECCOMP_FILTER_FLAG_SPEC_ALLOW, false },
	{ "SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV", SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV, true },
};

const char *const seccomp_profile_flags[] = {
	"SECCOMP_FILTER_FLAG_TSYNC",
	"SECCOMP_FILTER_FLAG_LOG",
	"SECCOMP_FILTER_FLAG_SPEC_ALLOW",
	"SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV",
	NULL,
};

_Static_assert(ARRAY_SIZE(seccomp_profile_flags) == ARRAY_SIZE(profile_flags) + 1,
	       "the two lists of flags go together");

/* ---- what is being compiled ---- */

/* A rule with conditions, for one number of one ABI. */
struct profile_link {
	const struct seccomp_profile_arg *args;
	size_t n_args;
	struct seccomp_profile_arg own; /* where no rule of the profile has it */
	uint32_t answer;
	uint16_t before; /* the earlier link of the same number, or 0 */
};

struct profile_slot {
	uint32_t answer;
	bool answered; /* whatever the arguments are */
	uint16_t last; /* link, or 0 */
};

struct profile_range {
	uint32_t answer;
	uint16_t last; /* link, or 0 */
	bool wide;
};

/* Where an answer stands in the program already. */
struct profile_return {
	uint32_t answer;
	unsigned label;
};

struct profile_compiler {
	const struct seccomp_profile *profile;
	struct seccomp_filter *filter;
	uint32_t default_answer;
	bool listed[SECCOMP_ABIS];
	int highest[SECCOMP_ABIS]; /* of all numbers that are named, or -1 */
	struct profile_slot slots[SECCOMP_ABIS][SECCOMP_NUMBERS];
	struct profile_link links[PROFILE_LINKS_MAX];
	size_t n_links, n_names;

	uint32_t starts[PROFILE_RANGES_MAX];
	struct profile_range ranges[PROFILE_RANGES_MAX];
	unsigned n_ranges;
	struct profile_return returns[8];
	size_t n_returns;
	struct seccomp_code code;
	struct sock_filter insns[PROFILE_INSNS_MAX];
};

static void profile_compiler_freep(struct profile_compiler **c)
{
	free(*c);
}

void seccomp_filter_freep(struct seccomp_filter **filter)
{
	free(*filter);
}

/* ---- reading ---- */

static int profile_find(const char *const *words, size_t n, const char *word)
{
	for (size_t i = 0; i < n; i++)
		if (word && str_eq(words[i], word))
			return (int)i;
	return -ENOENT;
}

static int profile_read_action(uint32_t *ret, const char *field, const char *word, bool has_errno,
			       uint32_t number, struct error *err)
{
	int i = profile_find(seccomp_profile_actions, ARRAY_SIZE(profile_actions), word);

	if (i < 0)
		return error_field(err, ERROR_INVALID, field, "there is no action \"%.40s\"",
				   word ?: "");
	if (has_errno && !profile_actions[i].errno_allowed)
		return error_field(err, ERROR_INVALID, field, "%s has no errno", word);
	if (has_errno && number > ERRNO_MAX)
		return error_field(err, ERROR_INVALID, field, "the errno %u is above %d", number,
				   ERRNO_MAX);
	*ret = profile_actions[i].action;
	if (profile_actions[i].errno_allowed)
		*ret |= has_errno ? number : EPERM;
	return 0;
}

static int profile_read_archs(struct profile_compiler *c, struct error *err)
{
	const struct seccomp_profile *p = c->profile;
	char field[ERROR_FIELD_MAX];
	int found;

	if (p->n_archs > SECCOMP_PROFILE_WORDS_MAX)
		return error_field(err, ERROR_EXHAUSTED, "architectures", "more than %d",
				   SECCOMP_PROFILE_WORDS_MAX);
	c->listed[0] = true;
	for (size_t i = 0; i < p->n_archs; i++) {
		(void)str_printf(field, sizeof(field), "architectures[%zu]", i);
		if (profile_find(profile_all_archs, ARRAY_SIZE(profile_all_archs), p->archs[i]) < 0)
			return error_field(err, ERROR_INVALID, field,
					   "there is no architecture \"%.40s\"", p->archs[i] ?: "");
		found = profile_find(seccomp_profile_archs, SECCOMP_ABIS, p->archs[i]);
		if (found >= 0)
			c->listed[found] = true;
	}
	return 0;
}

static int profile_read_flags(struct profile_compiler *c, struct error *err)
{
	const struct seccomp_profile *p = c->profile;
	char field[ERROR_FIELD_MAX];
	int found;

	if (p->n_flags > SECCOMP_PROFILE_WORDS_MAX)
		return error_field(err, ERROR_EXHAUSTED, "flags", "more than %d",
				   SECCOMP_PROFILE_WORDS_MAX);
	for (size_t i = 0; i < p->n_flags; i++) {
		(void)str_printf(field, sizeof(field), "flags[%zu]", i);
		found = profile_find(seccomp_profile_flags, ARRAY_SIZE(profile_flags), p->flags[i]);
		if (found < 0)
			return error_field(err, ERROR_INVALID, field, "there is no flag \"%.40s\"",
					   p->flags[i] ?: "");
		if (c->filter->notify || !profile_flags[found].of_listener)
			c->filter->flags |= profile_flags[found].flag;
	}
	return 0;
}

static int profile_check_args(const struct seccomp_profile_rule *rule, size_t at, struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (rule->n_args > SECCOMP_PROFILE_ARGS_MAX) {
		(void)str_printf(field, sizeof(field), "syscalls[%zu].args", at);
		return error_field(err, ERROR_EXHAUSTED, field, "more than %d",
				   SECCOMP_PROFILE_ARGS_MAX);
	}
	for (size_t i = 0; i < rule->n_args; i++) {
		const struct seccomp_profile_arg *a = &rule->args[i];

		(void)str_printf(field, sizeof(field), "syscalls[%zu].args[%zu]", at, i);
		if (a->index > 5)
			return error_field(err, ERROR_INVALID, field, "there is no argument %u",
					   a->index);
		if (profile_find(seccomp_profile_ops, OP_COUNT, a->op) < 0)
			return error_field(err, ERROR_INVALID, field,
					   "there is no operator \"%.40s\"", a->op ?: "");
	}
	return 0;
}

static bool profile_arg_repeats(const struct seccomp_profile_rule *rule)
{
	unsigned seen = 0;

	for (size_t i = 0; i < rule->n_args; i++) {
		if (seen & 1U << rule->args[i].index)
			return true;
		seen |= 1U << rule->args[i].index;
	}
	return false;
}

/* ---- slots ---- */

static int profile_link_add(struct profile_compiler *c, struct profile_slot *slot,
			    const struct seccomp_profile_arg *args, size_t n_args, uint32_t answer,
			    struct error *err)
{
	/* Number 0 means that there is none. */
	if (c->n_links + 1 == PROFILE_LINKS_MAX)
		return error_field(err, ERROR_EXHAUSTED, "syscalls",
				   "more than %d rules with conditions", PROFILE_LINKS_MAX - 1);
	c->links[++c->n_links] = (struct profile_link){
		.args = args, .n_args = n_args, .answer = answer, .before = slot->last
	};
	slot->last = (uint16_t)c->n_links;
	return 0;
}

static int profile_slot_add(struct profile_compiler *c, struct profile_slot *slot,
			    const struct seccomp_profile_rule *rule, bool repeats, uint32_t answer,
			    struct error *err)
{
	int r = 0;

	if (rule->n_args == 0) {
		if (!slot->answered)
			slot->answer = answer;
		slot->answered = true;
		return 0;
	}
	if (!repeats)
		return profile_link_add(c, slot, rule->args, rule->n_args, answer, err);
	for (size_t i = 0; r == 0 && i < rule->n_args; i++)
		r = profile_link_add(c, slot, &rule->args[i], 1, answer, err);
	return r;
}

static const struct seccomp_name *profile_name_find(const char *text)
{
	size_t first = 0, last = ARRAY_SIZE(seccomp_names);

	while (first < last) {
		size_t middle = first + (last - first) / 2;
		int order = strcmp(text, seccomp_names[middle].text);

		if (order == 0)
			return &seccomp_names[middle];
		if (order < 0)
			last = middle;
		else
			first = middle + 1;
	}
	return NULL;
}

/* The carriers have the number of the call as their first argument; the upper half of what ipc() is
 * asked for is a version. See seccomp_names_gen.c. */
static int profile_add_carried(struct profile_compiler *c, unsigned abi,
			       const struct seccomp_name *name, uint32_t answer, struct error *err)
{
	bool ipc = name->carried >= 200;
	const struct seccomp_name *carrier = profile_name_find(ipc ? "ipc" : "socketcall");
	int number = carrier ? carrier->numbers[abi] : -1;
	struct profile_link *link;
	int r;

	if (number < 0)
		return 0;
	c->highest[abi] = MAX(c->highest[abi], number);
	if (answer == c->default_answer)
		return 0;
	r = profile_link_add(c, &c->slots[abi][number], NULL, 1, answer, err);
	if (r < 0)
		return r;
	link = &c->links[c->n_links];
	link->own = (struct seccomp_profile_arg){ .value = 0xffff,
						  .value_two = (uint64_t)name->carried % 100,
						  .op = "SCMP_CMP_MASKED_EQ" };
	if (!ipc)
		link->own.value = UINT32_MAX;
	link->args = &link->own;
	return 0;
}

static void profile_tell_unknown(struct seccomp_filter *f, const char *name)
{
	size_t len = strlen(f->unknown);

	f->n_unknown++;
	if (str_printf(f->unknown + len, sizeof(f->unknown) - len, "%s%s", len ? ", " : "", name) <
	    0)
		f->unknown[len] = '\0';
}

static int profile_add_name(struct profile_compiler *c, const struct seccomp_profile_rule *rule,
			    const char *text, uint32_t answer, struct error *err)
{
	const struct seccomp_name *name = profile_name_find(text);
	bool repeats = profile_arg_repeats(rule);
	int r = 0;

	if (!name) {
		profile_tell_unknown(c->filter, text);
		return 0;
	}
	for (unsigned abi = 0; r == 0 && abi < SECCOMP_ABIS; abi++) {
		int number = name->numbers[abi];

		if (!c->listed[abi])
			continue;
		c->highest[abi] = MAX(c->highest[abi], number);
		/* A rule that says what is done anyway says nothing. */
		if (number >= 0 && answer != c->default_answer)
			r = profile_slot_add(c, &c->slots[abi][number], rule, repeats, answer, err);
		if (r == 0 && name->carried && rule->n_args == 0)
			r = profile_add_carried(c, abi, name, answer, err);
	}
	return r;
}

/* The listener could tell nobody of the writes that it waits for. */
static int profile_check_notify(struct profile_compiler *c, const struct seccomp_profile_rule *rule,
				const char *field, struct error *err)
{
	if (str_empty(c->profile->listener_path))
		return error_field(err, ERROR_INVALID, field,
				   "SCMP_ACT_NOTIFY needs a listenerPath");
	for (size_t i = 0; i < rule->n_names; i++)
		if (rule->names[i] && str_eq(rule->names[i], "write"))
			return error_field(err, ERROR_INVALID, field,
					   "SCMP_ACT_NOTIFY is not possible for write");
	c->filter->notify = true;
	return 0;
}

static int profile_read_rule(struct profile_compiler *c, size_t at, struct error *err)
{
	const struct seccomp_profile_rule *rule = &c->profile->rules[at];
	char field[ERROR_FIELD_MAX];
	uint32_t answer;
	int r;

	(void)str_printf(field, sizeof(field), "syscalls[%zu].action", at);
	r = profile_read_action(&answer, field, rule->action, rule->has_errno, rule->errno_value,
				err);
	if (r == 0 && answer == SECCOMP_RET_USER_NOTIF)
		r = profile_check_notify(c, rule, field, err);
	if (r == 0)
		r = profile_check_args(rule, at, err);
	(void)str_printf(field, sizeof(field), "syscalls[%zu].names", at);
	if (r == 0 && rule->n_names == 0)
		return error_field(err, ERROR_INVALID, field, "there is none");
	c->n_names += rule->n_names;
	if (r == 0 && c->n_names > SECCOMP_PROFILE_NAMES_MAX)
		return error_field(err, ERROR_EXHAUSTED, field, "more than %d in all",
				   SECCOMP_PROFILE_NAMES_MAX);
	for (size_t i = 0; r == 0 && i < rule->n_names; i++)
		r = profile_add_name(c, rule, rule->names[i] ?: "", answer, err);
	return r;
}

static int profile_read(struct profile_compiler *c, struct error *err)
{
	const struct seccomp_profile *p = c->profile;
	int r;

	r = profile_read_action(&c->default_answer, "defaultAction", p->default_action,
				p->has_default_errno, p->default_errno, err);
	if (r < 0)
		return r;
	if (c->default_answer == SECCOMP_RET_USER_NOTIF)
		return error_field(err, ERROR_INVALID, "defaultAction",
				   "SCMP_ACT_NOTIFY cannot be the default");
	if (p->n_rules > SECCOMP_PROFILE_RULES_MAX)
		return error_field(err, ERROR_EXHAUSTED, "syscalls", "more than %d",
				   SECCOMP_PROFILE_RULES_MAX);
	r = profile_read_archs(c, err);
	for (size_t i = 0; r == 0 && i < p->n_rules; i++)
		r = profile_read_rule(c, i, err);
	return r < 0 ? r : profile_read_flags(c, err);
}

/* ---- ranges ---- */

static void profile_range_add(struct profile_compiler *c, uint32_t start,
			      struct profile_range range)
{
	const struct profile_range *last = c->n_ranges > 0 ? &c->ranges[c->n_ranges - 1] : NULL;

	if (last && last->last == 0 && range.last == 0 && last->answer == range.answer)
		return;
	c->starts[c->n_ranges] = start;
	c->ranges[c->n_ranges++] = range;
}

/* Of the numbers that no rule can name. */
static uint32_t profile_tail(const struct profile_compiler *c, unsigned abi)
{
	return c->default_answer == (SECCOMP_RET_ERRNO | EPERM) && c->highest[abi] >= 0
		       ? SECCOMP_RET_ERRNO | ENOSYS
		       : c->default_answer;
}

static void profile_ranges_of_abi(struct profile_compiler *c, unsigned abi)
{
	uint32_t base = seccomp_abis[abi].base;

	for (int i = 0; i <= c->highest[abi]; i++) {
		const struct profile_slot *slot = &c->slots[abi][i];

		profile_range_add(c, base + (uint32_t)i,
				  (struct profile_range){ .answer = slot->answered
									    ? slot->answer
									    : c->default_answer,
							  .last = slot->answered ? 0 : slot->last,
							  .wide = seccomp_abis[abi].wide });
	}
	profile_range_add(c, base + (uint32_t)(c->highest[abi] + 1),
			  (struct profile_range){ .answer = profile_tail(c, abi) });
}

/* All that the kernel calls by this name. */
static void profile_ranges(struct profile_compiler *c, uint32_t audit)
{
	c->n_ranges = 0;
	for (unsigned abi = 0; abi < SECCOMP_ABIS; abi++) {
		if (seccomp_abis[abi].audit != audit)
			continue;
		if (c->listed[abi]) {
			profile_ranges_of_abi(c, abi);
			continue;
		}
		profile_range_add(c, seccomp_abis[abi].base,
				  (struct profile_range){ .answer = SECCOMP_RET_KILL_PROCESS });
		/* -1 is what a tracer makes of a call that shall not happen: no call of any ABI. */
		profile_range_add(c, UINT32_MAX,
				  (struct profile_range){ .answer = c->default_answer });
	}
}

/* ---- code ---- */

static unsigned profile_answer(struct profile_compiler *c, uint32_t answer)
{
	struct profile_return *at = NULL;

	for (size_t i = 0; i < c->n_returns && !at; i++)
		if (c->returns[i].answer == answer)
			at = &c->returns[i];
	if (at && c->code.n - at->label < UINT8_MAX / 2)
		return at->label;
	if (!at && c->n_returns < ARRAY_SIZE(c->returns))
		at = &c->returns[c->n_returns++];
	if (!at)
		return seccomp_code_return(&c->code, answer);
	*at = (struct profile_return){ .answer = answer,
				       .label = seccomp_code_return(&c->code, answer) };
	return at->label;
}

/* Of an argument, with the bits of mask alone: is it `test` of the value? */
static unsigned profile_half(struct profile_compiler *c, unsigned offset, uint32_t mask,
			     uint16_t test, uint32_t value, unsigned yes, unsigned no)
{
	unsigned label = seccomp_code_branch(&c->code, test, value & mask, yes, no);

	if (mask != UINT32_MAX)
		label = seccomp_code_add(&c->code, BPF_ALU | BPF_AND | BPF_K, mask);
	(void)label;
	return seccomp_code_load(&c->code, offset);
}

static unsigned profile_condition(struct profile_compiler *c, const struct seccomp_profile_arg *a,
				  bool wide, unsigned yes, unsigned no)
{
	/* Less is not greater or equal, and so on: three tests make all. */
	static const struct {
		uint16_t low, high; /* what is asked of the halves; 0: equality of the upper one */
		bool turned;
	} tests[OP_COUNT] = {
		[OP_EQ] = { BPF_JEQ, 0, false },      [OP_MASKED_EQ] = { BPF_JEQ, 0, false },
		[OP_NE] = { BPF_JEQ, 0, true },       [OP_GT] = { BPF_JGT, BPF_JGT, false },
		[OP_LE] = { BPF_JGT, BPF_JGT, true }, [OP_GE] = { BPF_JGE, BPF_JGT, false },
		[OP_LT] = { BPF_JGE, BPF_JGT, true },
	};
	int op = profile_find(seccomp_profile_ops, OP_COUNT, a->op);
	unsigned low =
		(unsigned)(offsetof(struct seccomp_data, args) + a->index * sizeof(uint64_t));
	uint64_t mask = op == OP_MASKED_EQ ? a->value : UINT64_MAX;
	uint64_t value = op == OP_MASKED_EQ ? a->value_two : a->value;
	unsigned then = tests[op].turned ? no : yes, other = tests[op].turned ? yes : no, next;

	next = profile_half(c, low, (uint32_t)mask, tests[op].low, (uint32_t)value, then, other);
	if (!wide || mask >> 32 == 0)
		return next;
	if (!tests[op].high)
		return profile_half(c, low + 4, (uint32_t)(mask >> 32), BPF_JEQ,
				    (uint32_t)(value >> 32), next, other);
	next = seccomp_code_branch(&c->code, BPF_JEQ, (uint32_t)(value >> 32), next, other);
	return profile_half(c, low + 4, UINT32_MAX, tests[op].high, (uint32_t)(value >> 32), then,
			    next);
}

/* seccomp_code_search(): what is done for a range. */
static unsigned profile_leaf(void *userdata, unsigned at)
{
	struct profile_compiler *c = userdata;
	const struct profile_range *range = &c->ranges[at];
	unsigned label;

	if (range->last == 0)
		return profile_answer(c, range->answer);
	label = profile_answer(c, c->default_answer);
	for (unsigned i = range->last; i != 0; i = c->links[i].before) {
		const struct profile_link *link = &c->links[i];
		unsigned no = label;

		label = profile_answer(c, link->answer);
		for (size_t n = link->n_args; n-- > 0;)
			label = profile_condition(c, &link->args[n], range->wide, label, no);
	}
	return label;
}

static unsigned profile_search(struct profile_compiler *c, uint32_t audit)
{
	profile_ranges(c, audit);
	(void)seccomp_code_search(&c->code, c->starts, c->n_ranges, profile_leaf, c);
	return seccomp_code_load(&c->code, offsetof(struct seccomp_data, nr));
}

/* The last ABI that the kernel calls by this name stands for all of them. */
static bool profile_is_last_of(unsigned abi)
{
	for (unsigned i = abi + 1; i < SECCOMP_ABIS; i++)
		if (seccomp_abis[i].audit == seccomp_abis[abi].audit)
			return false;
	return true;
}

static bool profile_lists(const struct profile_compiler *c, uint32_t audit)
{
	for (unsigned abi = 0; abi < SECCOMP_ABIS; abi++)
		if (c->listed[abi] && seccomp_abis[abi].audit == audit)
			return true;
	return false;
}

static void profile_write(struct profile_compiler *c)
{
	unsigned searches[SECCOMP_ABIS] = { 0 }, next;

	/* The builder's own ABI comes to stand in front. */
	for (unsigned abi = SECCOMP_ABIS; abi-- > 0;)
		if (profile_is_last_of(abi) && profile_lists(c, seccomp_abis[abi].audit))
			searches[abi] = profile_search(c, seccomp_abis[abi].audit);
	next = profile_answer(c, SECCOMP_RET_KILL_PROCESS);
	for (unsigned abi = SECCOMP_ABIS; abi-- > 0;)
		if (searches[abi])
			next = seccomp_code_branch(&c->code, BPF_JEQ, seccomp_abis[abi].audit,
						   searches[abi], next);
	(void)seccomp_code_load(&c->code, offsetof(struct seccomp_data, arch));
}

int seccomp_profile_compile(struct seccomp_filter **ret, const struct seccomp_profile *profile,
			    struct error *err)
{
	_cleanup_(profile_compiler_freep) struct profile_compiler *c = calloc(1, sizeof(*c));
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *f = NULL;
	size_t size;
	int r;

	f = calloc(1, sizeof(*f) + sizeof(c->insns));
	if (!c || !f)
		return error_set(err, -ENOMEM, "compile a seccomp profile");
	c->profile = profile;
	c->filter = f;
	for (unsigned abi = 0; abi < SECCOMP_ABIS; abi++)
		c->highest[abi] = -1;
	r = profile_read(c, err);
	if (r < 0)
		return r;
	c->code = (struct seccomp_code)SECCOMP_CODE_INIT(c->insns, PROFILE_INSNS_MAX);
	profile_write(c);
	if (c->code.full)
		return error_field(err, ERROR_EXHAUSTED, "syscalls",
				   "the filter is longer than %d instructions", PROFILE_INSNS_MAX);
	size = c->code.n * sizeof(c->insns[0]);
	memcpy(f->insns, seccomp_code_start(&c->code), size);
	f->prog = (struct sock_fprog){ .len = (unsigned short)c->code.n, .filter = f->insns };
	*ret = TAKE_PTR(f);
	return 0;
}
