/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A seccomp profile, a line for each part: "d ACTION [ERRNO]", "a ARCH", "f FLAG", "l PATH" and
 * "r ACTION ERRNO|- NAME,... [INDEX OP VALUE TWO]...". What it is compiled to is asked about calls
 * whose numbers and arguments come from the profile's own text: the answer must be one that the
 * profile has, for each, and the program must not run off its end.
 */

#include <linux/audit.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "fuzz.h"
#include "isolate/seccomp/bpf_test.h"
#include "isolate/seccomp/seccomp_profile.h"

#define RULES 64
#define NAMES 256
#define ARGS (SECCOMP_PROFILE_ARGS_MAX + 2)
#define WORDS (SECCOMP_PROFILE_WORDS_MAX + 2)

static struct seccomp_profile_rule rules[RULES];
static struct seccomp_profile_arg args[RULES][ARGS];
static const char *names[NAMES], *archs[WORDS], *flags[WORDS];
static size_t n_names;

static char *word(char **rest)
{
	return strtok_r(NULL, " ", rest);
}

static void read_rule(struct seccomp_profile *p, char *rest)
{
	struct seccomp_profile_rule *r = &rules[p->n_rules];
	struct seccomp_profile_arg *a = args[p->n_rules];
	char *list, *number, *save = NULL;

	if (p->n_rules == RULES)
		return;
	p->n_rules++;
	*r = (struct seccomp_profile_rule){ .action = word(&rest), .args = a };
	number = word(&rest);
	r->has_errno = number && *number != '-';
	r->errno_value = r->has_errno ? (uint32_t)strtoul(number, NULL, 0) : 0;
	r->names = &names[n_names];
	list = word(&rest);
	for (char *n = list ? strtok_r(list, ",", &save) : NULL; n && n_names < NAMES;
	     n = strtok_r(NULL, ",", &save), r->n_names++)
		names[n_names++] = n;
	for (number = word(&rest); number && r->n_args < ARGS; number = word(&rest)) {
		char *op = word(&rest), *value = word(&rest), *two = word(&rest);

		a[r->n_args++] = (struct seccomp_profile_arg){
			.index = (unsigned)strtoul(number, NULL, 0),
			.op = op,
			.value = value ? strtoull(value, NULL, 0) : 0,
			.value_two = two ? strtoull(two, NULL, 0) : 0,
		};
	}
}

static void read_line(struct seccomp_profile *p, char *line)
{
	char *rest = NULL, *verb = strtok_r(line, " ", &rest), *number;

	if (!verb)
		return;
	if (*verb == 'r') {
		read_rule(p, rest);
	} else if (*verb == 'd') {
		p->default_action = word(&rest);
		number = word(&rest);
		p->has_default_errno = number != NULL;
		p->default_errno = number ? (uint32_t)strtoul(number, NULL, 0) : 0;
	} else if (*verb == 'a' && p->n_archs < WORDS) {
		archs[p->n_archs++] = word(&rest);
	} else if (*verb == 'f' && p->n_flags < WORDS) {
		flags[p->n_flags++] = word(&rest);
	} else if (*verb == 'l') {
		p->listener_path = word(&rest);
	}
}

/* Each answer there is stands in the profile, but for the two that need not. */
static int is_possible(const struct seccomp_filter *f, uint32_t answer)
{
	if (answer == SECCOMP_RET_KILL_PROCESS || answer == (SECCOMP_RET_ERRNO | 38))
		return 1;
	if (answer == SECCOMP_RET_USER_NOTIF && !f->notify)
		return 0;
	for (unsigned i = 0; i < f->prog.len; i++)
		if (f->insns[i].code == (BPF_RET | BPF_K) && f->insns[i].k == answer)
			return 1;
	return 0;
}

static void ask(const struct seccomp_filter *f, const struct seccomp_profile *p)
{
	static const uint32_t calls[] = { AUDIT_ARCH_X86_64, AUDIT_ARCH_I386, AUDIT_ARCH_AARCH64,
					  0 };
	struct seccomp_data data = { 0 };

	for (size_t i = 0; i < ARRAY_SIZE(data.args); i++)
		data.args[i] = p->n_rules ? rules[i % p->n_rules].n_args * i : i;
	for (size_t i = 0; i < p->n_rules; i++)
		for (size_t j = 0; j < rules[i].n_args; j++)
			data.args[rules[i].args[j].index] = rules[i].args[j].value;
	for (size_t a = 0; a < ARRAY_SIZE(calls); a++)
		for (uint32_t n = 0; n < 1100; n++) {
			data.arch = calls[a];
			data.nr = (int)(n + (n % 3 == 0 ? 0x40000000U : 0));
			fuzz_need(is_possible(f, bpf_test_run(&f->prog, &data)));
		}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *f = NULL;
	struct seccomp_profile p = { .rules = rules, .archs = archs, .flags = flags };
	_cleanup_str_ char *text = NULL;
	struct fuzz_input in = { data, size };
	struct error err = ERROR_INIT;
	char *save = NULL;

	n_names = 0;
	text = fuzz_str(in);
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		read_line(&p, line);
	if (seccomp_profile_compile(&f, &p, &err) < 0) {
		fuzz_need(!f && err.code != 0 && err.field[0]);
		return 0;
	}
	fuzz_need(f->prog.len > 0 && f->prog.len <= BPF_MAXINSNS);
	ask(f, &p);
	return 0;
}
