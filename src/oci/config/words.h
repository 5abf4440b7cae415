/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_WORDS_H
#define NACRE_OCI_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/* The words of the specification that stand for numbers of the kernel. */

struct word {
	const char *name; /* NULL ends a list */
	uint64_t value;
};

extern const struct word words_rlimits[];     /* "RLIMIT_AS": its number */
extern const struct word words_policies[];    /* "SCHED_OTHER" */
extern const struct word words_sched_flags[]; /* "SCHED_FLAG_RESET_ON_FORK" */
extern const struct word words_io_classes[];  /* "IOPRIO_CLASS_BE" */
extern const struct word words_mem_modes[];   /* "MPOL_BIND" */
extern const struct word words_mem_flags[];   /* "MPOL_F_STATIC_NODES" */
extern const struct word words_domains[];     /* "LINUX32" */
extern const struct word words_propagation[]; /* "rslave": MS_SLAVE | MS_REC */

/* -ENOENT where the list has no such word. */
int word_find(const struct word *list, const char *name, uint64_t *ret);
/* ERROR_INVALID with the field's path. */
int word_need(const struct word *list, const char *name, const char *field, uint64_t *ret,
	      struct error *err);
/* The values of several words, or'ed. */
int word_flags(const struct word *list, const char *const *names, size_t n, const char *field,
	       uint64_t *ret, struct error *err);
/* base/text/signal_name.h. ERROR_INVALID. */
int word_signal(const char *name, int *ret, struct error *err);

/* "0-3,7" as bits. ERROR_INVALID for a wrong form, ERROR_EXHAUSTED past n_words * 64. */
int word_bits(const char *list, const char *field, uint64_t *ret, size_t n_words,
	      struct error *err);

#endif
