/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/security.h"

#include <inttypes.h>
#include <strings.h>

#include "base/str.h"
#include "isolate/cap_name.h"
#include "isolate/plan.h"

#define GROUP_MAX 2147483647U /* as isolate/user.h */

static int security_blame(const char *field, const char *part, size_t i, const char *what,
			  const char *word, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.%s[%zu]", field, part, i);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" %s", word, what);
}

/* The set of so many names. */
static int caps_take(char *const *names, size_t n, const char *field, const char *part,
		     uint64_t *ret, struct error *err)
{
	*ret = 0;
	for (size_t i = 0; i < n; i++) {
		int number = cap_number(names[i]);

		if (strcasecmp(names[i], "ALL") == 0)
			*ret = UINT64_MAX;
		else if (number < 0)
			return security_blame(field, part, i, "is no capability", names[i], err);
		else
			*ret |= UINT64_C(1) << number;
	}
	return 0;
}

static int profile_take(struct container_security *to, const char *profile, const char *field,
			struct error *err)
{
	static const char baseline[] = "baseline", restricted[] = "restricted";
	char name[ERROR_FIELD_MAX];

	to->caps = isolate_caps_default;
	if (str_empty(profile))
		return 0;
	to->has_caps = true;
	to->may_gain = str_eq(profile, baseline);
	to->caps = to->may_gain ? cap_baseline : 0;
	if (to->may_gain || str_eq(profile, restricted))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.profile", field);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" is neither \"%s\" nor \"%s\"",
			   profile, baseline, restricted);
}

/* "ALL" that is dropped leaves what is added by name; one that is added is all but what is dropped
 * by name. */
static int caps_change(struct container_security *to, const Aurae__Runtime__V0__Security *from,
		       const char *field, struct error *err)
{
	uint64_t add = 0, drop = 0;
	int r = caps_take(from->cap_add, from->n_cap_add, field, "cap_add", &add, err);

	if (r == 0)
		r = caps_take(from->cap_drop, from->n_cap_drop, field, "cap_drop", &drop, err);
	if (r < 0 || (!add && !drop))
		return r;
	to->has_caps = true;
	if (drop == UINT64_MAX)
		to->caps = add;
	else
		to->caps = (to->caps | add) & ~drop;
	return 0;
}

static int escalation_take(struct container_security *to, const char *word, const char *field,
			   struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (str_empty(word))
		return 0;
	to->may_gain = str_eq(word, "allow");
	if (to->may_gain || str_eq(word, "deny"))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.privilege_escalation", field);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" is neither \"allow\" nor \"deny\"",
			   word);
}

static int seccomp_take(struct container_security *to, const char *word, const char *field,
			struct error *err)
{
	char name[ERROR_FIELD_MAX];

	to->unfiltered = str_eq(word, "unconfined");
	if (to->unfiltered || str_empty(word))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.seccomp", field);
	return error_field(err, ERROR_INVALID, name, "\"%.40s\" is not \"unconfined\"", word);
}

static int groups_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
		       const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.groups", field);
	if (from->n_groups > CONTAINER_GROUPS_MAX)
		return error_field(err, ERROR_INVALID, name, "%zu are more than the limit of %d",
				   from->n_groups, CONTAINER_GROUPS_MAX);
	for (size_t i = 0; i < from->n_groups; i++) {
		if (from->groups[i] > GROUP_MAX)
			return error_field(err, ERROR_INVALID, name, "%" PRIu32 " is no group",
					   from->groups[i]);
		to->groups[to->n_groups++] = from->groups[i];
	}
	to->groups_exact = from->groups_exact;
	return 0;
}

static int score_take(struct container_security *to, int32_t score, const char *field,
		      struct error *err)
{
	char name[ERROR_FIELD_MAX];

	to->oom_score_adj = score;
	if (score >= -1000 && score <= 1000)
		return 0;
	(void)str_printf(name, sizeof(name), "%s.oom_score_adj", field);
	return error_field(err, ERROR_INVALID, name, "%d is not from -1000 to 1000", (int)score);
}

int security_take(struct container_security *to, const Aurae__Runtime__V0__Security *from,
		  const char *field, struct error *err)
{
	int r;

	*to = (struct container_security){ .has_caps = false };
	if (!from)
		return 0;
	r = profile_take(to, from->profile, field, err);
	if (r == 0)
		r = caps_change(to, from, field, err);
	if (r == 0)
		r = escalation_take(to, from->privilege_escalation, field, err);
	if (r == 0)
		r = seccomp_take(to, from->seccomp, field, err);
	if (r == 0)
		r = groups_take(to, from, field, err);
	return r < 0 ? r : score_take(to, from->oom_score_adj, field, err);
}
