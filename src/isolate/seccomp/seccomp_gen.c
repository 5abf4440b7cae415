/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs while building: reads seccomp.rules and writes the container's seccomp filter as C (to be
 * included by seccomp.c only), so that the core needs no libseccomp; and once more with
 * confine.rules over it, for confine.c. The library is asked for nothing but the numbers of the
 * builder's own architecture.
 *
 * The filter is a binary search over the ranges of numbers that end alike but for a few, with the
 * endings as its leaves. Each ending stands once, and a single number that differs from both of its
 * neighbours is one comparison: what the kernel needs to take a filter, at the start of each
 * program, grows with its length. One filter serves all sets of capabilities: where an ending
 * depends on capabilities, the table of patches names the instruction, the capabilities that change
 * it (any of them), and what it becomes. Most containers have none of those capabilities; for them
 * there is a second, shorter filter (NAME_plain).
 */

#include <errno.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <seccomp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>

#include "isolate/seccomp/seccomp_code.h"

#define GEN_NUMBERS 1024
#define GEN_INSNS 2048
#define GEN_PATCHES 512
#define GEN_LEAVES 64
/* Numbers in a range that do not end as the others do: they are compared one behind the other. */
#define GEN_EXCEPTIONS_MAX 4

enum gen_ending {
	GEN_UNKNOWN,
	GEN_ALLOW,
	GEN_DENY,
	GEN_ABSENT,
	GEN_CLONE,
	GEN_PERSONALITY,
	GEN_SOCKET,
	GEN_IOCTL,
};

struct gen_rule {
	enum gen_ending ending;
	uint64_t caps; /* any of them makes it GEN_ALLOW */
	bool given;
};

struct gen_patch {
	unsigned label;
	uint64_t caps;
};

static struct gen_rule gen_rules[GEN_NUMBERS];
static struct sock_filter gen_insns[GEN_INSNS];
static struct seccomp_code gen_code = SECCOMP_CODE_INIT(gen_insns, GEN_INSNS);
static struct gen_patch gen_patches[GEN_PATCHES];
static unsigned gen_n_patches;

static const struct {
	const char *name;
	unsigned number;
} gen_caps[] = {
	{ "CAP_DAC_READ_SEARCH", CAP_DAC_READ_SEARCH },
	{ "CAP_LINUX_IMMUTABLE", CAP_LINUX_IMMUTABLE },
	{ "CAP_SYS_ADMIN", CAP_SYS_ADMIN },
	{ "CAP_SYS_BOOT", CAP_SYS_BOOT },
	{ "CAP_SYS_CHROOT", CAP_SYS_CHROOT },
	{ "CAP_SYS_MODULE", CAP_SYS_MODULE },
	{ "CAP_SYS_NICE", CAP_SYS_NICE },
	{ "CAP_SYS_PACCT", CAP_SYS_PACCT },
	{ "CAP_SYS_PTRACE", CAP_SYS_PTRACE },
	{ "CAP_SYS_RAWIO", CAP_SYS_RAWIO },
	{ "CAP_SYS_TIME", CAP_SYS_TIME },
	{ "CAP_SYS_TTY_CONFIG", CAP_SYS_TTY_CONFIG },
	{ "CAP_SYSLOG", CAP_SYSLOG },
	{ "CAP_BPF", CAP_BPF },
	{ "CAP_PERFMON", CAP_PERFMON },
};

static const struct {
	const char *name;
	enum gen_ending ending;
} gen_checks[] = {
	{ "clone", GEN_CLONE },
	{ "personality", GEN_PERSONALITY },
	{ "socket", GEN_SOCKET },
	{ "ioctl", GEN_IOCTL },
};

__attribute__((format(printf, 1, 2), noreturn)) static void gen_die(const char *fmt, ...)
{
	va_list ap;

	(void)fputs("seccomp_gen: ", stderr);
	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fputc('\n', stderr);
	exit(EXIT_FAILURE);
}

