/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/tree/tree_path.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/text/str.h"

int tree_path_clean(char *to, size_t size, const char *path)
{
	size_t len = 0;

	while (*path) {
		size_t n;

		path += strspn(path, "/");
		n = strcspn(path, "/");
		if (n == 2 && path[0] == '.' && path[1] == '.') {
			while (len && to[--len] != '/')
				;
		} else if (n && !(n == 1 && path[0] == '.')) {
			if (len + 1 + n >= size)
				return -ENAMETOOLONG;
			to[len++] = '/';
			memcpy(to + len, path, n);
			len += n;
		}
		path += n;
	}
	to[len] = '\0';
	return 0;
}

bool tree_path_is(const char *path, const char *known)
{
	char clean[PATH_MAX];

	return tree_path_clean(clean, sizeof(clean), path) == 0 && str_eq(clean, known);
}

const char *tree_path_below(const char *clean, const char *base)
{
	char clean_base[PATH_MAX];
	size_t len;

	if (tree_path_clean(clean_base, sizeof(clean_base), base) < 0)
		return NULL;
	len = strlen(clean_base);
	if (strncmp(clean, clean_base, len) != 0 || (clean[len] && clean[len] != '/'))
		return NULL;
	return clean + len + (clean[len] == '/');
}
