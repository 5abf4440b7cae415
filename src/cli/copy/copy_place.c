/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/copy_place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"

void copy_place_done(struct copy_place *p)
{
	free(p->target);
	free(p->container);
	free(p->path);
	*p = (struct copy_place){ .path = NULL };
}

/* The length of the path without '/' at its end. */
static size_t copy_place_trim(const char *path)
{
	size_t len = strlen(path);

	while (len > 0 && path[len - 1] == '/')
		len--;
	return len;
}

/* A path that ends with ".." names the directory above, which has a name of its own: it is found by
 * the words of the path, links on it notwithstanding. */
static void copy_place_climb(char *path)
{
	size_t n_up = 0, len;

	for (len = copy_place_trim(path); len >= 3 && memcmp(path + len - 3, "/..", 3) == 0;
	     len = copy_place_trim(path)) {
		path[len - 3] = '\0';
		n_up++;
	}
	if (n_up == 0)
		return;
	for (; n_up > 0; n_up--) {
		path[copy_place_trim(path)] = '\0';
		len = strlen(path);
		while (len > 0 && path[len - 1] != '/')
			len--;
		path[len] = '\0';
	}
	len = copy_place_trim(path);
	path[len] = '\0';
	if (len == 0)
		(void)str_copy(path, sizeof("/"), "/");
}

static void copy_place_local(struct copy_place *p, const char *word)
{
	_cleanup_str_ char *cwd = *word == '/' ? xstrdup("") : getcwd(NULL, 0);

	p->path = xformat("%s%s%s", cwd ? cwd : "", *word == '/' ? "" : "/", word);
	copy_place_climb(p->path);
}

/* Where the path in a container begins in the word; NULL: it is a path of this system. */
static const char *copy_place_split(const char *word)
{
	const char *path = strstr(word, ":/"), *colon = strchr(word, ':'), *second;

	if (*word == '/' || *word == '.' || !colon)
		return NULL;
	if (path)
		return path + 1;
	if (strcspn(word, "/") < (size_t)(colon - word))
		return NULL;
	second = strchr(colon + 1, ':');
	if (second && strcspn(colon + 1, "/") > (size_t)(second - colon - 1))
		colon = second;
	return colon + 1;
}

int copy_place_init(struct copy_place *p, const char *word, struct error *err)
{
	const char *path, *colon, *end;

	*p = (struct copy_place){ .stream = str_eq(word, "-") };
	if (p->stream)
		return 0;
	if (!*word)
		return error_refuse(err, ERROR_INVALID, "cp: an empty path");
	path = copy_place_split(word);
	if (!path) {
		copy_place_local(p, word);
		return 0;
	}
	end = path - 1;
	colon = memchr(word, ':', (size_t)(end - word));
	if (!*path || end == word || colon == word || (colon && colon + 1 == end))
		return error_refuse(err, ERROR_INVALID,
				    "cp: \"%s\" is not TARGET:PATH or TARGET:CONTAINER:PATH", word);
	p->target = xformat("%.*s", (int)((colon ? colon : end) - word), word);
	p->container = colon ? xformat("%.*s", (int)(end - colon - 1), colon + 1) : xstrdup("");
	p->path = xformat("%s%s", *path == '/' ? "" : "/", path);
	copy_place_climb(p->path);
	return 0;
}

char *copy_place_name(const struct copy_place *p)
{
	size_t len = copy_place_trim(p->path), begin = len;

	while (begin > 0 && p->path[begin - 1] != '/')
		begin--;
	return begin == len ? xstrdup(".") : xformat("%.*s", (int)(len - begin), p->path + begin);
}
