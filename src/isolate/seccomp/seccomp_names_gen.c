/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Runs while building: writes the names and numbers of system calls as a sorted table in C (to be
 * included by seccomp_profile.c only), with a column for each ABI that this machine executes. Names
 * that only other machines have stand there too, without a number, so that a profile which names
 * them is not taken for one with a mistake.
 */

#include <errno.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 1024
#define NAME_SIZE 32 /* with its NUL */
#define NUMBERS 1024
#define ABIS_MAX 3

struct name {
	char text[NAME_SIZE];
	int numbers[ABIS_MAX];
	int carried; /* by a call of i386 that does many: 100 * carrier + its number there */
};

static struct name names[NAMES_MAX];
static size_t n_names;

struct abi {
	uint32_t arch; /* as libseccomp says */
	const char *word;
	uint32_t base; /* of its numbers */
	bool wide;     /* arguments have 64 bits */
};

/* The builder's own first, then what its kernel executes beside it. */
static const struct native {
	uint32_t arch;
	struct abi abis[ABIS_MAX];
} natives[] = {
	{ SCMP_ARCH_X86_64,
	  { { SCMP_ARCH_X86_64, "SCMP_ARCH_X86_64", 0, true },
	    { SCMP_ARCH_X32, "SCMP_ARCH_X32", 0x40000000, false },
	    { SCMP_ARCH_X86, "SCMP_ARCH_X86", 0, false } } },
	{ SCMP_ARCH_AARCH64,
	  { { SCMP_ARCH_AARCH64, "SCMP_ARCH_AARCH64", 0, true },
	    { SCMP_ARCH_ARM, "SCMP_ARCH_ARM", 0, false } } },
	{ SCMP_ARCH_RISCV64, { { SCMP_ARCH_RISCV64, "SCMP_ARCH_RISCV64", 0, true } } },
};

/* Where the numbers of other machines begin. */
static const struct {
	uint32_t arch, base;
} others[] = {
	{ SCMP_ARCH_X86_64, 0 },  { SCMP_ARCH_X86, 0 },       { SCMP_ARCH_X32, 0x40000000 },
	{ SCMP_ARCH_AARCH64, 0 }, { SCMP_ARCH_ARM, 0 },       { SCMP_ARCH_ARM, 0xf0000 },
	{ SCMP_ARCH_PPC64LE, 0 }, { SCMP_ARCH_PPC64, 0 },     { SCMP_ARCH_PPC, 0 },
	{ SCMP_ARCH_S390X, 0 },   { SCMP_ARCH_S390, 0 },      { SCMP_ARCH_RISCV64, 0 },
	{ SCMP_ARCH_MIPS, 4000 }, { SCMP_ARCH_MIPS64, 5000 }, { SCMP_ARCH_MIPS64N32, 6000 },
	{ SCMP_ARCH_PARISC, 0 },
};

/* Calls that are newer than the builder's libseccomp. Since 424 a number is the same on every
 * machine, but for the two. */
static const struct {
	const char *text;
	int number;
	bool x86_64_only;
} newer[] = {
	{ "uretprobe", 335, true },          { "uprobe", 336, true },
	{ "cachestat", 451, false },         { "fchmodat2", 452, false },
	{ "map_shadow_stack", 453, false },  { "futex_wake", 454, false },
	{ "futex_wait", 455, false },        { "futex_requeue", 456, false },
	{ "statmount", 457, false },         { "listmount", 458, false },
	{ "lsm_get_self_attr", 459, false }, { "lsm_set_self_attr", 460, false },
	{ "lsm_list_modules", 461, false },  { "mseal", 462, false },
	{ "setxattrat", 463, false },        { "getxattrat", 464, false },
	{ "listxattrat", 465, false },       { "removexattrat", 466, false },
	{ "open_tree_attr", 467, false },    { "file_getattr", 468, false },
	{ "file_setattr", 469, false },      { "listns", 470, false },
};

/* What socketcall() and ipc() of i386 do, by the number that is their first argument. */
enum { CARRIER_SOCKETCALL = 1, CARRIER_IPC };

static const struct {
	int carrier, call;
	const char *text;
} carried[] = {
	{ CARRIER_SOCKETCALL, 1, "socket" },
	{ CARRIER_SOCKETCALL, 2, "bind" },
	{ CARRIER_SOCKETCALL, 3, "connect" },
	{ CARRIER_SOCKETCALL, 4, "listen" },
	{ CARRIER_SOCKETCALL, 5, "accept" },
	{ CARRIER_SOCKETCALL, 6, "getsockname" },
	{ CARRIER_SOCKETCALL, 7, "getpeername" },
	{ CARRIER_SOCKETCALL, 8, "socketpair" },
	{ CARRIER_SOCKETCALL, 9, "send" },
	{ CARRIER_SOCKETCALL, 10, "recv" },
	{ CARRIER_SOCKETCALL, 11, "sendto" },
	{ CARRIER_SOCKETCALL, 12, "recvfrom" },
	{ CARRIER_SOCKETCALL, 13, "shutdown" },
	{ CARRIER_SOCKETCALL, 14, "setsockopt" },
	{ CARRIER_SOCKETCALL, 15, "getsockopt" },
	{ CARRIER_SOCKETCALL, 16, "sendmsg" },
	{ CARRIER_SOCKETCALL, 17, "recvmsg" },
	{ CARRIER_SOCKETCALL, 18, "accept4" },
	{ CARRIER_SOCKETCALL, 19, "recvmmsg" },
	{ CARRIER_SOCKETCALL, 20, "sendmmsg" },
	{ CARRIER_IPC, 1, "semop" },
	{ CARRIER_IPC, 2, "semget" },
	{ CARRIER_IPC, 3, "semctl" },
	{ CARRIER_IPC, 4, "semtimedop" },
	{ CARRIER_IPC, 11, "msgsnd" },
	{ CARRIER_IPC, 12, "msgrcv" },
	{ CARRIER_IPC, 13, "msgget" },
	{ CARRIER_IPC, 14, "msgctl" },
	{ CARRIER_IPC, 21, "shmat" },
	{ CARRIER_IPC, 22, "shmdt" },
	{ CARRIER_IPC, 23, "shmget" },
	{ CARRIER_IPC, 24, "shmctl" },
};

