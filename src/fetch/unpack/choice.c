/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/choice.h"

#include <errno.h>

#include "base/text/str.h"
#include "wire/name/reference.h"

static bool choice_is_tag(const char *text)
{
	return *text && !strpbrk(text, ":/@");
}

static bool choice_is(const char *said, const char *ref)
{
	char a[REFERENCE_SIZE], b[REFERENCE_SIZE];

	if (str_eq(said, ref))
		return true;
	return !choice_is_tag(said) && reference_normalise(a, said, NULL) == 0 &&
	       reference_normalise(b, ref, NULL) == 0 && str_eq(a, b);
}

static void choice_offer(struct choice *c, const char *said)
{
	size_t len = strlen(c->offers);
	int n = str_printf(c->offers + len, sizeof(c->offers) - len, "%s%s", len ? ", " : "", said);

	/* No half of a name. */
	if (n < 0)
		c->offers[len] = '\0';
}

bool choice_takes(struct choice *c, char *const *said)
{
	if (!*c->ref)
		return true;
	for (char *const *text = said; text && *text; text++)
		if (choice_is(*text, c->ref))
			return true;
	for (char *const *text = said; text && *text; text++)
		choice_offer(c, *text);
	return false;
}

int choice_fail(const struct choice *c, struct error *err)
{
	if (!*c->offers)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "the archive has no image \"%.200s\", and none with a name",
				    c->ref);
	return error_refuse(err, ERROR_NOT_FOUND,
			    "the archive has no image \"%.200s\"; it has: %.200s", c->ref,
			    c->offers);
}

int choice_names(const struct choice *c, char *const *said, bool may_be_tag, char ***ret,
		 struct error *err)
{
	for (; said && *said; said++) {
		char text[REFERENCE_SIZE], full[REFERENCE_SIZE];
		struct reference ref;
		bool tag = may_be_tag && choice_is_tag(*said);

		if ((tag && !*c->repository) ||
		    str_printf(text, sizeof(text), "%s%s%s", tag ? c->repository : "",
			       tag ? ":" : "", *said) < 0 ||
		    reference_parse(&ref, text, NULL) < 0 || *ref.digest)
			continue;
		reference_format(&ref, full);
		if (strv_add(ret, full) < 0)
			return error_set(err, -ENOMEM, "read the names");
	}
	return 0;
}
