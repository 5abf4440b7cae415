/* SPDX-License-Identifier: Apache-2.0 */
#include "failmalloc.h"

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

/* AddressSanitizer's own, which stand behind weak names; a build that only counts has none. */
#define FROM_SANITIZER __attribute__((weak))
FROM_SANITIZER void *__interceptor_malloc(size_t size);
FROM_SANITIZER void *__interceptor_calloc(size_t n, size_t size);
FROM_SANITIZER void *__interceptor_realloc(void *p, size_t size);
FROM_SANITIZER char *__interceptor_strdup(const char *s);
FROM_SANITIZER int __lsan_do_recoverable_leak_check(void);
/* glibc's own. */
void *__libc_malloc(size_t size);
void *__libc_calloc(size_t n, size_t size);
void *__libc_realloc(void *p, size_t size);

struct range {
	uintptr_t begin, end;
};

/* Shared with the children of the process: the failure is the family's. */
struct family {
	atomic_bool armed, failed;
	atomic_ulong count;
	atomic_flag noting;
};

/* The call stacks seen, by their hashes, in the order in which they came. */
#define STACK_DEPTH 16
#define STACK_SLOTS (1U << 18)

struct stacks {
	uint64_t slots[STACK_SLOTS];
	unsigned long first[STACK_SLOTS / 2];
	uintptr_t by[STACK_SLOTS / 2]; /* the innermost place in the program */
	uint64_t hash[STACK_SLOTS / 2];
	size_t n;
};

static struct family *family;
static struct stacks *stacks;
static unsigned long wanted_test, fail_at;
/* Libraries that do not live without memory: libev ends the process by design, what OpenSSL 3.0
 * makes once for all its callers is half there afterwards, and jansson 2.14 writes through the
 * buffer of a text that it could not make (nacre-fetch, which alone reads with it, dies of that,
 * and its end is told). */
static const char *const spared_names[] = { "/libev.so", "/libcrypto.so", "/libjansson.so" };
static struct range program, spared[sizeof(spared_names) / sizeof(spared_names[0])];

static bool range_holds(const struct range *r, uintptr_t address)
{
	return address >= r->begin && address < r->end;
}

static bool is_spared(uintptr_t caller)
{
	for (size_t i = 0; i < sizeof(spared) / sizeof(spared[0]); i++)
		if (range_holds(&spared[i], caller))
			return true;
	return false;
}

static int on_object(struct dl_phdr_info *info, size_t size, void *userdata)
{
	struct range r = { .begin = UINTPTR_MAX };
	unsigned *n = userdata;

	for (size_t i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *h = &info->dlpi_phdr[i];

		if (h->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + h->p_vaddr < r.begin)
			r.begin = info->dlpi_addr + h->p_vaddr;
		if (info->dlpi_addr + h->p_vaddr + h->p_memsz > r.end)
			r.end = info->dlpi_addr + h->p_vaddr + h->p_memsz;
	}
	/* The program itself comes first. */
	if ((*n)++ == 0)
		program = r;
	for (size_t i = 0; i < sizeof(spared) / sizeof(spared[0]); i++)
		if (strstr(info->dlpi_name, spared_names[i]))
			spared[i] = r;
	return 0;
}

static void *failmalloc_map(size_t size)
{
	void *p = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		_exit(1);
	return p;
}

void failmalloc_begin(void)
{
	const char *text = getenv("NACRE_FAILMALLOC");
	void *frames[STACK_DEPTH];
	unsigned n = 0;
	char *end;

	if (!text)
		return;
	wanted_test = strtoul(text, &end, 10);
	end += *end == ':';
	fail_at = strtoul(end, NULL, 10);
	if (strcmp(end, "stacks") == 0)
		stacks = failmalloc_map(sizeof(*stacks));
	/* As each of our programs does: a peer that failed may have gone. */
	(void)signal(SIGPIPE, SIG_IGN);
	/* Its first call loads a library. */
	(void)backtrace(frames, STACK_DEPTH);
	(void)unsetenv("NACRE_FAILMALLOC");
	(void)dl_iterate_phdr(on_object, &n);
	family = failmalloc_map(sizeof(*family));
}

bool failmalloc_leaves_out(size_t number)
{
	if (!family)
		return false;
	atomic_store(&family->armed, number == wanted_test);
	return number != wanted_test;
}

void failmalloc_end(void)
{
	if (!family)
		return;
	atomic_store(&family->armed, false);
	printf("# allocations: %lu\n", atomic_load(&family->count));
	for (size_t i = 0; stacks && i < stacks->n; i++)
		printf("# stack %lu %#lx %#lx\n", stacks->first[i],
		       (unsigned long)(stacks->by[i] - program.begin),
		       (unsigned long)stacks->hash[i]);
}