__attribute__((noreturn)) static void names_die(const char *what, const char *which)
{
	(void)fprintf(stderr, "seccomp_names_gen: %s %s\n", what, which);
	exit(EXIT_FAILURE);
}

static struct name *names_get(const char *text)
{
	struct name *n;

	for (size_t i = 0; i < n_names; i++)
		if (strcmp(names[i].text, text) == 0)
			return &names[i];
	if (n_names == NAMES_MAX || strlen(text) >= NAME_SIZE)
		names_die("no room for", text);
	n = &names[n_names++];
	(void)snprintf(n->text, sizeof(n->text), "%s", text);
	for (unsigned i = 0; i < ABIS_MAX; i++)
		n->numbers[i] = -1;
	return n;
}

/* column < 0: the name alone. */
static void names_read(uint32_t arch, uint32_t base, int column)
{
	for (int i = 0; i < NUMBERS; i++) {
		char *text = seccomp_syscall_resolve_num_arch(arch, (int)base + i);

		if (!text)
			continue;
		if (column < 0)
			(void)names_get(text);
		else
			names_get(text)->numbers[column] = i;
		free(text);
	}
}

static void names_read_newer(const struct native *native, unsigned n_abis)
{
	for (size_t i = 0; i < sizeof(newer) / sizeof(newer[0]); i++) {
		struct name *n = names_get(newer[i].text);

		for (unsigned a = 0; a < n_abis; a++)
			if (!newer[i].x86_64_only || native->abis[a].arch == SCMP_ARCH_X86_64)
				n->numbers[a] = newer[i].number;
	}
}

static void names_read_carried(void)
{
	for (size_t i = 0; i < sizeof(carried) / sizeof(carried[0]); i++)
		names_get(carried[i].text)->carried = 100 * carried[i].carrier + carried[i].call;
}

static int names_compare(const void *a, const void *b)
{
	const struct name *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static void names_write(FILE *to, const struct native *native, unsigned n_abis)
{
	(void)fprintf(to,
		      "/* Made by seccomp_names_gen.c. */\n"
		      "#define SECCOMP_ABIS %u\n#define SECCOMP_NUMBERS %d\n"
		      "struct seccomp_name {\n\tchar text[%d];\n"
		      "\tint16_t numbers[SECCOMP_ABIS];\n\tint16_t carried;\n};\n"
		      "static const struct seccomp_abi seccomp_abis[SECCOMP_ABIS] = {\n",
		      n_abis, NUMBERS, NAME_SIZE);
	for (unsigned a = 0; a < n_abis; a++)
		(void)fprintf(to, "\t{ \"%s\", 0x%08x, 0x%08x, %s },\n", native->abis[a].word,
			      /* Of x32 the kernel says that it is x86_64. */
			      native->abis[a].arch == SCMP_ARCH_X32 ? SCMP_ARCH_X86_64
								    : native->abis[a].arch,
			      native->abis[a].base, native->abis[a].wide ? "true" : "false");
	(void)fprintf(to, "};\n#define SECCOMP_ABI_WORDS");
	for (unsigned a = 0; a < n_abis; a++)
		(void)fprintf(to, " \"%s\",", native->abis[a].word);
	(void)fprintf(to, "\n\nstatic const struct seccomp_name seccomp_names[] = {\n");
	for (size_t i = 0; i < n_names; i++) {
		(void)fprintf(to, "\t{ \"%s\", {", names[i].text);
		for (unsigned a = 0; a < n_abis; a++)
			(void)fprintf(to, " %d,", names[i].numbers[a]);
		(void)fprintf(to, " }, %d },\n", names[i].carried);
	}
	(void)fprintf(to, "};\n");
}

static const struct native *names_native(void)
{
	for (size_t i = 0; i < sizeof(natives) / sizeof(natives[0]); i++)
		if (natives[i].arch == seccomp_arch_native())
			return &natives[i];
	names_die("unknown", "architecture");
}

int main(int argc, char **argv)
{
	const struct native *native = names_native();
	unsigned n_abis = 0;
	FILE *to;

	if (argc != 2)
		names_die("usage:", "seccomp_names_gen OUTPUT");
	while (n_abis < ABIS_MAX && native->abis[n_abis].word) {
		names_read(native->abis[n_abis].arch, native->abis[n_abis].base, (int)n_abis);
		n_abis++;
	}
	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		names_read(others[i].arch, others[i].base, -1);
	names_read_newer(native, n_abis);
	names_read_carried();
	qsort(names, n_names, sizeof(names[0]), names_compare);

	to = fopen(argv[1], "we");
	if (!to)
		names_die(argv[1], strerror(errno));
	names_write(to, native, n_abis);
	if (fclose(to) != 0)
		names_die(argv[1], strerror(errno));
	return EXIT_SUCCESS;
}
