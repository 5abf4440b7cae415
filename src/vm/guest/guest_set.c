/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/guest_set.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/id.h"
#include "base/text/str.h"

#define SETS_DIR "guest"
#define SETS_DEFAULT "default"
#define SETS_NEW ".new-"
#define SETS_TEACH "nacre guest build makes one"

bool guest_set_is_name(const char *name)
{
	static const char allowed[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._+-";
	size_t len = strlen(name);

	return len > 0 && len <= GUEST_SET_NAME_MAX && strspn(name, allowed) == len &&
	       name[0] != '.' && name[0] != '-' && !str_eq(name, SETS_DEFAULT);
}

/* ---- names and places ---- */

static int set_check_name(const char *name, struct error *err)
{
	if (guest_set_is_name(name))
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "\"%s\" is no name of a guest set: 1 to %d letters, digits and . _ + -",
			    name, GUEST_SET_NAME_MAX);
}

/* -ENOENT without a sentence where no set was ever made. */
static int sets_open(int root_fd, struct error *err)
{
	int fd =
		sysio_openat(root_fd, SETS_DIR, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);

	if (fd < 0 && errno == ENOENT)
		return -ENOENT;
	return fd < 0 ? error_set(err, -errno, "open the guest sets") : fd;
}

static int set_open_dir(int sets_fd, const char *name)
{
	int fd = sysio_openat(sets_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW, 0);

	return fd < 0 ? -errno : fd;
}

static int set_open_file(int dir_fd, const char *name, struct error *err)
{
	int fd = rootfd_open_regular(dir_fd, name);

	return fd < 0 ? error_set(err, fd, "open the file %s of the guest set", name) : fd;
}

/* The name that the default has; "" where there is none. */
static void sets_read_default(int sets_fd, char ret[GUEST_SET_NAME_MAX + 1])
{
	ssize_t n = readlinkat(sets_fd, SETS_DEFAULT, ret, GUEST_SET_NAME_MAX);

	ret[n > 0 ? n : 0] = '\0';
	if (!guest_set_is_name(ret))
		ret[0] = '\0';
}

static int set_read_desc(int dir_fd, struct guest_desc *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r = rootfd_read(dir_fd, "set", GUEST_DESC_BYTES_MAX, &text);

	if (r < 0)
		return error_set(err, r, "read the description of the guest set");
	r = guest_desc_read(ret, (const char *)buf_data(&text), text.len, err);
	return r < 0 ? error_wrap(err, r, "the description of the guest set") : 0;
}

/*
 * The lock is of the open file: it lasts while any process has a copy of that descriptor. To look
 * for one takes none, so that a machine which starts at that moment is not in anybody's way.
 */
static int set_lock(int kernel_fd, short type)
{
	struct flock lock = { .l_type = type, .l_whence = SEEK_SET };

	return fcntl(kernel_fd, F_OFD_SETLK, &lock) < 0 ? -errno : 0;
}

static bool set_is_in_use(int dir_fd)
{
	_cleanup_fd_ int fd = rootfd_open_regular(dir_fd, "kernel");
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

	return fd >= 0 && fcntl(fd, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

/* ---- one set ---- */

static int set_fill(struct guest_set *s, int sets_fd, const char *name, struct error *err)
{
	char chosen[GUEST_SET_NAME_MAX + 1];
	_cleanup_fd_ int dir_fd = set_open_dir(sets_fd, name);
	int r;

	if (dir_fd == -ENOENT)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "there is no guest set %s; nacre guest ls lists those that "
				    "are there, " SETS_TEACH,
				    name);
	if (dir_fd < 0)
		return error_set(err, dir_fd, "open the guest set %s", name);
	s->kernel_fd = set_open_file(dir_fd, "kernel", err);
	if (s->kernel_fd < 0)
		return s->kernel_fd;
	/* Before the rest is read: who removes it has the lock alone. */
	if (set_lock(s->kernel_fd, F_RDLCK) < 0)
		return error_refuse(err, ERROR_UNAVAILABLE, "the guest set %s is being removed",
				    name);
	s->initrd_fd = set_open_file(dir_fd, "initrd", err);
	if (s->initrd_fd < 0)
		return s->initrd_fd;
	r = set_read_desc(dir_fd, &s->info.desc, err);
	if (r < 0)
		return r;
	sets_read_default(sets_fd, chosen);
	(void)str_copy(s->info.name, sizeof(s->info.name), name);
	s->info.in_use = true;
	s->info.is_default = str_eq(chosen, name);
	return 0;
}

int guest_set_open(struct guest_set *ret, int root_fd, const char *name, struct error *err)
{
	char chosen[GUEST_SET_NAME_MAX + 1] = "";
	struct guest_set s = GUEST_SET_INIT;
	_cleanup_fd_ int sets_fd = -1;
	int r;

	r = str_empty(name) ? 0 : set_check_name(name, err);
	if (r < 0)
		return r;
	sets_fd = sets_open(root_fd, err);
	if (sets_fd < 0 && sets_fd != -ENOENT)
		return sets_fd;
	if (sets_fd >= 0 && str_empty(name))
		sets_read_default(sets_fd, chosen);
	if (str_empty(name) && !chosen[0])
		return error_refuse(err, ERROR_PRECONDITION,
				    "this node has no guest set to start a virtual machine "
				    "from; " SETS_TEACH);
	if (sets_fd < 0)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no guest set %s; " SETS_TEACH,
				    name);
	r = set_fill(&s, sets_fd, str_empty(name) ? chosen : name, err);
	if (r < 0) {
		guest_set_done(&s);
		return r;
	}
	*ret = s;
	return 0;
}

