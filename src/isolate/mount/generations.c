/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/mount/generations.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/file/tree_list.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "isolate/mount/mount.h"

/*
 * In this order: the new directory, the link, then the names that lead through it. A name that is
 * new is there a moment after the generation, and one that is gone leads nowhere for a moment.
 */

#define GENERATIONS_LINK "..data"
#define GENERATIONS_NEXT "..next"
#define GENERATIONS_STEM "..g"
#define GENERATIONS_ENTRY_SIZE 32
#define GENERATIONS_TARGET_SIZE (sizeof(GENERATIONS_LINK "/") + NAME_MAX)

static void generations_name(char ret[GENERATIONS_ENTRY_SIZE], uint64_t number)
{
	(void)str_printf(ret, GENERATIONS_ENTRY_SIZE, GENERATIONS_STEM "%llu",
			 (unsigned long long)number);
}

/* The number in the name of a generation; 0 for any other name. */
static uint64_t generations_number(const char *name)
{
	uint64_t number;

	if (!str_has_prefix(name, GENERATIONS_STEM))
		return 0;
	name += strlen(GENERATIONS_STEM);
	return parse_u64(name, 1, UINT64_MAX - 1, &number) == 0 ? number : 0;
}

/* The one in force; 0: none yet. */
static uint64_t generations_current(int root_fd)
{
	char target[GENERATIONS_ENTRY_SIZE];
	ssize_t n = readlinkat(root_fd, GENERATIONS_LINK, target, sizeof(target) - 1);

	if (n < 0)
		return 0;
	target[n] = '\0';
	return generations_number(target);
}

/* ---- where they are ---- */

static int generations_place(const char *name, char ret[GENERATIONS_NAME_MAX + 16])
{
	if (str_empty(name) || strlen(name) > GENERATIONS_NAME_MAX || strchr(name, '/'))
		return -EINVAL;
	return str_printf(ret, GENERATIONS_NAME_MAX + 16, GENERATIONS_PREFIX "%s", name) < 0
		       ? -EINVAL
		       : 0;
}

int generations_open(int own_fd, const char *name)
{
	char place[GENERATIONS_NAME_MAX + 16];
	int r = generations_place(name, place);

	return r < 0 ? r : rootfd_open(own_fd, place, O_RDONLY | O_DIRECTORY | O_NOFOLLOW, 0);
}

bool generations_has(int own_fd, const char *name)
{
	_cleanup_fd_ int fd = generations_open(own_fd, name);

	return fd >= 0;
}

static int generations_mount(int own_fd, const char *place, struct error *err)
{
	_cleanup_fd_ int fd = -1;
	char options[64];
	int r;

	(void)str_printf(options, sizeof(options), "mode=0755,size=%llu,nr_inodes=%d",
			 (unsigned long long)GENERATIONS_BYTES, GENERATIONS_INODES);
	fd = mount_new_from("tmpfs", NULL, options, NULL, MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV,
			    err);
	if (fd < 0)
		return fd;
	if (sysio_mkdirat(own_fd, place, 0700) < 0)
		return error_set(err, -errno, "make a place for files");
	r = mount_attach(fd, own_fd, place, err);
	if (r < 0)
		(void)sysio_unlinkat(own_fd, place, AT_REMOVEDIR);
	return r;
}

static int generations_make(int own_fd, const char *name, struct error *err)
{
	char place[GENERATIONS_NAME_MAX + 16];
	int r = generations_place(name, place);

	if (r < 0)
		return error_set(err, r, "a place for files");
	r = generations_open(own_fd, name);
	if (r == -ENOENT) {
		r = generations_mount(own_fd, place, err);
		if (r < 0)
			return r;
		r = generations_open(own_fd, name);
	}
	return r < 0 ? error_set(err, r, "open %s", place) : r;
}

/* ---- the next one ---- */

static void generations_remove(int root_fd, uint64_t from, uint64_t current)
{
	_cleanup_strv_ char **names = NULL;

	if (fd_list_dir(root_fd, &names) < 0)
		return;
	for (size_t i = 0; names && names[i]; i++) {
		uint64_t number = generations_number(names[i]);

		if (number && (number < from || number > current))
			(void)rootfd_remove_tree(root_fd, names[i]);
	}
}

