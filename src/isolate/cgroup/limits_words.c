/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/limits_words.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/limits.h"

#define LIMITS_NAME_SIZE 64

struct limits_names {
	char names[LIMITS_WORDS_MAX][LIMITS_NAME_SIZE];
	struct limit_file files[LIMITS_WORDS_MAX];
};

/* The lists of a cpuset are looked at by more than the kernel: all of it must be there. */
static bool limits_take_cpuset(struct isolate_limits *l, const struct limit_file *f)
{
	if (str_eq(f->file, "cpuset.cpus"))
		l->cpuset_cpus = f->value;
	else if (str_eq(f->file, "cpuset.mems"))
		l->cpuset_mems = f->value;
	else
		return false;
	return true;
}

static int limits_take(struct isolate_limits *l, struct limits_names *names, char *const *words,
		       struct error *err)
{
	for (size_t i = 0; words && words[i]; i++) {
		struct limit_file *f = &names->files[l->n_unified];
		const char *equals = strchr(words[i], '=');
		size_t len = equals ? (size_t)(equals - words[i]) : 0;

		if (i == LIMITS_WORDS_MAX)
			return error_field(err, ERROR_INVALID, "limits", "more than %d",
					   LIMITS_WORDS_MAX);
		if (len == 0 || len >= LIMITS_NAME_SIZE)
			return error_field(err, ERROR_INVALID, "limits",
					   "\"%.80s\" is not FILE=VALUE", words[i]);
		memcpy(names->names[i], words[i], len);
		names->names[i][len] = '\0';
		*f = (struct limit_file){ names->names[i], equals + 1 };
		if (!limits_take_cpuset(l, f))
			l->n_unified++;
	}
	l->unified = names->files;
	return 0;
}

int limits_words_check(char *const *words, struct error *err)
{
	struct isolate_limits limits = { .n_unified = 0 };
	struct limits_names names;
	int r = limits_take(&limits, &names, words, err);

	return r < 0 ? r : limits_check(&limits, err);
}

int limits_words_apply(int cgroup_fd, char *const *words, struct error *err)
{
	struct isolate_limits limits = { .n_unified = 0 };
	struct limits_names names;
	int r;

	if (!words || !words[0])
		return 0;
	r = limits_take(&limits, &names, words, err);
	return r < 0 ? r : limits_apply(cgroup_fd, &limits, err);
}