void guest_set_done(struct guest_set *s)
{
	s->kernel_fd = fd_close(s->kernel_fd);
	s->initrd_fd = fd_close(s->initrd_fd);
}

int guest_set_open_tools(int root_fd, const char *name, struct error *err)
{
	struct guest_set s = GUEST_SET_INIT;
	_cleanup_fd_ int sets_fd = -1, dir_fd = -1;
	int r = guest_set_open(&s, root_fd, name, err);

	guest_set_done(&s);
	if (r < 0)
		return r;
	sets_fd = sets_open(root_fd, err);
	dir_fd = sets_fd < 0 ? sets_fd : set_open_dir(sets_fd, s.info.name);
	r = dir_fd < 0 ? dir_fd : rootfd_open_regular(dir_fd, "tools");
	if (r == -ENOENT)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the guests of the set %s have no guests: nacre guest build "
				    "--nested makes one whose have",
				    s.info.name);
	return r < 0 ? error_set(err, r, "open the tools of the guest set %s", s.info.name) : r;
}

/* ---- all of them ---- */

/* Whether it is a set. */
static bool set_look(int sets_fd, const char *name, const char *chosen, struct guest_set_info *ret)
{
	_cleanup_fd_ int dir_fd = guest_set_is_name(name) ? set_open_dir(sets_fd, name) : -1;
	struct guest_set_info info = { .name = "" };

	if (dir_fd < 0 || set_read_desc(dir_fd, &info.desc, NULL) < 0)
		return false;
	(void)str_copy(info.name, sizeof(info.name), name);
	info.in_use = set_is_in_use(dir_fd);
	info.is_default = str_eq(name, chosen);
	*ret = info;
	return true;
}

static int set_compare(const void *a, const void *b)
{
	return strcmp(((const struct guest_set_info *)a)->name,
		      ((const struct guest_set_info *)b)->name);
}

int guest_set_look(int root_fd, const char *name, struct guest_set_info *ret)
{
	char chosen[GUEST_SET_NAME_MAX + 1];
	_cleanup_fd_ int sets_fd = sets_open(root_fd, NULL);

	if (sets_fd < 0)
		return sets_fd;
	sets_read_default(sets_fd, chosen);
	return set_look(sets_fd, name, chosen, ret) ? 0 : -ENOENT;
}

int guest_set_list(int root_fd, struct guest_set_info **ret, size_t *ret_n, struct error *err)
{
	char chosen[GUEST_SET_NAME_MAX + 1];
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int sets_fd = sets_open(root_fd, err);
	struct guest_set_info *list;
	size_t n = 0;
	int r;

	*ret = NULL;
	*ret_n = 0;
	if (sets_fd < 0)
		return sets_fd == -ENOENT ? 0 : sets_fd;
	r = fd_list_dir(sets_fd, &names);
	if (r < 0)
		return error_set(err, r, "list the guest sets");
	list = calloc(MIN(strv_len(names), (size_t)GUEST_SETS_MAX) + 1, sizeof(*list));
	if (!list)
		return error_set(err, -ENOMEM, "list the guest sets");
	sets_read_default(sets_fd, chosen);
	for (size_t i = 0; names && names[i] && n < GUEST_SETS_MAX; i++)
		n += set_look(sets_fd, names[i], chosen, &list[n]);
	qsort(list, n, sizeof(*list), set_compare);
	*ret = list;
	*ret_n = n;
	return 0;
}