static int generations_write(int root_fd, uint64_t number, const struct tree_list *tree,
			     struct error *err)
{
	char name[GENERATIONS_ENTRY_SIZE];
	int r;

	generations_name(name, number);
	r = tree_list_write(tree, root_fd, name, err);
	if (r < 0)
		(void)rootfd_remove_tree(root_fd, name);
	return r;
}

static int generations_swap(int root_fd, uint64_t number, struct error *err)
{
	char name[GENERATIONS_ENTRY_SIZE];

	generations_name(name, number);
	(void)sysio_unlinkat(root_fd, GENERATIONS_NEXT, 0);
	if (sysio_symlinkat(name, root_fd, GENERATIONS_NEXT) < 0 ||
	    sysio_renameat(root_fd, GENERATIONS_NEXT, root_fd, GENERATIONS_LINK) < 0)
		return error_set(err, -errno, "put generation %llu into force",
				 (unsigned long long)number);
	return 0;
}

/* Whether the tree has this name right below its root. */
static bool generations_tree_has(const struct tree_list *tree, const char *name)
{
	for (size_t i = 1; i < tree->n; i++) {
		const char *below = strchr(tree->items[i].entry.path, '/');

		if (below && str_eq(below + 1, name))
			return true;
	}
	return false;
}

/* A name that begins with ".." is one of ours. */
static int generations_name_each(int root_fd, const struct tree_list *tree, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	int r;

	for (size_t i = 1; i < tree->n; i++) {
		const char *below = strchr(tree->items[i].entry.path, '/');
		char target[GENERATIONS_TARGET_SIZE];

		if (!below || strchr(below + 1, '/') || str_has_prefix(below + 1, "..") ||
		    str_printf(target, sizeof(target), GENERATIONS_LINK "%s", below) < 0)
			continue;
		if (sysio_symlinkat(target, root_fd, below + 1) < 0 && errno != EEXIST)
			return error_set(err, -errno, "name %.200s", below + 1);
	}
	r = fd_list_dir(root_fd, &names);
	if (r < 0)
		return error_set(err, r, "list the names of a volume");
	for (size_t i = 0; names && names[i]; i++)
		if (!str_has_prefix(names[i], "..") && !generations_tree_has(tree, names[i]))
			(void)sysio_unlinkat(root_fd, names[i], 0);
	return 0;
}

static int generations_dress(int root_fd, const struct tree_entry *e, struct error *err)
{
	if (fchown(root_fd, e->uid, e->gid) < 0 || fchmod(root_fd, e->mode & 07777) < 0)
		return error_set(err, -errno, "set the mode of a volume");
	return 0;
}

int generations_put_at(int root_fd, const struct tree_list *tree, uint64_t *ret, struct error *err)
{
	uint64_t current = generations_current(root_fd);
	int r;

	if (tree->n == 0 || tree->items[0].entry.type != TREE_DIRECTORY ||
	    strchr(tree->items[0].entry.path, '/'))
		return error_refuse(err, ERROR_INVALID, "its first entry is not its directory");
	/* What an earlier program has not finished. */
	generations_remove(root_fd, 0, current);
	r = generations_write(root_fd, current + 1, tree, err);
	if (r == -ENOSPC && current) {
		generations_remove(root_fd, current, current);
		*err = (struct error)ERROR_INIT;
		r = generations_write(root_fd, current + 1, tree, err);
	}
	if (r == 0)
		r = generations_dress(root_fd, &tree->items[0].entry, err);
	if (r == 0)
		r = generations_swap(root_fd, current + 1, err);
	if (r < 0) {
		generations_remove(root_fd, 0, current);
		return r;
	}
	*ret = current + 1;
	return generations_name_each(root_fd, tree, err);
}

int generations_put(int own_fd, const char *name, const struct tree_list *tree, uint64_t *ret,
		    struct error *err)
{
	_cleanup_fd_ int fd = generations_make(own_fd, name, err);

	return fd < 0 ? fd : generations_put_at(fd, tree, ret, err);
}

void generations_retire(int own_fd, const char *name, uint64_t from)
{
	_cleanup_fd_ int fd = generations_open(own_fd, name);
	uint64_t current = fd >= 0 ? generations_current(fd) : 0;

	if (current)
		generations_remove(fd, from < current ? from : current, current);
}
