/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/cgroup_path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "unit.h"

static void names_of_the_oci(void)
{
	static const struct {
		const char *path;
		bool systemd;
		const char *own, *result;
	} names[] = {
		{ "/a/b", false, "x/y", "a/b" },
		{ "//a///b/", false, "x/y", "a/b" },
		{ "a/b", false, "x/y", "x/a/b" },
		{ "a/b", false, "x", "a/b" },
		{ "a/b", false, "", "a/b" },
		{ "", false, "x/y", "x/id" },
		{ "", false, "", "id" },
		{ "", true, "x/y", "system.slice/nacre-id.scope" },
		{ "user.slice:libpod:1f", true, "", "user.slice/libpod-1f.scope" },
		{ "a-b-c.slice:p:n", true, "", "a.slice/a-b.slice/a-b-c.slice/p-n.scope" },
		{ ":p:n", true, "", "system.slice/p-n.scope" },
		{ "-.slice:p:n", true, "", "p-n.scope" },
		{ "m.slice::n", true, "", "m.slice/n.scope" },
		{ "m.slice:p:n.slice", true, "", "m.slice/n.slice" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct error err = ERROR_INIT;
		char path[CGROUP_PATH_SIZE];

		CHECK_INT(cgroup_path_of_oci(path, sizeof(path), names[i].path, names[i].systemd,
					     names[i].own, "id", &err),
			  0);
		CHECK_STR(err.text, "");
		CHECK_STR(path, names[i].result);
	}
}

static void refuses_names(void)
{
	static const struct {
		const char *path;
		bool systemd;
		const char *text;
	} names[] = {
		{ "/a/../b", false, "\"..\" cannot be part of a cgroup's path" },
		{ "./a", false, "\".\" cannot be part of a cgroup's path" },
		{ "/a\nb", false, "\"a?b\" cannot be part of a cgroup's path" },
		{ "/", false, "the root of the cgroups is not for one" },
		{ "a.slice", true, "with systemd a cgroup is named as SLICE:PREFIX:NAME" },
		{ "a.slice:b", true, "with systemd a cgroup is named as SLICE:PREFIX:NAME" },
		{ "a.slice:b:", true, "with systemd a cgroup is named as SLICE:PREFIX:NAME" },
		{ "a.slice:b:c:d", true, "with systemd a cgroup is named as SLICE:PREFIX:NAME" },
		{ "a.slice:b/c:d", true, "with systemd a cgroup is named as SLICE:PREFIX:NAME" },
		{ "a:b:c", true, "\"a\" cannot be the name of a slice" },
		{ "a--b.slice:b:c", true, "\"a--b.slice\" cannot be the name of a slice" },
		{ "-a.slice:b:c", true, "\"-a.slice\" cannot be the name of a slice" },
		{ "a-.slice:b:c", true, "\"a-.slice\" cannot be the name of a slice" },
		{ "a/b.slice:b:c", true, "\"a/b.slice\" cannot be the name of a slice" },
		{ ".slice:b:c", true, "\".slice\" cannot be the name of a slice" },
	};
	char deep[2 * (CGROUP_PATH_DEPTH_MAX + 1) + 1];
	char path[CGROUP_PATH_SIZE];
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		CHECK_INT(cgroup_path_of_oci(path, sizeof(path), names[i].path, names[i].systemd,
					     "", "id", &err),
			  -EINVAL);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK_STR(err.text, names[i].text);
	}
	for (size_t i = 0; i <= CGROUP_PATH_DEPTH_MAX; i++)
		memcpy(deep + 2 * i, "/a", 3);
	CHECK_INT(cgroup_path_of_oci(path, sizeof(path), deep, false, "", "id", &err), -EINVAL);
	CHECK_STR(err.text, "the path of a cgroup is deeper than 32");
	CHECK_INT(cgroup_path_of_oci(path, sizeof(path), deep + 2, false, "", "id", &err), 0);
	CHECK_INT(cgroup_path_of_oci(path, 8, "/abc/def", false, "", "id", &err), 0);
	CHECK_INT(cgroup_path_of_oci(path, 7, "/abc/def", false, "", "id", &err), -EINVAL);
	CHECK_STR(err.text, "the path of a cgroup is too long");
}