/* Nobody else changes which sets there are, until the descriptor is closed. */
static int sets_lock(int sets_fd, struct error *err)
{
	if (flock(sets_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return error_refuse(err, ERROR_UNAVAILABLE,
			    "another nacre guest build or rm is at work on the guest sets");
}

/* Renamed first: nobody finds half a set. */
static int set_take_away(int sets_fd, const char *name, struct error *err)
{
	char gone[GUEST_SET_NAME_MAX + 16];
	int r;

	(void)str_printf(gone, sizeof(gone), SETS_NEW "%s", name);
	if (sysio_renameat(sets_fd, name, sets_fd, gone) < 0)
		return error_set(err, -errno, "take the guest set %s away", name);
	r = rootfd_remove_tree(sets_fd, gone);
	return r < 0 ? error_set(err, r, "remove the guest set %s", name) : 0;
}

int guest_set_remove(int root_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int sets_fd = -1, dir_fd = -1, kernel_fd = -1;
	char chosen[GUEST_SET_NAME_MAX + 1];
	int r = set_check_name(name, err);

	if (r < 0)
		return r;
	sets_fd = sets_open(root_fd, err);
	if (sets_fd < 0 && sets_fd != -ENOENT)
		return sets_fd;
	dir_fd = sets_fd >= 0 ? set_open_dir(sets_fd, name) : -ENOENT;
	if (dir_fd == -ENOENT)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no guest set %s", name);
	if (dir_fd < 0)
		return error_set(err, dir_fd, "open the guest set %s", name);
	r = sets_lock(sets_fd, err);
	if (r < 0)
		return r;
	/* For a lock alone, which must be of a file that can be written to. */
	kernel_fd = sysio_openat(dir_fd, "kernel", O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
	if (kernel_fd >= 0 && set_lock(kernel_fd, F_WRLCK) < 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the guest set %s is in use by a virtual machine", name);
	sets_read_default(sets_fd, chosen);
	if (str_eq(chosen, name) && sysio_unlinkat(sets_fd, SETS_DEFAULT, 0) < 0)
		return error_set(err, -errno, "forget the default");
	return set_take_away(sets_fd, name, err);
}

static int sets_write_default(int sets_fd, const char *name, struct error *err)
{
	if ((sysio_unlinkat(sets_fd, SETS_NEW SETS_DEFAULT, 0) < 0 && errno != ENOENT) ||
	    sysio_symlinkat(name, sets_fd, SETS_NEW SETS_DEFAULT) < 0 ||
	    sysio_renameat(sets_fd, SETS_NEW SETS_DEFAULT, sets_fd, SETS_DEFAULT) < 0 ||
	    sysio_fsync(sets_fd) < 0)
		return error_set(err, -errno, "make %s the default", name);
	return 0;
}

int guest_set_make_default(int root_fd, const char *name, struct error *err)
{
	struct guest_set s = GUEST_SET_INIT;
	_cleanup_fd_ int sets_fd = -1;
	/* It must be one that can be used. */
	int r = guest_set_open(&s, root_fd, name, err);

	guest_set_done(&s);
	if (r < 0)
		return r;
	sets_fd = sets_open(root_fd, err);
	if (sets_fd < 0)
		return sets_fd == -ENOENT ? error_set(err, sets_fd, "open the guest sets")
					  : sets_fd;
	r = sets_lock(sets_fd, err);
	return r < 0 ? r : sets_write_default(sets_fd, name, err);
}

/* ---- a new one ---- */

int guest_new_begin(struct guest_new *n, int root_fd, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	char id[ID_SIZE];
	int r;

	if (sysio_mkdirat(root_fd, SETS_DIR, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make the directory of the guest sets");
	n->sets_fd = sets_open(root_fd, err);
	if (n->sets_fd < 0)
		return n->sets_fd == -ENOENT ? error_set(err, n->sets_fd, "open the guest sets")
					     : n->sets_fd;
	r = sets_lock(n->sets_fd, err);
	if (r < 0)
		return r;
	r = fd_list_dir(n->sets_fd, &names);
	for (size_t i = 0; r == 0 && names && names[i]; i++)
		if (str_has_prefix(names[i], SETS_NEW))
			r = rootfd_remove_tree(n->sets_fd, names[i]);
	if (r == 0)
		r = id_new(id);
	if (r < 0)
		return error_set(err, r, "clear the directory of the guest sets");
	(void)str_printf(n->name, sizeof(n->name), SETS_NEW "%s", id);
	if (sysio_mkdirat(n->sets_fd, n->name, 0700) < 0)
		return error_set(err, -errno, "make the directory of a guest set");
	n->dir_fd = set_open_dir(n->sets_fd, n->name);
	return n->dir_fd < 0 ? error_set(err, n->dir_fd, "open the directory of a guest set") : 0;
}

int guest_new_file(struct guest_new *n, const char *name, struct error *err)
{
	int fd = sysio_openat(n->dir_fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW,
			      0644);

	return fd < 0 ? error_set(err, -errno, "make the file %s of a guest set", name) : fd;
}

/* Neither the directory nor a name in the set's place is there before its files are on the disk. */
int guest_new_commit(struct guest_new *n, const char *name, struct error *err)
{
	if (sysio_fsync(n->dir_fd) < 0)
		return error_set(err, -errno, "write the guest set to the disk");
	if (renameat2(n->sets_fd, n->name, n->sets_fd, name, RENAME_NOREPLACE) < 0) {
		if (errno == EEXIST)
			return error_refuse(err, ERROR_EXISTS, "there is a guest set %s already",
					    name);
		return error_set(err, -errno, "name the guest set %s", name);
	}
	n->name[0] = '\0';
	if (sysio_fsync(n->sets_fd) < 0)
		return error_set(err, -errno, "write the guest sets to the disk");
	return 0;
}

void guest_new_done(struct guest_new *n)
{
	if (n->sets_fd >= 0 && n->name[0])
		(void)rootfd_remove_tree(n->sets_fd, n->name);
	n->dir_fd = fd_close(n->dir_fd);
	n->sets_fd = fd_close(n->sets_fd);
}
