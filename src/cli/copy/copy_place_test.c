/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/copy_place.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

static void places(void)
{
	static const struct {
		const char *word, *target, *container, *path, *name;
	} table[] = {
		{ "web:/etc/passwd", "web", "", "/etc/passwd", "passwd" },
		{ "web:etc/passwd", "web", "", "/etc/passwd", "passwd" },
		{ "shop:db:/etc", "shop", "db", "/etc", "etc" },
		{ "shop:db:etc/", "shop", "db", "/etc/", "etc" },
		{ "a/b/c:/x", "a/b/c", "", "/x", "x" },
		{ "web:/", "web", "", "/", "." },
		{ "web:/src/.", "web", "", "/src/.", "." },
		{ "web:/a/b/..", "web", "", "/a", "a" },
		{ "web:/a/..", "web", "", "/", "." },
		{ "web:/a/b/c/../..", "web", "", "/a", "a" },
		{ "web:/..", "web", "", "/", "." },
		{ "web:a:b/c", "web", "a", "/b/c", "c" },
		{ "web:a/b:c", "web", "", "/a/b:c", "b:c" },
		{ "/a:/b", NULL, NULL, "/a:/b", "b" },
		{ "/x/..", NULL, NULL, "/", "." },
		{ "/x/y", NULL, NULL, "/x/y", "y" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct copy_place p;
		struct error err = ERROR_INIT;
		char *name;

		CHECK_INT(copy_place_init(&p, table[i].word, &err), 0);
		name = copy_place_name(&p);
		CHECK_STR(p.target ? p.target : "-", table[i].target ? table[i].target : "-");
		CHECK_STR(p.container ? p.container : "-",
			  table[i].container ? table[i].container : "-");
		CHECK_STR(p.path, table[i].path);
		CHECK_STR(name, table[i].name);
		free(name);
		copy_place_done(&p);
	}
}

/* What is no path of a container is one of the working directory. */
static void here(void)
{
	static const char *const words[] = { "x", "./a:b", "dir/a:b", ".", "./x/." };
	char *cwd = getcwd(NULL, 0);

	for (size_t i = 0; cwd && i < ARRAY_SIZE(words); i++) {
		struct copy_place p;
		struct error err = ERROR_INIT;

		CHECK_INT(copy_place_init(&p, words[i], &err), 0);
		CHECK(!p.target && !p.stream);
		CHECK(strncmp(p.path, cwd, strlen(cwd)) == 0);
		CHECK_STR(p.path + strlen(cwd) + 1, words[i]);
		copy_place_done(&p);
	}
	free(cwd);
}

static void refused(void)
{
	static const char *const words[] = { "", ":/a", "box::/a", "box:", ":a" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		struct copy_place p;
		struct error err = ERROR_INIT;

		CHECK(copy_place_init(&p, words[i], &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		copy_place_done(&p);
	}
}

static void stream(void)
{
	struct copy_place p;
	struct error err = ERROR_INIT;

	CHECK_INT(copy_place_init(&p, "-", &err), 0);
	CHECK(p.stream && !p.target && !p.path);
	copy_place_done(&p);
}

UNIT_MAIN({ "places", places }, { "here", here }, { "refused", refused }, { "stream", stream })