bool failmalloc_has_failed(void)
{
	return family && atomic_load(&family->failed);
}

static void failmalloc_leave(void)
{
	bool leaked;

	atomic_store(&family->armed, false);
	(void)fflush(stdout);
	leaked = __lsan_do_recoverable_leak_check && __lsan_do_recoverable_leak_check() != 0;
	_exit(leaked ? FAILMALLOC_LEAKED : FAILMALLOC_UNMET);
}

void failmalloc_check_failed(void)
{
	if (failmalloc_has_failed())
		failmalloc_leave();
}

static void failmalloc_note_stack(unsigned long number, const void *caller)
{
	void *frames[STACK_DEPTH];
	int n = backtrace(frames, STACK_DEPTH);
	uint64_t hash = 1;
	size_t at;
	int i;

	for (i = 0; i < n; i++)
		hash = (hash ^ (uintptr_t)frames[i]) * UINT64_C(0x9e3779b97f4a7c15);
	hash |= 1;
	for (at = (hash >> 40) % STACK_SLOTS; stacks->slots[at]; at = (at + 1) % STACK_SLOTS)
		if (stacks->slots[at] == hash)
			return;
	if (stacks->n == STACK_SLOTS / 2)
		return;
	i = 0;
	stacks->slots[at] = hash;
	stacks->hash[stacks->n] = hash;
	stacks->first[stacks->n] = number;
	while (i < n && frames[i] != caller)
		i++;
	while (i < n && !range_holds(&program, (uintptr_t)frames[i]))
		i++;
	stacks->by[stacks->n++] = i < n ? (uintptr_t)frames[i] - 1 : program.begin;
}

/*
 * Notes where an allocation came from. Threads and children may come at the same moment, and a
 * child may have been forked from the middle of it: who finds it occupied goes on without.
 */
static void failmalloc_note(unsigned long number, const void *caller)
{
	if (atomic_flag_test_and_set(&family->noting))
		return;
	failmalloc_note_stack(number, caller);
	atomic_flag_clear(&family->noting);
}

/* "# failing" and the places in the program, the innermost first. */
static void failmalloc_tell(void)
{
	void *frames[STACK_DEPTH];
	int n = backtrace(frames, STACK_DEPTH);

	(void)dprintf(STDOUT_FILENO, "\n# failing");
	for (int i = 0; i < n; i++)
		if (range_holds(&program, (uintptr_t)frames[i]))
			(void)dprintf(STDOUT_FILENO, " %#lx",
				      (unsigned long)((uintptr_t)frames[i] - 1 - program.begin));
	(void)dprintf(STDOUT_FILENO, "\n");
}

static bool failmalloc_now(const void *caller)
{
	unsigned long number;

	if (!family || !atomic_load(&family->armed) || is_spared((uintptr_t)caller))
		return false;
	number = atomic_fetch_add(&family->count, 1) + 1;
	if (stacks)
		failmalloc_note(number, caller);
	if (number != fail_at)
		return false;
	atomic_store(&family->failed, true);
	failmalloc_tell();
	errno = ENOMEM;
	return true;
}

EXPORTED void *malloc(size_t size)
{
	if (failmalloc_now(__builtin_return_address(0)))
		return NULL;
	return __interceptor_malloc ? __interceptor_malloc(size) : __libc_malloc(size);
}

EXPORTED void *calloc(size_t n, size_t size)
{
	if (failmalloc_now(__builtin_return_address(0)))
		return NULL;
	return __interceptor_calloc ? __interceptor_calloc(n, size) : __libc_calloc(n, size);
}

EXPORTED void *realloc(void *p, size_t size)
{
	/* Without bytes it frees. */
	if (size > 0 && failmalloc_now(__builtin_return_address(0)))
		return NULL;
	return __interceptor_realloc ? __interceptor_realloc(p, size) : __libc_realloc(p, size);
}

EXPORTED char *strdup(const char *s)
{
	size_t n = strlen(s) + 1;
	char *copy;

	if (failmalloc_now(__builtin_return_address(0)))
		return NULL;
	if (__interceptor_strdup)
		return __interceptor_strdup(s);
	copy = __libc_malloc(n);
	return copy ? memcpy(copy, s, n) : NULL;
}

/* libc's assert() does not come by here. */
EXPORTED void abort(void)
{
	void (*real)(void) = NULL;

	if (failmalloc_has_failed() &&
	    range_holds(&program, (uintptr_t)__builtin_return_address(0)))
		failmalloc_leave();
	*(void **)&real = dlsym(RTLD_NEXT, "abort");
	real();
	_exit(1);
}
