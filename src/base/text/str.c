/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/str.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

bool str_has_suffix(const char *s, const char *suffix)
{
	size_t n = strlen(s), m = strlen(suffix);

	return n >= m && strcmp(s + n - m, suffix) == 0;
}

int str_copy(char *to, size_t size, const char *from)
{
	size_t n = strlen(from);
	size_t fits = n < size ? n : size - 1;

	assert(size > 0);
	memcpy(to, from, fits);
	to[fits] = '\0';
	return n < size ? 0 : -ENAMETOOLONG;
}

int str_printf(char *to, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(to, size, fmt, ap);
	va_end(ap);
	return n >= 0 && (size_t)n < size ? n : -ENAMETOOLONG;
}

char *str_format(const char *fmt, ...)
{
	va_list ap;
	char *s;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0)
		return NULL;
	s = malloc((size_t)n + 1);
	if (!s)
		return NULL;
	va_start(ap, fmt);
	(void)vsnprintf(s, (size_t)n + 1, fmt, ap);
	va_end(ap);
	return s;
}

/* How many bytes the sequence at p takes, 0 where it is not valid. */
static size_t str_utf8_sequence(const unsigned char *p, size_t left)
{
	unsigned char lo = 0x80, hi = 0xbf;
	size_t n;

	if (p[0] < 0x80)
		return p[0] ? 1 : 0;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	n = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (left < n)
		return 0;
	if (p[0] == 0xe0)
		lo = 0xa0;
	else if (p[0] == 0xed)
		hi = 0x9f;
	else if (p[0] == 0xf0)
		lo = 0x90;
	else if (p[0] == 0xf4)
		hi = 0x8f;
	if (p[1] < lo || p[1] > hi)
		return 0;
	for (size_t i = 2; i < n; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	return n;
}

bool str_is_utf8(const void *data, size_t len)
{
	const unsigned char *p = data;

	while (len) {
		size_t n = str_utf8_sequence(p, len);

		if (n == 0)
			return false;
		p += n;
		len -= n;
	}
	return true;
}

bool str_is_clean(const char *s)
{
	for (; *s; s++)
		if ((unsigned char)*s < 0x20 || *s == 0x7f)
			return false;
	return true;
}

size_t str_control_len(const char *s)
{
	unsigned char c = (unsigned char)s[0], next;

	if (c != 0xc2)
		return (c > 0 && c < 0x20) || c == 0x7f;
	next = (unsigned char)s[1];
	return next >= 0x80 && next < 0xa0 ? 2 : 0;
}

void str_clean(char *s)
{
	while (*s) {
		size_t n = str_control_len(s);

		memset(s, '?', n);
		s += n ? n : 1;
	}
}

size_t strv_len(char *const *v)
{
	size_t n = 0;

	while (v && v[n])
		n++;
	return n;
}

void strv_free(char **v)
{
	for (size_t i = 0; v && v[i]; i++)
		free(v[i]);
	free(v);
}

char **strv_copy(char *const *v)
{
	_cleanup_strv_ char **copy = calloc(strv_len(v) + 1, sizeof(*copy));

	if (!copy)
		return NULL;
	for (size_t i = 0; v && v[i]; i++) {
		copy[i] = strdup(v[i]);
		if (!copy[i])
			return NULL;
	}
	return TAKE_PTR(copy);
}

int strv_add(char ***v, const char *s)
{
	size_t n = strv_len(*v);
	_cleanup_str_ char *copy = strdup(s);
	char **grown;

	if (!copy)
		return -ENOMEM;
	grown = realloc(*v, (n + 2) * sizeof(*grown));
	if (!grown)
		return -ENOMEM;
	grown[n] = TAKE_PTR(copy);
	grown[n + 1] = NULL;
	*v = grown;
	return 0;
}

const char *strv_env_get(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (size_t i = 0; env && env[i]; i++)
		if (strncmp(env[i], name, n) == 0 && env[i][n] == '=')
			return env[i] + n + 1;
	return NULL;
}

int strv_env_put(char ***env, const char *assignment)
{
	size_t n = strcspn(assignment, "=") + 1;

	for (size_t i = 0; *env && (*env)[i]; i++) {
		char *copy;

		if (strncmp((*env)[i], assignment, n) != 0)
			continue;
		copy = strdup(assignment);
		if (!copy)
			return -ENOMEM;
		free((*env)[i]);
		(*env)[i] = copy;
		return 0;
	}
	return strv_add(env, assignment);
}