static uint64_t gen_cap_find(const char *name)
{
	for (size_t i = 0; i < sizeof(gen_caps) / sizeof(gen_caps[0]); i++)
		if (strcmp(gen_caps[i].name, name) == 0)
			return (uint64_t)1 << gen_caps[i].number;
	gen_die("no capability %s", name);
}

static uint64_t gen_caps_parse(char *list)
{
	uint64_t caps = 0;
	char *save = NULL;

	for (char *word = strtok_r(list, ",", &save); word; word = strtok_r(NULL, ",", &save))
		caps |= gen_cap_find(word);
	return caps;
}

static enum gen_ending gen_check_find(const char *name)
{
	for (size_t i = 0; i < sizeof(gen_checks) / sizeof(gen_checks[0]); i++)
		if (strcmp(gen_checks[i].name, name) == 0)
			return gen_checks[i].ending;
	gen_die("no check for %s", name);
}

/* The number, or a negative one where this architecture has no such call. */
static int gen_number(char *name)
{
	char *at = strchr(name, '@');
	int number;

	if (at)
		*at = '\0';
	number = seccomp_syscall_resolve_name(name);
	if (number == __NR_SCMP_ERROR && at)
		number = (int)strtol(at + 1, NULL, 10);
	else if (number == __NR_SCMP_ERROR)
		gen_die("no system call %s", name);
	if (number >= GEN_NUMBERS)
		gen_die("the number of %s is too high", name);
	return number;
}

static void gen_rule_add(char *name, enum gen_ending ending, uint64_t caps)
{
	int number = gen_number(name);

	if (number < 0)
		return;
	if (gen_rules[number].given)
		gen_die("%s stands twice", name);
	gen_rules[number] = (struct gen_rule){ .ending = ending, .caps = caps, .given = true };
}

static void gen_line(char *line)
{
	char *save = NULL;
	const char *verb = strtok_r(line, " \t\n", &save);
	enum gen_ending ending = GEN_DENY;
	uint64_t caps = 0;
	char *word;

	if (!verb || verb[0] == '#')
		return;
	word = strtok_r(NULL, " \t\n", &save);
	if (!word)
		gen_die("nothing behind %s", verb);
	if (strcmp(verb, "check") == 0) {
		char *cap = strtok_r(NULL, " \t\n", &save);

		gen_rule_add(word, gen_check_find(word), cap ? gen_caps_parse(cap) : 0);
		return;
	}
	if (strcmp(verb, "cap") == 0 || strcmp(verb, "absent") == 0) {
		ending = verb[0] == 'c' ? GEN_DENY : GEN_ABSENT;
		caps = gen_caps_parse(word);
		word = strtok_r(NULL, " \t\n", &save);
	} else if (strcmp(verb, "allow") == 0) {
		ending = GEN_ALLOW;
	} else if (strcmp(verb, "deny") != 0) {
		gen_die("what is %s?", verb);
	}
	for (; word; word = strtok_r(NULL, " \t\n", &save))
		gen_rule_add(word, ending, caps);
}

static unsigned gen_refuse(int number)
{
	return seccomp_code_return(&gen_code, SECCOMP_RET_ERRNO | (uint32_t)number);
}

static unsigned gen_permit(void)
{
	return seccomp_code_return(&gen_code, SECCOMP_RET_ALLOW);
}

/* The kernel looks at the low half only of each argument that is checked here. */
static unsigned gen_load_low(unsigned arg)
{
	return seccomp_code_load(&gen_code, (unsigned)(offsetof(struct seccomp_data, args) +
						       arg * sizeof(uint64_t)));
}

static unsigned gen_clone(void)
{
	/* All CLONE_NEW* but CLONE_NEWTIME, which clone() has no room for. */
	const uint32_t namespaces = 0x7E020000;
	unsigned yes = gen_permit(), no = gen_refuse(EPERM);

	(void)seccomp_code_branch(&gen_code, BPF_JSET, namespaces, no, yes);
	return gen_load_low(0);
}

