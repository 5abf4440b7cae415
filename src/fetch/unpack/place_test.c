/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/place.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static void normalises(void)
{
	static const struct {
		const char *name;
		const char *path; /* NULL: refused */
	} cases[] = {
		{ "a", "a" },
		{ "./a/b", "a/b" },
		{ "/a//b/", "a/b" },
		{ ".", "" },
		{ "./", "" },
		{ "/", "" },
		{ "", "" },
		{ "a/./b/.", "a/b" },
		{ "..a/b..", "..a/b.." },
		{ "...", "..." },
		{ "..", NULL },
		{ "a/..", NULL },
		{ "../a", NULL },
		{ "/../a", NULL },
		{ "a/../b", NULL },
		{ "a/../../b", NULL },
		{ "a\\..\\b", "a\\..\\b" },
		{ "\377", "\377" },
		{ NULL, NULL },
	};
	char long_name[5000];
	char path[PLACE_PATH_MAX + 1];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		int r = place_normalise(path, cases[i].name, NULL);

		if (cases[i].path) {
			CHECK_INT(r, 0);
			CHECK_STR(path, cases[i].path);
		} else {
			CHECK_INT(r, -EINVAL);
		}
	}
	memset(long_name, 'x', sizeof(long_name));
	long_name[PLACE_NAME_MAX] = '\0';
	CHECK_INT(place_normalise(path, long_name, NULL), 0);
	long_name[PLACE_NAME_MAX] = 'x';
	long_name[PLACE_NAME_MAX + 1] = '\0';
	CHECK_INT(place_normalise(path, long_name, NULL), -EINVAL);
	for (size_t i = 0; i < sizeof(long_name); i++)
		long_name[i] = i % 2 ? '/' : 'x';
	long_name[PLACE_PATH_MAX] = '\0';
	CHECK_INT(place_normalise(path, long_name, NULL), 0);
	long_name[PLACE_PATH_MAX] = '/';
	long_name[PLACE_PATH_MAX + 2] = '\0';
	CHECK_INT(place_normalise(path, long_name, NULL), -EINVAL);
}

static void stays_inside(void)
{
	char path[] = "/tmp/nacre-place-XXXXXX";
	_cleanup_fd_ int fd = -1;
	struct place p = PLACE_INIT;
	struct error err = ERROR_INIT;
	struct stat inside, found;

	CHECK(mkdtemp(path) != NULL);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(symlinkat("/etc", fd, "absolute"), 0);
	CHECK_INT(symlinkat("../../../../../etc", fd, "relative"), 0);
	CHECK_INT(place_find(fd, "absolute/passwd", false, &p, &err), -ENOENT);
	CHECK_INT(place_find(fd, "relative/passwd", false, &p, &err), -ENOENT);
	/* The link dangles inside: its target is not made up. */
	CHECK_INT(place_find(fd, "absolute/passwd", true, &p, &err), -EINVAL);
	CHECK_INT(err.kind, ERROR_INVALID);

	CHECK_INT(mkdirat(fd, "etc", 0755), 0);
	CHECK_INT(fstatat(fd, "etc", &inside, 0), 0);
	CHECK_INT(place_find(fd, "absolute/passwd", false, &p, &err), 0);
	CHECK_INT(fstat(p.dir_fd, &found), 0);
	CHECK_INT(found.st_ino, inside.st_ino);
	CHECK_STR(p.name, "passwd");
	place_done(&p);
	CHECK_INT(place_find(fd, "relative/x/y", true, &p, &err), 0);
	CHECK_INT(fstatat(fd, "etc/x", &inside, 0), 0);
	CHECK_INT(fstat(p.dir_fd, &found), 0);
	CHECK_INT(found.st_ino, inside.st_ino);
	place_done(&p);
	CHECK_INT(place_find(fd, "", true, &p, &err), 0);
	CHECK_INT(p.dir_fd, -1);
	CHECK_INT(scratch_remove(path), 0);
}

UNIT_MAIN({ "normalises", normalises }, { "stays_inside", stays_inside })
