/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/name/reference.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"

#define LOWER "abcdefghijklmnopqrstuvwxyz"
#define UPPER "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define DIGITS "0123456789"

static bool reference_in(char c, const char *set)
{
	return c && strchr(set, c) != NULL;
}

/* host: labels of letters, digits and inner hyphens, or an IPv6 address in brackets; then a port.
 */
static bool reference_is_host(const char *s, size_t len)
{
	const char *end = s + len;
	const char *p = s;

	if (len > 2 && *s == '[') {
		p = s + 1 + strspn(s + 1, DIGITS "abcdefABCDEF:");
		if (p == s + 1 || p >= end || *p != ']')
			return false;
		p++;
	} else {
		for (;;) {
			size_t n = strspn(p, LOWER UPPER DIGITS "-");

			if (n == 0 || *p == '-' || p[n - 1] == '-')
				return false;
			p += n;
			if (p >= end || *p != '.')
				break;
			p++;
		}
	}
	if (p < end && *p == ':') {
		size_t n = strspn(p + 1, DIGITS);

		if (n == 0 || n > 5)
			return false;
		p += 1 + n;
	}
	return p == end;
}

/* component: runs of [a-z0-9] with one '.', one or two '_', or any number of '-' between them. */
static bool reference_is_component(const char *s, size_t len)
{
	const char *end = s + len;

	for (;;) {
		size_t n = strspn(s, LOWER DIGITS);
		size_t gap;

		if (n == 0 || s + n > end)
			return false;
		s += n;
		if (s == end)
			return true;
		gap = *s == '.' ? 1 : strspn(s, *s == '_' ? "_" : "-");
		if (gap == 0 || (*s == '_' && gap > 2))
			return false;
		s += gap;
	}
}

static bool reference_is_tag(const char *s)
{
	size_t len = strlen(s);

	return len >= 1 && len <= REFERENCE_TAG_MAX && !reference_in(*s, ".-") &&
	       strspn(s, LOWER UPPER DIGITS "_.-") == len;
}

static bool reference_names_host(const char *s, size_t len)
{
	if (len == 9 && strncmp(s, "localhost", 9) == 0)
		return true;
	for (size_t i = 0; i < len; i++)
		if (reference_in(s[i], ".:[" UPPER))
			return true;
	return false;
}

static int reference_check_path(const char *path, const char *text, struct error *err)
{
	for (;;) {
		size_t len = strcspn(path, "/");

		if (!reference_is_component(path, len))
			return error_refuse(
				err, ERROR_INVALID,
				"image reference \"%.80s\": \"%.*s\" is no component of a name "
				"(lower-case letters and digits, with . _ - in between)",
				text, (int)MIN(len, (size_t)64), path);
		if (!path[len])
			return 0;
		path += len + 1;
	}
}

static int reference_parse_name(struct reference *ref, const char *name, const char *text,
				struct error *err)
{
	const char *slash = strchr(name, '/');
	size_t host_len = slash ? (size_t)(slash - name) : 0;
	const char *host = "docker.io";
	const char *path = name;
	int r;

	if (slash && reference_names_host(name, host_len)) {
		if (!reference_is_host(name, host_len))
			return error_refuse(
				err, ERROR_INVALID,
				"image reference \"%.80s\": \"%.*s\" is no name of a registry",
				text, (int)MIN(host_len, (size_t)64), name);
		path = slash + 1;
	}
	r = reference_check_path(path, text, err);
	if (r < 0)
		return r;
	if (path != name && !(host_len == 9 && strncmp(name, "docker.io", 9) == 0) &&
	    !(host_len == 15 && strncmp(name, "index.docker.io", 15) == 0))
		r = str_copy(ref->name, sizeof(ref->name), name);
	else
		r = str_printf(ref->name, sizeof(ref->name), "%s/%s%s", host,
			       strchr(path, '/') ? "" : "library/", path);
	if (r < 0)
		return error_refuse(
			err, ERROR_INVALID,
			"image reference \"%.80s...\": a name has at most %d characters", text,
			REFERENCE_NAME_MAX);
	return 0;
}

int reference_parse(struct reference *ret, const char *text, struct error *err)
{
	struct reference ref = { .name = "" };
	char name[REFERENCE_SIZE];
	char *at, *colon, *slash;

	if (str_empty(text))
		return error_refuse(err, ERROR_INVALID, "an image reference cannot be empty");
	if (str_copy(name, sizeof(name), text) < 0)
		return error_refuse(err, ERROR_INVALID, "image reference \"%.80s...\" is too long",
				    text);
	at = strchr(name, '@');
	if (at) {
		*at++ = '\0';
		if (!digest_is_valid(at))
			return error_refuse(
				err, ERROR_INVALID,
				"image reference \"%.80s\": what stands behind @ is no "
				"digest (\"sha256:\" and 64 lower-case hexadecimal digits)",
				text);
		(void)str_copy(ref.digest, sizeof(ref.digest), at);
	}
	slash = strrchr(name, '/');
	colon = strchr(slash ? slash : name, ':');
	if (colon) {
		*colon++ = '\0';
		if (!reference_is_tag(colon))
			return error_refuse(err, ERROR_INVALID,
					    "image reference \"%.80s\": \"%.64s\" is no tag", text,
					    colon);
		(void)str_copy(ref.tag, sizeof(ref.tag), colon);
	} else if (!at) {
		(void)str_copy(ref.tag, sizeof(ref.tag), "latest");
	}
	if (digest_is_hex(name))
		return error_refuse(err, ERROR_INVALID,
				    "image reference \"%.80s\": 64 hexadecimal digits are no name",
				    text);
	if (str_eq(name, "sha256"))
		return error_refuse(err, ERROR_INVALID,
				    "image reference \"%.80s\": \"sha256\" begins a digest and is "
				    "no name",
				    text);
	if (reference_parse_name(&ref, name, text, err) < 0)
		return -EINVAL;
	*ret = ref;
	return 0;
}

void reference_format(const struct reference *ref, char ret[REFERENCE_SIZE])
{
	(void)str_printf(ret, REFERENCE_SIZE, "%s%s%s%s%s", ref->name, *ref->tag ? ":" : "",
			 ref->tag, *ref->digest ? "@" : "", ref->digest);
}

int reference_normalise(char ret[REFERENCE_SIZE], const char *text, struct error *err)
{
	struct reference ref;
	int r;

	r = reference_parse(&ref, text, err);
	if (r < 0)
		return r;
	reference_format(&ref, ret);
	return 0;
}

bool reference_is_registry(const char *text)
{
	struct reference ref;
	char name[REFERENCE_SIZE];
	size_t len = strlen(text);

	/* What stands in front of a path only where it is a host. */
	return !strchr(text, '/') && str_printf(name, sizeof(name), "%s/a", text) >= 0 &&
	       reference_parse(&ref, name, NULL) == 0 && strncmp(ref.name, text, len) == 0 &&
	       ref.name[len] == '/' && !strchr(text, '@');
}
