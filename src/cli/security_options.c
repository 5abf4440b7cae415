/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/security_options.h"

#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/alloc.h"

#define GROUP_MAX 2147483647U

/* Each value, and each part of one that commas divide: "NET_RAW,MKNOD" is podman's form. */
static char **options_words(const struct args *a, const char *name, size_t *ret_n)
{
	char **list = NULL, *word, *rest, *part;
	size_t pos = 0;

	for (word = args_next(a, name, &pos); word; word = args_next(a, name, &pos)) {
		rest = word;
		for (part = strsep(&rest, ","); part; part = strsep(&rest, ",")) {
			list = xrealloc(list, *ret_n + 1, sizeof(*list));
			list[(*ret_n)++] = part;
		}
	}
	return list;
}

static int options_groups(struct security_options *s, const struct args *a, struct error *err)
{
	const char *word;
	size_t pos = 0;

	for (word = args_next(a, "group-add", &pos); word; word = args_next(a, "group-add", &pos)) {
		uint64_t number;

		if (parse_u64(word, 0, GROUP_MAX, &number) < 0)
			return error_refuse(err, ERROR_INVALID,
					    "--group-add is the number of a group, not \"%s\"",
					    word);
		s->groups = xrealloc(s->groups, s->message.n_groups + 1, sizeof(*s->groups));
		s->groups[s->message.n_groups++] = (uint32_t)number;
	}
	s->message.groups = s->groups;
	return 0;
}

static int options_score(Aurae__Runtime__V0__Security *to, const char *word, struct error *err)
{
	bool negative = word && *word == '-';
	uint64_t number;

	if (!word)
		return 0;
	if (parse_u64(word + negative, 0, 1000, &number) < 0)
		return error_refuse(err, ERROR_INVALID,
				    "--oom-score-adj is a number from -1000 to 1000, not \"%s\"",
				    word);
	to->oom_score_adj = negative ? -(int32_t)number : (int32_t)number;
	return 0;
}

/* docker's words, and podman's. */
static int options_take_one(Aurae__Runtime__V0__Security *to, const char *word, struct error *err)
{
	static char allow[] = "allow", deny[] = "deny", unconfined[] = "unconfined";

	if (str_eq(word, "no-new-privileges") || str_eq(word, "no-new-privileges=true") ||
	    str_eq(word, "no-new-privileges:true"))
		to->privilege_escalation = deny;
	else if (str_eq(word, "no-new-privileges=false") || str_eq(word, "no-new-privileges:false"))
		to->privilege_escalation = allow;
	else if (str_eq(word, "seccomp=unconfined"))
		to->seccomp = unconfined;
	else
		return error_refuse(err, ERROR_INVALID,
				    "--security-opt is no-new-privileges[=false] or "
				    "seccomp=unconfined, not \"%s\"",
				    word);
	return 0;
}

static int options_take_all(Aurae__Runtime__V0__Security *to, const struct args *a,
			    struct error *err)
{
	const char *word;
	size_t pos = 0;
	int r = 0;

	for (word = args_next(a, "security-opt", &pos); word && r == 0;
	     word = args_next(a, "security-opt", &pos))
		r = options_take_one(to, word, err);
	return r;
}

int security_options_take(struct security_options *s, Aurae__Runtime__V0__Container *to,
			  const struct args *a, struct error *err)
{
	Aurae__Runtime__V0__Security *m = &s->message;
	char *profile = args_value(a, "security-profile");
	int r;

	aurae__runtime__v0__security__init(m);
	s->add = options_words(a, "cap-add", &m->n_cap_add);
	s->drop = options_words(a, "cap-drop", &m->n_cap_drop);
	m->cap_add = s->add;
	m->cap_drop = s->drop;
	if (profile)
		m->profile = profile;
	r = options_groups(s, a, err);
	if (r == 0)
		r = options_score(m, args_value(a, "oom-score-adj"), err);
	if (r == 0)
		r = options_take_all(m, a, err);
	if (r == 0 && (m->n_cap_add || m->n_cap_drop || m->n_groups || profile ||
		       m->oom_score_adj || *m->privilege_escalation || *m->seccomp))
		to->security = m;
	return r;
}

void security_options_done(struct security_options *s)
{
	free(s->add);
	free(s->drop);
	free(s->groups);
	*s = (struct security_options)SECURITY_OPTIONS_INIT;
}
