/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_NOTES_H
#define NACRE_ISOLATE_NOTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * The members of a plan that the kernel took only in part: it set another value than the plan's,
 * and the program runs with that one. The notes are memory that the spawner shares with the child,
 * so that a step can say so and go on. They are complete when the program has been executed, or
 * when the child has reached ISOLATE_POINT_READY.
 */
enum isolate_note {
	ISOLATE_NOTE_NONE,
	ISOLATE_NOTE_OOM_SCORE,
	ISOLATE_NOTE_CPUS,
	ISOLATE_NOTE_MEMPOLICY,
	ISOLATE_NOTE_COUNT
};

#define ISOLATE_NOTE_TEXT_MAX 240

struct isolate_notes {
	/* "" where there is nothing to say. */
	char text[ISOLATE_NOTE_COUNT][ISOLATE_NOTE_TEXT_MAX];
};

/* NULL where there is no memory; it is freed by isolate_notes_free(), which takes NULL. */
struct isolate_notes *isolate_notes_new(void);
struct isolate_notes *isolate_notes_free(struct isolate_notes *n);

/* Private to this area. Does nothing where notes is NULL. A text that is too long is cut. */
void notes_add(struct isolate_notes *notes, enum isolate_note kind, const char *fmt, ...)
	_printf_(3, 4);
/* Notes what of the numbers in `want` is not in `have`: "of 0-3,7 only 0-1 are here". */
void notes_add_missing(struct isolate_notes *notes, enum isolate_note kind, const uint64_t *want,
		       const uint64_t *have, size_t n_words);

#endif
