/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/secrets.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static int top_fd, dir_fd, sets_fd;
static char top[64];

static void bed_open(void)
{
	struct error err = ERROR_INIT;

	(void)str_copy(top, sizeof(top), "/tmp/nacre-secrets-XXXXXX");
	CHECK(mkdtemp(top));
	top_fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mkdirat(top_fd, "run", 0700), 0);
	dir_fd = secrets_open(top_fd, &err);
	sets_fd = openat(top_fd, "run", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir_fd >= 0 && sets_fd >= 0);
}

static void bed_close(void)
{
	dir_fd = fd_close(dir_fd);
	sets_fd = fd_close(sets_fd);
	top_fd = fd_close(top_fd);
	CHECK_INT(scratch_remove(top), 0);
}

static int put(const char *name, const char *text, bool replace, struct secret_info *info)
{
	struct error err = ERROR_INIT;

	return secret_put(dir_fd, sets_fd, name, text, strlen(text), replace, info, &err);
}

static void is(int at_fd, const char *path, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	CHECK_INT(fd_read_file(at_fd, path, 1000, &b), 0);
	CHECK_INT(buf_add(&b, "", 1), 0);
	CHECK_STR((const char *)buf_data(&b), text);
}

static void kept_and_replaced(void)
{
	struct secret_info first, second, *list = NULL;
	_cleanup_(buf_done) struct buf data = BUF_INIT;
	struct error err = ERROR_INIT;
	struct stat st;
	size_t n = 0;

	bed_open();
	CHECK_INT(put("a", "one\nline", false, &first), 0);
	CHECK(put("a", "two", false, &second) < 0);
	CHECK_INT(put("b", "x", true, &second), 0);
	CHECK_INT(fstatat(dir_fd, "a", &st, 0), 0);
	CHECK_INT(st.st_mode & 07777, 0600);
	CHECK_INT(secret_read(dir_fd, "a", &data, &second, &err), 0);
	CHECK_INT(data.len, 8);
	CHECK_STR(second.id, first.id);
	CHECK_INT(put("a", "two", true, &second), 0);
	CHECK_STR(second.id, first.id);
	CHECK(second.created_at == first.created_at && second.updated_at > first.updated_at);
	CHECK(put("a", "", true, &second) < 0);
	CHECK_INT(secrets_list(dir_fd, &list, &n, &err), 0);
	CHECK_INT(n, 2);
	free(list);
	CHECK_INT(secret_remove(dir_fd, "a", &err), 0);
	CHECK(secret_remove(dir_fd, "a", &err) < 0);
	CHECK(secret_read(dir_fd, "a", NULL, &second, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	bed_close();
}

static bool wanted(void *userdata, const char *id)
{
	return str_eq(id, userdata);
}

static void sets_follow(void)
{
	const struct secret_file files[] = { { "a", "x y", 0, 0, 0400 }, { "a", "z", 0, 0, 0444 } },
				 only = { "a", "", 0, 0, 0440 },
				 missing[] = { { "a", "x", 0, 0, 0400 },
					       { "no", "z", 0, 0, 0444 } };
	struct error err = ERROR_INIT;
	struct secret_info info;
	_cleanup_fd_ int fd = -1, file_fd = -1, old_fd = -1;
	char id[] = "i";
	struct stat st;

	bed_open();
	CHECK_INT(put("a", "one", false, &info), 0);
	fd = secret_set_make(dir_fd, sets_fd, "i", files, 2, &err);
	file_fd = secret_set_make(dir_fd, sets_fd, "k", &only, 1, &err);
	CHECK(fd >= 0 && file_fd >= 0);
	is(fd, "x y", "one");
	CHECK_INT(fstatat(fd, "x y", &st, 0), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0400);
	CHECK_INT(fstat(file_fd, &st), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0440);
	old_fd = openat(fd, "z", O_RDONLY | O_CLOEXEC);
	CHECK_INT(put("a", "two", true, &info), 0);
	is(fd, "x y", "two");
	is(fd, "z", "two");
	CHECK_INT(fstatat(fd, "x y", &st, 0), 0);
	CHECK_INT(st.st_mode, S_IFREG | 0400);
	/* Who has it open reads on in the old one. */
	CHECK_INT(fstat(old_fd, &st), 0);
	CHECK_INT(st.st_nlink, 0);
	is(sets_fd, "k/files/only", "one");
	CHECK(secret_set_make(dir_fd, sets_fd, "m", missing, 2, &err) < 0);
	CHECK_INT(err.kind, ERROR_NOT_FOUND);
	CHECK(faccessat(sets_fd, "m", F_OK, 0) < 0);
	secret_sets_collect(sets_fd, wanted, id);
	CHECK(faccessat(sets_fd, "k", F_OK, 0) < 0);
	CHECK_INT(faccessat(sets_fd, "i", F_OK, 0), 0);
	secret_set_drop(sets_fd, "i");
	CHECK(faccessat(sets_fd, "i", F_OK, 0) < 0);
	bed_close();
}

static void names(void)
{
	static const char *const bad[] = { "", ".", "..", ".new-1", "-a", "a/b", "a b", "a\n" },
				 *const bad_files[] = { "", ".", "..", "..data", "a/b", "a\n" };

	CHECK_INT(secret_check_name("n", "0a.B_c-d", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK(secret_check_name("n", bad[i], NULL) < 0);
	CHECK_INT(secret_check_file("n", ".a b", NULL), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad_files); i++)
		CHECK(secret_check_file("n", bad_files[i], NULL) < 0);
}

UNIT_MAIN({ "kept and replaced", kept_and_replaced }, { "sets follow", sets_follow },
	  { "names", names })