static unsigned gen_socket(void)
{
	unsigned yes = gen_permit(), no = gen_refuse(EPERM), next;

	next = seccomp_code_branch(&gen_code, BPF_JEQ, AF_VSOCK, no, yes);
	(void)seccomp_code_branch(&gen_code, BPF_JEQ, AF_ALG, no, next);
	return gen_load_low(0);
}

/* An owner may change the project of its files, and so whose quota they count for
 * (CAP_LINUX_IMMUTABLE is what most other flags of files need). */
static unsigned gen_ioctl(void)
{
	static const uint32_t bad[] = { (uint32_t)FS_IOC_FSSETXATTR, (uint32_t)FS_IOC_SETFLAGS,
					(uint32_t)FS_IOC32_SETFLAGS };
	unsigned no = gen_refuse(EPERM), next = gen_permit();

	for (unsigned i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		next = seccomp_code_branch(&gen_code, BPF_JEQ, bad[i], no, next);
	return gen_load_low(1);
}

static unsigned gen_personality(void)
{
	static const uint32_t good[] = { PER_LINUX, PER_LINUX32, UNAME26, UNAME26 | PER_LINUX32,
					 UINT32_MAX };
	unsigned yes = gen_permit(), next = gen_refuse(EPERM);

	for (unsigned i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		next = seccomp_code_branch(&gen_code, BPF_JEQ, good[i], yes, next);
	return gen_load_low(0);
}

static unsigned gen_unknown(void)
{
	return gen_refuse(ENOSYS);
}

static unsigned gen_deny(void)
{
	return gen_refuse(EPERM);
}

static unsigned (*const gen_endings[])(void) = {
	[GEN_UNKNOWN] = gen_unknown, [GEN_ALLOW] = gen_permit, [GEN_DENY] = gen_deny,
	[GEN_ABSENT] = gen_unknown,  [GEN_CLONE] = gen_clone,  [GEN_PERSONALITY] = gen_personality,
	[GEN_SOCKET] = gen_socket,   [GEN_IOCTL] = gen_ioctl,
};

static bool gen_same(const struct gen_rule *a, const struct gen_rule *b)
{
	return a->ending == b->ending && a->caps == b->caps;
}

/* Where each range begins; the last one has no end. */
static uint32_t gen_starts[GEN_NUMBERS];
static unsigned gen_n_starts;

static struct {
	struct gen_rule rule;
	unsigned label;
} gen_leaves[GEN_LEAVES];
static unsigned gen_n_leaves;

static unsigned gen_leaf_of(const struct gen_rule *rule)
{
	unsigned label;

	for (unsigned i = 0; i < gen_n_leaves; i++)
		if (gen_same(&gen_leaves[i].rule, rule))
			return gen_leaves[i].label;
	if (gen_n_leaves == GEN_LEAVES || gen_n_patches == GEN_PATCHES)
		gen_die("too many endings");
	label = gen_endings[rule->ending]();
	gen_leaves[gen_n_leaves].rule = *rule;
	gen_leaves[gen_n_leaves++].label = label;
	if (rule->caps)
		gen_patches[gen_n_patches++] =
			(struct gen_patch){ .label = label, .caps = rule->caps };
	return label;
}

static unsigned gen_leaf(void *userdata, unsigned range)
{
	uint32_t first = gen_starts[range];
	uint32_t end = range + 1 < gen_n_starts ? gen_starts[range + 1] : GEN_NUMBERS;
	unsigned label = gen_leaf_of(&gen_rules[first]);

	(void)userdata;
	for (uint32_t i = end; i-- > first;)
		if (!gen_same(&gen_rules[i], &gen_rules[first]))
			label = seccomp_code_branch(&gen_code, BPF_JEQ, i,
						    gen_leaf_of(&gen_rules[i]), label);
	return label;
}

/* Where the range ends that begins at `first`. */
static unsigned gen_range_end(unsigned first)
{
	unsigned exceptions = 0, i = first + 1;

	for (; i < GEN_NUMBERS; i++) {
		if (gen_same(&gen_rules[first], &gen_rules[i]))
			continue;
		if (i + 1 == GEN_NUMBERS || !gen_same(&gen_rules[first], &gen_rules[i + 1]) ||
		    ++exceptions > GEN_EXCEPTIONS_MAX)
			break;
	}
	return i;
}

static void gen_filter(void)
{
	unsigned other, native;

	for (unsigned i = 0; i < GEN_NUMBERS; i = gen_range_end(i))
		gen_starts[gen_n_starts++] = i;

	/* x32 numbers are above all ranges and thereby unknown. */
	(void)seccomp_code_search(&gen_code, gen_starts, gen_n_starts, gen_leaf, NULL);
	native = seccomp_code_load(&gen_code, offsetof(struct seccomp_data, nr));
	other = gen_refuse(ENOSYS);
	(void)seccomp_code_branch(&gen_code, BPF_JEQ, seccomp_arch_native(), native, other);
	(void)seccomp_code_load(&gen_code, offsetof(struct seccomp_data, arch));
	if (gen_code.full)
		gen_die("too many instructions");
}

static void gen_write(FILE *to, const char *name)
{
	const struct sock_filter *start = seccomp_code_start(&gen_code);

	(void)fprintf(to,
		      "/* Made by seccomp_gen.c. */\n"
		      "static const struct sock_filter %s_filter[] = {\n",
		      name);
	for (unsigned i = 0; i < gen_code.n; i++)
		(void)fprintf(to, "\t{ 0x%02x, %u, %u, 0x%08x },\n", start[i].code, start[i].jt,
			      start[i].jf, start[i].k);
	(void)fprintf(to, "};\n");
	if (gen_n_patches == 0)
		return;
	(void)fprintf(to, "\nstatic const struct seccomp_patch %s_patches[] = {\n", name);
	for (unsigned i = 0; i < gen_n_patches; i++)
		(void)fprintf(to, "\t{ %u, 0x%llxULL },\n", gen_code.n - gen_patches[i].label,
			      (unsigned long long)gen_patches[i].caps);
	(void)fprintf(to, "};\n");
}

/* The same for who has no capability that unlocks anything. */
static void gen_write_plain(FILE *to, const char *name)
{
	char plain[64];

	for (unsigned i = 0; i < GEN_NUMBERS; i++)
		gen_rules[i].caps = 0;
	gen_code = (struct seccomp_code)SECCOMP_CODE_INIT(gen_insns, GEN_INSNS);
	gen_n_starts = gen_n_leaves = gen_n_patches = 0;
	gen_filter();
	(void)snprintf(plain, sizeof(plain), "%s_plain", name);
	gen_write(to, plain);
}

/* A name stands once in a file; a later file has the last word. */
static void gen_read(const char *path)
{
	char line[1024];
	FILE *from = fopen(path, "re");

	if (!from)
		gen_die("%s: %s", path, strerror(errno));
	for (unsigned i = 0; i < GEN_NUMBERS; i++)
		gen_rules[i].given = false;
	while (fgets(line, sizeof(line), from))
		gen_line(line);
	(void)fclose(from);
}

int main(int argc, char **argv)
{
	FILE *to;

	if (argc < 4)
		gen_die("usage: seccomp_gen NAME OUTPUT RULES...");
	for (int i = 3; i < argc; i++)
		gen_read(argv[i]);
	gen_filter();
	to = fopen(argv[2], "we");
	if (!to)
		gen_die("%s: %s", argv[2], strerror(errno));
	gen_write(to, argv[1]);
	if (gen_n_patches)
		gen_write_plain(to, argv[1]);
	if (fclose(to) != 0)
		gen_die("%s: %s", argv[2], strerror(errno));
	return EXIT_SUCCESS;
}
