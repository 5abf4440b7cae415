/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup_name.h"

#include <errno.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "unit.h"

static int top_fd = -1, fd = -1;
static char top_name[48];

#define NEED_CGROUPS()                                                                             \
	do {                                                                                       \
		if (fd < 0)                                                                        \
			SKIP("needs root and a v2 hierarchy");                                     \
	} while (0)

static void prepares(void)
{
	struct error err = ERROR_INIT;

	top_fd = geteuid() == 0 ? cgroup_open_root(&err) : -1;
	if (top_fd >= 0) {
		(void)str_printf(top_name, sizeof(top_name), "nacre-name-test-%d", (int)getpid());
		fd = cgroup_make(top_fd, top_name, &err);
	}
	NEED_CGROUPS();
}

static const char *found(const char *name)
{
	static char dir[CGROUP_DIR_SIZE];

	return cgroup_find_name(fd, name, dir) < 0 ? "" : dir;
}

static int made(unsigned *number, char dir[CGROUP_DIR_SIZE])
{
	struct error err = ERROR_INIT;
	int r = cgroup_make_numbered(fd, "cell.", number, dir, &err);

	CHECK_STR(err.text, "");
	CHECK(r >= 0);
	return r;
}

static void is_found_by_its_name(void)
{
	char dir[CGROUP_DIR_SIZE];
	_cleanup_fd_ int plain = -1, one = -1;
	unsigned number = 0;

	NEED_CGROUPS();
	plain = cgroup_make(fd, "cell.plain", NULL);
	one = made(&number, dir);
	CHECK_STR(dir, "cell.+1");
	CHECK_INT(cgroup_number(dir), 1);
	CHECK_INT(cgroup_number("+4294967295") == 4294967295U, true);
	CHECK_INT(cgroup_number("cell.plain"), 0);
	CHECK_STR(found("cell.plain"), "cell.plain");
	CHECK_STR(found("cell.one"), "");
	CHECK_INT(cgroup_set_name(one, "cell.one"), 0);
	CHECK_STR(found("cell.one"), "cell.+1");
	/* What begins like it, or is longer, is another. */
	CHECK_STR(found("cell.on"), "");
	CHECK_STR(found("cell.one2"), "");
	/* For good. */
	CHECK_INT(cgroup_set_name(one, "cell.two"), -EEXIST);
	CHECK_STR(found("cell.one"), "cell.+1");
	/* One that has the name itself comes first. */
	(void)close(cgroup_make(fd, "cell.one", NULL));
	CHECK_STR(found("cell.one"), "cell.one");
	CHECK_INT(cgroup_remove(fd, "cell.one"), 0);
	CHECK_INT(cgroup_remove(fd, dir), 0);
	CHECK_STR(found("cell.one"), "");
	CHECK_INT(cgroup_remove(fd, "cell.plain"), 0);
}

static void numbers_are_not_used_twice(void)
{
	char a[CGROUP_DIR_SIZE], b[CGROUP_DIR_SIZE], c[CGROUP_DIR_SIZE];
	unsigned number = 0, other = 0;

	NEED_CGROUPS();
	(void)close(made(&number, a));
	(void)close(made(&number, b));
	/* Somebody who begins anew. */
	(void)close(made(&other, c));
	CHECK_STR(a, "cell.+1");
	CHECK_STR(b, "cell.+2");
	CHECK_STR(c, "cell.+3");
	CHECK_INT(other, 3);
	CHECK_INT(cgroup_remove(fd, a) + cgroup_remove(fd, b) + cgroup_remove(fd, c), 0);
}

static void note(void *userdata, const char *dir)
{
	char *list = userdata;
	size_t len = strlen(list);

	(void)str_printf(list + len, 64 - len, "%s;", dir);
}

static void those_without_are_told(void)
{
	char dir[CGROUP_DIR_SIZE], list[64] = "";
	_cleanup_fd_ int a = -1, b = -1;
	unsigned number = 0;

	NEED_CGROUPS();
	(void)close(cgroup_make(fd, "cell.x", NULL));
	a = made(&number, dir);
	b = made(&number, dir);
	CHECK_INT(cgroup_set_name(a, "cell.a"), 0);
	CHECK_INT(cgroup_each_nameless(fd, note, list), 0);
	CHECK_STR(list, "cell.+2;");
	CHECK_INT(cgroup_remove(fd, "cell.x") + cgroup_remove(fd, "cell.+1") +
			  cgroup_remove(fd, "cell.+2"),
		  0);
}

static void paths_are_made_of_names(void)
{
	char dir[CGROUP_DIR_SIZE], path[256];
	_cleanup_fd_ int cell = -1, leaf = -1;
	unsigned number = 6, leaf_number = 0;

	NEED_CGROUPS();
	cell = made(&number, dir);
	CHECK_INT(cgroup_set_name(cell, "cell.web"), 0);
	leaf = cgroup_make_numbered(cell, "", &leaf_number, dir, NULL);
	CHECK_INT(cgroup_set_name(leaf, "main"), 0);
	CHECK_INT(cgroup_find_below(top_fd, top_name, "cell.web", "main", path, sizeof(path)), 0);
	CHECK_STR(path + strlen(top_name), "/cell.+7/+1");
	CHECK_INT(cgroup_find_below(fd, ".", "cell.web", NULL, path, sizeof(path)), 0);
	CHECK_STR(path, "./cell.+7");
	CHECK_INT(cgroup_find_below(fd, ".", "cell.web", "other", path, sizeof(path)), 0);
	CHECK_STR(path, "./cell.+7/other");
	CHECK_INT(cgroup_find_below(fd, ".", "cell.none", "other", path, sizeof(path)), 0);
	CHECK_STR(path, "./cell.none/other");
	CHECK(cgroup_find_below(fd, ".", "cell.web", "main", path, 8) < 0);
	CHECK_INT(cgroup_remove(fd, "cell.+7"), 0);
}

static void leaves_nothing(void)
{
	NEED_CGROUPS();
	CHECK_INT(cgroup_remove(top_fd, top_name), 0);
	fd = fd_close(fd);
	top_fd = fd_close(top_fd);
}

UNIT_MAIN({ "prepares", prepares, true }, { "a group is found by its name", is_found_by_its_name },
	  { "numbers are not used twice", numbers_are_not_used_twice },
	  { "those without a name are told", those_without_are_told },
	  { "paths are made of names", paths_are_made_of_names },
	  { "leaves nothing", leaves_nothing })
