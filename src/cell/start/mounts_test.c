/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/mounts.h"

#include <linux/mount.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

static void targets(void)
{
	static const char *const good[] = {
		"/a",       "//a/b/",   "/dev/shm",     "/dev/termination-log",
		"//dev/x/", "/dev/x/y", "/devices",     "/process",
		"/a/..b",   "/.a",      "/system/proc", "/a..",
		"/..."
	};
	static const char *const bad[] = { "",
					   "a",
					   "/",
					   "//",
					   "/a/.",
					   "/..",
					   "/./a",
					   "/a/../b",
					   "/proc",
					   "//proc/",
					   "/proc/x",
					   "/sys",
					   "/sys/fs/cgroup",
					   "/dev",
					   "/dev/null",
					   "/dev/stdin",
					   "/dev/console",
					   "/dev//mqueue/",
					   "/dev/pts/y",
					   "/dev/shm/x" };
	static char longest[SPEC_PATH_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK_INT(mounts_check_target("f", good[i], NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct error err = ERROR_INIT;

		CHECK(mounts_check_target("f", bad[i], &err) < 0);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK(str_has_prefix(error_text(&err), "f: "));
	}
	memset(longest, 'x', SPEC_PATH_MAX);
	longest[0] = '/';
	CHECK_INT(mounts_check_target("f", longest, NULL), 0);
	longest[SPEC_PATH_MAX] = 'x';
	CHECK(mounts_check_target("f", longest, NULL) < 0);
}

static void sameness(void)
{
	CHECK(mounts_are_same("/a/b", "//a///b/"));
	CHECK(mounts_are_same("/", ""));
	CHECK(!mounts_are_same("/a", "/a/b"));
	CHECK(!mounts_are_same("/a", "/b"));
	CHECK(!mounts_are_same("/a", "/aa"));
}

static void limits(void)
{
	struct container_mount all[CONTAINER_MOUNTS_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(all); i++)
		all[i] = (struct container_mount){ .target = "/a", .mode = 07777 };
	CHECK_INT(mounts_check(all, CONTAINER_MOUNTS_MAX, NULL), 0);
	CHECK(mounts_check(all, CONTAINER_MOUNTS_MAX + 1, NULL) < 0);
	all[0].mode = 010000;
	CHECK(mounts_check(all, 1, NULL) < 0);
}

static void planned(void)
{
	const struct container_mount mounts[] = {
		{ .target = "/a" },
		{ .target = "/b", .size = 4096, .mode = 0700, .no_exec = true },
		{ .target = "/c" }
	};
	struct container_fds fds = CONTAINER_FDS_NONE;
	_cleanup_(mounts_unplanp) struct mounts_plan *m = NULL;
	struct container_mount *copy = NULL;
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	CHECK_INT(mounts_plan(&m, &plan, NULL, &fds, NULL), 0);
	CHECK(!m && plan.n_mounts == 0);
	CHECK_INT(mounts_copy(&copy, NULL, 0), 0);
	CHECK(!copy);

	fds.mounts[0] = 0;
	fds.mounts[1] = fds.mounts[2] = -1;
	fds.n_mounts = ARRAY_SIZE(mounts);
	CHECK_INT(mounts_copy(&copy, mounts, ARRAY_SIZE(mounts)), 0);
	CHECK_INT(mounts_plan(&m, &plan, copy, &fds, NULL), 0);
	CHECK_INT(plan.n_mounts, 3);
	CHECK(plan.mounts[0].source_fd == 0 && plan.mounts[0].detached && !plan.mounts[0].fs);
	CHECK_STR(plan.mounts[0].target, "/a");
	CHECK_STR(plan.mounts[1].fs, "tmpfs");
	CHECK_STR(plan.mounts[1].options, "mode=700,size=4096");
	CHECK(plan.mounts[1].attr_set ==
	      (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV | MOUNT_ATTR_NOEXEC));
	CHECK_STR(plan.mounts[2].options, "mode=1777");
	CHECK(plan.mounts[2].attr_set == (MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV));
	mounts_free(copy, ARRAY_SIZE(mounts));
}

/* A target comes behind those that it may lie in; those of the same depth stay as they are given.
 */
static void sorted(void)
{
	const struct container_mount mounts[] = {
		{ .target = "/m/sub/deep" }, { .target = "//m//sub/" }, { .target = "/b" },
		{ .target = "/m/a" },        { .target = "/m/" },       { .target = "/a" }
	};
	static const char *const want[] = { "/b", "/m/", "/a", "//m//sub/", "/m/a", "/m/sub/deep" };
	static const int want_fds[] = { 12, 14, 15, 11, -1, 10 };
	struct container_fds fds = CONTAINER_FDS_NONE;
	_cleanup_(mounts_unplanp) struct mounts_plan *m = NULL;
	struct isolate_plan plan;

	isolate_plan_init(&plan);
	fds.n_mounts = ARRAY_SIZE(mounts);
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++)
		fds.mounts[i] = i == 3 ? -1 : 10 + (int)i;
	CHECK_INT(mounts_plan(&m, &plan, mounts, &fds, NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(mounts); i++) {
		CHECK_STR(plan.mounts[i].target, want[i]);
		CHECK_INT(plan.mounts[i].source_fd, want_fds[i]);
		CHECK((plan.mounts[i].fs != NULL) == (want_fds[i] < 0));
	}
}

UNIT_MAIN({ "targets", targets }, { "sameness", sameness }, { "limits", limits },
	  { "what is planned", planned }, { "deeper targets come later", sorted })