static bool is_there(int root_fd, const char *path)
{
	_cleanup_fd_ int fd = cgroup_open_path(root_fd, path);

	return fd >= 0;
}

static void makes_paths(void)
{
	_cleanup_fd_ int root_fd = cgroup_open_root(NULL);
	_cleanup_fd_ int fd = -1, again = -1;
	struct error err = ERROR_INIT;
	char top[32], path[64];

	if (geteuid() != 0 || root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	(void)str_printf(top, sizeof(top), "nacre-path-%d", (int)getpid());
	(void)str_printf(path, sizeof(path), "%s/a/b", top);
	CHECK_INT(cgroup_open_path(root_fd, path), -ENOENT);
	CHECK_INT(cgroup_remove_path(root_fd, path), 0);
	fd = cgroup_make_path(root_fd, path, 0, CGROUP_CONTROLLERS_ALL, &err);
	again = cgroup_make_path(root_fd, path, 0, 0, &err);
	CHECK(fd >= 0 && again >= 0);
	CHECK(is_there(root_fd, path));

	/* Two levels more, of which the kernel refuses the second: the first goes as well. */
	CHECK_INT(fd_write_file(fd, "cgroup.max.depth", "1"), 0);
	CHECK_INT(cgroup_make_path(fd, "c/d", 0, 0, &err), -EAGAIN);
	CHECK(!is_there(fd, "c"));
	CHECK_INT(fd_write_file(fd, "cgroup.max.depth", "max"), 0);
	/* What was there before stays. */
	CHECK_INT(cgroup_make_path(root_fd, "../x", 0, 0, &err), -EINVAL);
	CHECK(is_there(root_fd, path));
	CHECK_INT(cgroup_remove_path(root_fd, path), 0);
	CHECK(!is_there(root_fd, path));
	/* With all that is below. */
	(void)fd_close(cgroup_make_path(root_fd, path, 0, 0, &err));
	CHECK_INT(cgroup_remove_path(root_fd, top), 0);
	CHECK(!is_there(root_fd, top));
	CHECK_INT(cgroup_remove_path(root_fd, ""), -EINVAL);
}

/* What no group has cannot be handed on, and nothing is made for it. */
static void needs_controllers(void)
{
	_cleanup_fd_ int root_fd = cgroup_open_root(NULL);
	struct error err = ERROR_INIT;

	if (geteuid() != 0 || root_fd < 0)
		SKIP("needs root and a v2 hierarchy");
	for (unsigned c = 0; c < CGROUP_CONTROLLER_COUNT; c++) {
		if (cgroup_controllers(root_fd) & 1U << c)
			continue;
		CHECK(cgroup_make_path(root_fd, "nacre-needs", 1U << c, 0, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK(strstr(err.text, cgroup_controller_name(c)) != NULL);
		CHECK(!is_there(root_fd, "nacre-needs"));
	}
}

static void checks_the_form_of_a_path(void)
{
	static const char *const good[] = { "/a", "/kubepods.slice/x-1", "/a/...", "/a/b/c" };
	static const char *const bad[] = { "",      "/",    "a",     "/a/",   "//a",
					   "/a//b", "/./a", "/a/..", "/a\nb", "a/b" };
	char deep[2 * (CGROUP_PATH_DEPTH_MAX + 1) + 1], name[NAME_MAX + 3] = "/";

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK_INT(cgroup_path_check(good[i]), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(cgroup_path_check(bad[i]), -EINVAL);
	for (size_t i = 0; i < sizeof(deep) - 1; i++)
		deep[i] = i % 2 ? 'a' : '/';
	deep[sizeof(deep) - 1] = '\0';
	CHECK_INT(cgroup_path_check(deep), -EINVAL);
	CHECK_INT(cgroup_path_check(deep + 2), 0);
	memset(name + 1, 'n', NAME_MAX + 1);
	CHECK_INT(cgroup_path_check(name), -EINVAL);
	name[NAME_MAX + 1] = '\0';
	CHECK_INT(cgroup_path_check(name), 0);
}

UNIT_MAIN({ "checks the form of a path", checks_the_form_of_a_path },
	  { "names of the OCI", names_of_the_oci }, { "refuses names", refuses_names },
	  { "makes and removes paths", makes_paths },
	  { "a path needs its controllers", needs_controllers })
