/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/notes.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/text/str.h"

struct isolate_notes *isolate_notes_new(void)
{
	void *p = mmap(NULL, sizeof(struct isolate_notes), PROT_READ | PROT_WRITE,
		       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	return p == MAP_FAILED ? NULL : p;
}

struct isolate_notes *isolate_notes_free(struct isolate_notes *n)
{
	if (n)
		(void)munmap(n, sizeof(*n));
	return NULL;
}

void notes_add(struct isolate_notes *notes, enum isolate_note kind, const char *fmt, ...)
{
	va_list args;

	if (!notes)
		return;
	va_start(args, fmt);
	(void)vsnprintf(notes->text[kind], ISOLATE_NOTE_TEXT_MAX, fmt, args);
	va_end(args);
}

static bool notes_bit(const uint64_t *bits, size_t i)
{
	return bits[i / 64] >> i % 64 & 1;
}

/* "0-3,7"; what does not fit ends with "...". */
static void notes_list(char *to, size_t size, const uint64_t *bits, size_t n_words)
{
	size_t at = 0;

	to[0] = '\0';
	for (size_t i = 0; i < n_words * 64; i++) {
		size_t last = i;
		int n;

		if (!notes_bit(bits, i))
			continue;
		while (last + 1 < n_words * 64 && notes_bit(bits, last + 1))
			last++;
		if (size - at < 32) {
			(void)str_copy(to + at, size - at, "...");
			return;
		}
		n = str_printf(to + at, size - at, last > i ? "%s%zu-%zu" : "%s%zu", at ? "," : "",
			       i, last);
		at += n > 0 ? (size_t)n : 0;
		i = last;
	}
}

void notes_add_missing(struct isolate_notes *notes, enum isolate_note kind, const uint64_t *want,
		       const uint64_t *have, size_t n_words)
{
	char asked[96], here[96];
	bool all = true;

	for (size_t i = 0; i < n_words; i++)
		all = all && !(want[i] & ~have[i]);
	if (!notes || all)
		return;
	notes_list(asked, sizeof(asked), want, n_words);
	notes_list(here, sizeof(here), have, n_words);
	notes_add(notes, kind, "of %s only %s are here", asked, *here ? here : "none");
}
