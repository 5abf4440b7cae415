/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/challenge.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "registry/header.h"

#define CHALLENGE_TOKEN                                                                            \
	"!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"

struct challenge_parse {
	const char *p;
	struct challenge *to;
	bool in_bearer; /* parameters go into the struct */
};

static void challenge_skip(struct challenge_parse *c, const char *set)
{
	c->p += strspn(c->p, set);
}

static bool challenge_quoted(struct challenge_parse *c, char *to, size_t size)
{
	size_t n = 0;

	for (c->p++; *c->p != '"'; c->p++) {
		if (*c->p == '\\')
			c->p++;
		if (!*c->p || n + 1 >= size)
			return false;
		to[n++] = *c->p;
	}
	c->p++;
	to[n] = '\0';
	return true;
}

static bool challenge_word(struct challenge_parse *c, char *to, size_t size)
{
	size_t n = strspn(c->p, CHALLENGE_TOKEN);

	if (n == 0 || n >= size)
		return false;
	memcpy(to, c->p, n);
	to[n] = '\0';
	c->p += n;
	return true;
}

static bool challenge_keep(struct challenge_parse *c, const char *name, const char *value)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} params[] = {
		{ "realm", c->to->realm, sizeof(c->to->realm) },
		{ "service", c->to->service, sizeof(c->to->service) },
		{ "scope", c->to->scope, sizeof(c->to->scope) },
	};

	for (size_t i = 0; c->in_bearer && i < ARRAY_SIZE(params); i++)
		if (header_is(name, params[i].name) && !*params[i].to)
			return str_copy(params[i].to, params[i].size, value) == 0;
	return true;
}

static void challenge_begin(struct challenge_parse *c, const char *scheme)
{
	if (header_is(scheme, "basic"))
		c->to->basic = true;
	c->in_bearer = header_is(scheme, "bearer") && !c->to->bearer;
	if (c->in_bearer)
		c->to->bearer = true;
}

/* One "scheme", or one "name=value" that belongs to the scheme before it. */
static bool challenge_piece(struct challenge_parse *c)
{
	char name[64], value[CHALLENGE_REALM_MAX + 1];

	if (!challenge_word(c, name, sizeof(name)))
		return false;
	/* What stands behind a scheme and is no parameter (token68) is no challenge of ours. */
	if (*c->p == ' ' || !*c->p || *c->p == ',') {
		challenge_skip(c, " \t");
		if (*c->p != '=') {
			challenge_begin(c, name);
			return true;
		}
	}
	if (*c->p != '=')
		return false;
	c->p++;
	challenge_skip(c, " \t");
	if (*c->p == '"' ? !challenge_quoted(c, value, sizeof(value))
			 : !challenge_word(c, value, sizeof(value)))
		return false;
	return str_is_clean(value) && str_is_utf8(value, strlen(value)) &&
	       challenge_keep(c, name, value);
}

int challenge_add(struct challenge *c, const char *value, struct error *err)
{
	struct challenge_parse parse = { .p = value, .to = c };

	for (;;) {
		challenge_skip(&parse, " \t,");
		if (!*parse.p)
			return 0;
		if (!challenge_piece(&parse))
			return error_refuse(err, ERROR_INVALID,
					    "WWW-Authenticate: \"%.200s\" cannot be read", value);
	}
}
