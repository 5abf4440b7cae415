/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/spiffe.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"

#define SPIFFE_SCHEME "spiffe://"
#define SPIFFE_USERS "/user/"
#define SPIFFE_SCHEME_LEN (sizeof(SPIFFE_SCHEME) - 1)

static bool spiffe_is_lower(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '-' || c == '_';
}

static bool spiffe_is_segment_byte(char c)
{
	return spiffe_is_lower(c) || (c >= 'A' && c <= 'Z');
}

static bool spiffe_domain_fits(const char *domain, size_t len)
{
	if (len == 0 || len > SPIFFE_DOMAIN_MAX)
		return false;
	for (size_t i = 0; i < len; i++)
		if (!spiffe_is_lower(domain[i]))
			return false;
	return true;
}

static bool spiffe_segment_fits(const char *segment, size_t len)
{
	if (len == 0 || (segment[0] == '.' && (len == 1 || (len == 2 && segment[1] == '.'))))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!spiffe_is_segment_byte(segment[i]))
			return false;
	return true;
}

/* Each segment stands behind its slash; no byte at all is the path of a trust domain. */
static bool spiffe_path_fits(const char *path, size_t len)
{
	const char *p = path, *end = path + len;

	while (p < end) {
		const char *segment = p + 1;
		const char *slash = memchr(segment, '/', (size_t)(end - segment));

		p = slash ? slash : end;
		if (!spiffe_segment_fits(segment, (size_t)(p - segment)))
			return false;
	}
	return true;
}

int spiffe_parse(struct spiffe *ret, const char *text, size_t len, struct error *err)
{
	struct spiffe s;
	const char *slash;

	if (len > SPIFFE_MAX)
		return error_refuse(err, ERROR_INVALID, "a SPIFFE id has at most %d bytes",
				    SPIFFE_MAX);
	if (len < SPIFFE_SCHEME_LEN || memcmp(text, SPIFFE_SCHEME, SPIFFE_SCHEME_LEN) != 0)
		return error_refuse(err, ERROR_INVALID,
				    "a SPIFFE id begins with \"" SPIFFE_SCHEME "\"");
	s.domain = text + SPIFFE_SCHEME_LEN;
	len -= SPIFFE_SCHEME_LEN;
	slash = memchr(s.domain, '/', len);
	s.domain_len = slash ? (size_t)(slash - s.domain) : len;
	s.path = s.domain + s.domain_len;
	s.path_len = len - s.domain_len;
	if (!spiffe_domain_fits(s.domain, s.domain_len))
		return error_refuse(err, ERROR_INVALID,
				    "the trust domain of a SPIFFE id is 1 to %d of [a-z0-9._-]",
				    SPIFFE_DOMAIN_MAX);
	if (!spiffe_path_fits(s.path, s.path_len))
		return error_refuse(err, ERROR_INVALID,
				    "each segment of a SPIFFE id is one or more of "
				    "[A-Za-z0-9._-], and neither \".\" nor \"..\"");
	*ret = s;
	return 0;
}

bool spiffe_is_id(const char *text)
{
	struct spiffe s;

	return spiffe_parse(&s, text, strlen(text), NULL) == 0 && s.path_len > 0;
}

bool spiffe_domain_is_valid(const char *domain)
{
	return spiffe_domain_fits(domain, strlen(domain));
}

bool spiffe_same_domain(const char *a, const char *b)
{
	struct spiffe x, y;

	return spiffe_parse(&x, a, strlen(a), NULL) == 0 &&
	       spiffe_parse(&y, b, strlen(b), NULL) == 0 && x.domain_len == y.domain_len &&
	       memcmp(x.domain, y.domain, x.domain_len) == 0;
}

int spiffe_format(char ret[SPIFFE_SIZE], const char *domain, const char *node, const char *instance,
		  struct error *err)
{
	char text[SPIFFE_SIZE];
	int r;

	if (!spiffe_domain_is_valid(domain))
		return error_refuse(err, ERROR_INVALID,
				    "\"%.255s\" is no trust domain: 1 to %d of [a-z0-9._-]", domain,
				    SPIFFE_DOMAIN_MAX);
	if (!spiffe_segment_fits(node, strlen(node)) ||
	    (instance && !spiffe_segment_fits(instance, strlen(instance))))
		return error_refuse(err, ERROR_INVALID, "a name that is no segment of a SPIFFE id");
	r = str_printf(text, sizeof(text), SPIFFE_SCHEME "%s/node/%s%s%s", domain, node,
		       instance ? "/instance/" : "", instance ? instance : "");
	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "a SPIFFE id has at most %d bytes",
				    SPIFFE_MAX);
	memcpy(ret, text, (size_t)r + 1);
	return 0;
}

/* Also the name of a file: neither hidden nor an option. */
static bool spiffe_user_fits(const char *name, size_t len)
{
	return len > 0 && len <= SPIFFE_USER_MAX && spiffe_segment_fits(name, len) &&
	       name[0] != '.' && name[0] != '-';
}

bool spiffe_user_is_valid(const char *name)
{
	return spiffe_user_fits(name, strlen(name));
}

bool spiffe_is_user(const struct spiffe *s)
{
	return s->path_len > strlen(SPIFFE_USERS) &&
	       memcmp(s->path, SPIFFE_USERS, strlen(SPIFFE_USERS)) == 0 &&
	       spiffe_user_fits(s->path + strlen(SPIFFE_USERS), s->path_len - strlen(SPIFFE_USERS));
}

int spiffe_format_user(char ret[SPIFFE_SIZE], const char *domain, const char *name,
		       struct error *err)
{
	if (!spiffe_domain_is_valid(domain) || !spiffe_user_is_valid(name))
		return error_refuse(err, ERROR_INVALID,
				    "the name of a user is 1 to %d of [A-Za-z0-9._-], and begins "
				    "with a letter, a digit or '_'",
				    SPIFFE_USER_MAX);
	(void)str_printf(ret, SPIFFE_SIZE, SPIFFE_SCHEME "%s" SPIFFE_USERS "%s", domain, name);
	return 0;
}
