/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/disk.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "unit.h"

static int check(const char *serial, const char *fs)
{
	struct container_disk disk = { .serial = serial, .fs = fs };
	struct container_spec spec = { .root_disk = &disk };
	struct error err = ERROR_INIT;
	int r = disk_check(&spec, &err);

	CHECK(r == 0 || strcmp(err.field, "root_disk") == 0);
	return r;
}

static void serials_are_checked(void)
{
	CHECK_INT(check("slot0", "erofs"), 0);
	CHECK_INT(check("a.b_c-D9012345678901", "erofs"), 0);
	CHECK_INT(check("a.b_c-D90123456789012", "erofs"), -EINVAL);
	CHECK_INT(check("", "erofs"), -EINVAL);
	CHECK_INT(check(NULL, "erofs"), -EINVAL);
	CHECK_INT(check("../x", "erofs"), -EINVAL);
	CHECK_INT(check("slot 0", "erofs"), -EINVAL);
	CHECK_INT(check("slot0", "ext4"), -EINVAL);
	CHECK_INT(check("slot0", NULL), -EINVAL);
}

static int check_file(const char *path, unsigned mode, size_t len, size_t n)
{
	struct container_file files[CONTAINER_FILES_MAX + 1];
	struct container_spec spec = { .files = files, .n_files = n };
	struct error err = ERROR_INIT;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(files); i++)
		files[i] = (struct container_file){ .path = path, .mode = mode, .len = len };
	r = disk_check(&spec, &err);
	CHECK(r == 0 || strcmp(err.field, "files") == 0);
	return r;
}

static void files_are_checked(void)
{
	CHECK_INT(check_file("/etc/hosts", 0644, CONTAINER_FILE_MAX, CONTAINER_FILES_MAX), 0);
	CHECK_INT(check_file("/etc/hosts", 0644, 1, CONTAINER_FILES_MAX + 1), -EINVAL);
	CHECK_INT(check_file("/etc/hosts", 0644, CONTAINER_FILE_MAX + 1, 1), -EINVAL);
	CHECK_INT(check_file("/etc/hosts", 010000, 1, 1), -EINVAL);
	CHECK_INT(check_file("etc/hosts", 0644, 1, 1), -EINVAL);
	CHECK_INT(check_file("", 0644, 1, 1), -EINVAL);
}

#define SHARE_OF_64 "v.0-a_b012345678901234567890123456789012345678901234567890123456"

static void shares_are_checked(void)
{
	CHECK_INT(disk_check_share(NULL, NULL), 0);
	CHECK_INT(disk_check_share("", NULL), 0);
	CHECK_INT(disk_check_share(SHARE_OF_64, NULL), 0);
	CHECK_INT(disk_check_share(SHARE_OF_64 "4", NULL), -EINVAL);
	CHECK_INT(disk_check_share("..", NULL), -EINVAL);
	CHECK_INT(disk_check_share("a/b", NULL), -EINVAL);
	CHECK_INT(disk_check_share("a,b", NULL), -EINVAL);
}

UNIT_MAIN({ "serials are checked", serials_are_checked },
	  { "files are checked", files_are_checked }, { "shares are checked", shares_are_checked })
