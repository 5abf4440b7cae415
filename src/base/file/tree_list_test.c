/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/tree_list.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static char path[64];
static int root_fd;
static char seen[256]; /* directories */

static const struct tree_list_limits limits = { .n_max = 6, .bytes_max = 10 };

static void bed_open(void)
{
	(void)str_copy(path, sizeof(path), "/tmp/nacre-tree-list-XXXXXX");
	CHECK(mkdtemp(path) != NULL);
	root_fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root_fd >= 0);
	(void)umask(022);
	seen[0] = '\0';
	CHECK_INT(mkdirat(root_fd, "v", 0750), 0);
	CHECK_INT(mkdirat(root_fd, "v/in", 0700), 0);
}

static void bed_close(void)
{
	root_fd = fd_close(root_fd);
	CHECK_INT(scratch_remove(path), 0);
}

static void put(const char *name, const char *text, mode_t mode)
{
	_cleanup_fd_ int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
	CHECK_INT(fchmod(fd, mode), 0);
}

static int on_directory(void *userdata, const char *below)
{
	size_t n = strlen(seen);

	(void)str_printf(seen + n, sizeof(seen) - n, "[%s]", below);
	return *(int *)userdata;
}

static int read_it(struct tree_list *l, int r, struct error *err)
{
	*err = (struct error)ERROR_INIT;
	return tree_list_read(l, root_fd, "v/", &limits, on_directory, &r, err);
}

static void reads_and_writes(void)
{
	struct tree_list l = TREE_LIST_INIT;
	struct error err;
	struct stat st;
	char text[16] = "";

	bed_open();
	put("v/in/a", "12345", 0440);
	put("v/b", "67890", 04711);
	put("v/empty", "", 0400);
	CHECK_INT(symlinkat("in/a", root_fd, "v/link"), 0);
	if (read_it(&l, 0, &err) == 0) {
		CHECK_INT(l.n, 6);
		CHECK_INT(l.bytes, 10);
		CHECK_STR(seen, "[][in]");
		CHECK_INT(tree_list_write(&l, root_fd, "w", &err), 0);
		CHECK_INT(fstatat(root_fd, "w/in/a", &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFREG | 0440);
		CHECK_INT(fstatat(root_fd, "w", &st, 0), 0);
		CHECK_INT(st.st_mode, S_IFDIR | 0750);
		CHECK_INT(readlinkat(root_fd, "w/link", text, sizeof(text) - 1), 4);
		CHECK_STR(text, "in/a");
	}
	CHECK_STR(err.text, "");
	tree_list_done(&l);
	tree_list_done(&l);
	bed_close();
}

/* Each at its edge, above and then past it. */
static void keeps_its_limits(void)
{
	struct tree_list l = TREE_LIST_INIT;
	struct error err;

	bed_open();
	put("v/a", "1234567890", 0400);
	CHECK_INT(read_it(&l, 0, &err), 0);
	tree_list_done(&l);
	put("v/b", "1", 0400);
	CHECK(read_it(&l, 0, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	CHECK(l.items == NULL && l.n == 0);
	put("v/b", "", 0400);
	put("v/c", "", 0400);
	put("v/d", "", 0400);
	CHECK_INT(read_it(&l, 0, &err), 0);
	CHECK_INT(l.n, limits.n_max);
	tree_list_done(&l);
	put("v/e", "", 0400);
	CHECK(read_it(&l, 0, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	bed_close();
}

static void refuses(void)
{
	struct tree_list l = TREE_LIST_INIT;
	struct error err;

	bed_open();
	CHECK(read_it(&l, -ESTALE, &err) < 0);
	CHECK_INT(err.code, -ESTALE);
	CHECK_INT(mkfifoat(root_fd, "v/fifo", 0600), 0);
	CHECK(read_it(&l, 0, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(strstr(err.text, "FIFO") != NULL);
	CHECK(tree_list_read(&l, root_fd, "nowhere/", &limits, NULL, NULL, &err) < 0);
	CHECK(l.items == NULL && l.n == 0);
	bed_close();
}

UNIT_MAIN({ "reads_and_writes", reads_and_writes }, { "keeps_its_limits", keeps_its_limits },
	  { "refuses", refuses })
