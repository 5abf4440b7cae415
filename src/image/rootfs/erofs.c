/* SPDX-License-Identifier: Apache-2.0 */
#include "image/rootfs/erofs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <linux/mount.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/inventory.h"
#include "base/text/str.h"
#include "image/content/model.h"
#include "image/content/room.h"
#include "image/helper/detached.h"
#include "image/image.h"
#include "image/rootfs/overlay.h"
#include "isolate/spawn/spawn.h"

/*
 * Theory of operation. The layers, mounted as one tree without anything over it, say themselves
 * what whiteouts and opaque directories mean, so that the file has none. mkfs.erofs sees a root of
 * its own: that tree, the system's /usr, and a directory of staging/ for what it writes; no
 * network, and no more privilege than reading takes. What it has made is looked at, made safe on
 * the disk, and takes its name, which is that of the highest layer: erofs/N. Whoever asks meanwhile
 * joins.
 */

#define EROFS_PROGRAM "mkfs.erofs"
#define EROFS_NAME_SIZE 32
#define EROFS_WORDS_MAX 512
/* Of the superblock: Documentation/filesystems/erofs.rst. */
#define EROFS_SUPER_AT 1024
#define EROFS_SUPER_SIZE 128
#define EROFS_MAGIC 0xe0f5e1e2U
#define EROFS_AT_BLOCK_BITS 12
#define EROFS_AT_BLOCKS 36

/* Nothing goes away while it reads: what it does not find there it has named too shortly. */
#define EROFS_NO_FILE "No such file or directory"
#define EROFS_LONG_NAME " (version 1.5 says so of a name of 255 bytes)"

struct erofs_waiter {
	struct list link;
	image_erofs_fn done;
	void *userdata;
};

struct erofs_job {
	struct list link; /* of the store */
	struct image_store *store;
	struct image *image; /* held; NULL once it is forgotten */
	struct list waiters;
	char name[EROFS_NAME_SIZE]; /* in erofs/ */
	char dir[EROFS_NAME_SIZE];  /* in staging/ */
	int dir_fd, words_fd;
	struct isolate_child child;
	struct loop_child watch;
	struct loop_defer answer;
	struct pool_work work;
	bool running;
	int fd; /* what was made */
	struct error err;
};

static void erofs_job_free(struct erofs_job *j)
{
	struct erofs_waiter *w;

	if (j->running) {
		(void)pidfd_kill(j->child.pidfd, SIGKILL);
		loop_child_done(&j->watch);
	}
	isolate_child_done(&j->child);
	list_for_each (w, &j->waiters, struct erofs_waiter, link)
		free(w);
	list_remove(&j->link);
	loop_defer_done(&j->answer);
	if (j->dir_fd >= 0)
		trash_add(j->store, j->store->staging_fd, j->dir, NULL);
	(void)fd_close(j->dir_fd);
	(void)fd_close(j->words_fd);
	(void)fd_close(j->fd);
	if (j->image)
		j->image->n_users--;
	free(j);
}

/* ---- the answer ---- */

static void erofs_on_answer(struct loop_defer *d)
{
	struct erofs_job *j = container_of(d, struct erofs_job, answer);
	struct list waiters = LIST_INIT(waiters);
	struct erofs_waiter *w;
	_cleanup_fd_ int fd = TAKE_FD(j->fd);
	struct error err = j->err;

	FAILPOINT_AFTER("image.disk");
	list_for_each (w, &j->waiters, struct erofs_waiter, link) {
		list_remove(&w->link);
		list_add_tail(&waiters, &w->link);
	}
	erofs_job_free(j);
	list_for_each (w, &waiters, struct erofs_waiter, link) {
		int copy = fd < 0 ? fd : fd_copy(fd);

		if (fd >= 0 && copy < 0)
			(void)error_set(&err, copy, "pass the file of an image on");
		w->done(w->userdata, copy < 0 ? -1 : copy, copy < 0 ? &err : NULL);
		free(w);
	}
}

static void erofs_job_fail(struct erofs_job *j, const struct error *err)
{
	j->err = *err;
	loop_defer_schedule(&j->answer);
}

/* ---- what was made ---- */

static uint32_t erofs_u32(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

/* Whether it is one, and whole. */
static int erofs_check(int fd, struct error *err)
{
	uint8_t super[EROFS_SUPER_SIZE];
	struct stat st;
	uint64_t size;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    sysio_pread(fd, super, sizeof(super), EROFS_SUPER_AT) != (ssize_t)sizeof(super))
		return error_refuse(err, ERROR_FAULT, EROFS_PROGRAM " has made no file system");
	if (erofs_u32(super) != EROFS_MAGIC || super[EROFS_AT_BLOCK_BITS] < 9 ||
	    super[EROFS_AT_BLOCK_BITS] > 16)
		return error_refuse(err, ERROR_FAULT, EROFS_PROGRAM " has made something else");
	size = (uint64_t)erofs_u32(super + EROFS_AT_BLOCKS) << super[EROFS_AT_BLOCK_BITS];
	if (size > (uint64_t)st.st_size)
		return error_refuse(err, ERROR_FAULT, EROFS_PROGRAM " has made %llu bytes of %llu",
				    (unsigned long long)st.st_size, (unsigned long long)size);
	return 0;
}

/* On the pool. */
static void erofs_run(struct pool_work *work)
{
	struct erofs_job *j = container_of(work, struct erofs_job, work);
	_cleanup_fd_ int fd =
		sysio_openat(j->dir_fd, "image", O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);

	if (fd < 0) {
		(void)error_set(&j->err, -errno, "open what " EROFS_PROGRAM " has made");
		return;
	}
	if (erofs_check(fd, &j->err) < 0)
		return;
	if (sysio_fsync(fd) < 0 ||
	    sysio_renameat(j->dir_fd, "image", j->store->erofs_fd, j->name) < 0) {
		(void)error_set(&j->err, -errno, "keep what " EROFS_PROGRAM " has made");
		return;
	}
	j->fd = TAKE_FD(fd);
}

static void erofs_ran(struct pool_work *work)
{
	loop_defer_schedule(&container_of(work, struct erofs_job, work)->answer);
}

/* ---- the program ---- */

/* How it ended, with the end of what it said. */
static void erofs_judge(struct erofs_job *j, int code, int status, struct error *err)
{
	char words[EROFS_WORDS_MAX + 1] = "";
	ssize_t n = sysio_read(j->words_fd, words, EROFS_WORDS_MAX);

	words[n > 0 ? n : 0] = '\0';
	words[strcspn(words, "\n")] = '\0';
	if (code != CLD_EXITED)
		(void)error_refuse(err, ERROR_FAULT, EROFS_PROGRAM " was killed by signal %d",
				   status);
	else if (status != 0)
		(void)error_refuse(err, ERROR_FAULT,
				   EROFS_PROGRAM " ended with status %d: %.200s%s", status, words,
				   strstr(words, EROFS_NO_FILE) ? EROFS_LONG_NAME : "");
	if (err->code && j->image)
		(void)error_wrap(err, err->code, "make a file of image %.150s",
				 j->image->names[0] ?: j->image->id);
}

static void erofs_on_end(struct loop_child *watch, int code, int status)
{
	struct erofs_job *j = container_of(watch, struct erofs_job, watch);
	struct error err = ERROR_INIT;
	int exit_code;

	if (isolate_child_report(&j->child, &exit_code, &err) == 0)
		erofs_judge(j, code, status, &err);
	/* Its layers may be gone by now. */
	if (!j->image && !err.code)
		(void)error_set(&err, -ECANCELED, "make the file of an image");
	loop_child_done(&j->watch);
	j->running = false;
	if (err.code)
		erofs_job_fail(j, &err);
	else
		pool_submit(j->store->config.pool, &j->work);
}

/* Where it is on this host; ERROR_PRECONDITION where it is not. */
static int erofs_find_program(int usr_fd, char path[64], struct error *err)
{
	static const char *const dirs[] = { "bin", "sbin" };

	for (size_t i = 0; i < ARRAY_SIZE(dirs); i++) {
		_cleanup_fd_ int dir_fd = -1, fd = -1;

		dir_fd = sysio_openat(usr_fd, dirs[i], O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
		fd = dir_fd < 0 ? -1 : sysio_openat(dir_fd, EROFS_PROGRAM, O_PATH | O_CLOEXEC, 0);
		if (fd < 0)
			continue;
		return str_printf(path, 64, "/usr/%s/" EROFS_PROGRAM, dirs[i]) < 0 ? -EINVAL : 0;
	}
	return error_refuse(err, ERROR_PRECONDITION,
			    EROFS_PROGRAM " is missing (Debian's package erofs-utils), which makes "
					  "images for virtual machines");
}

/*
 * Should: give the program the tree, read-only, the system's programs, and one directory to write
 * to, with what reading any file takes. Must not: hand down anything else.
 */
static int erofs_spawn(struct erofs_job *j, int root_fd, int usr_fd, int tree_fd, int words_fd,
		       struct error *err)
{
	struct isolate_mount mounts[] = { ISOLATE_MOUNT_INIT, ISOLATE_MOUNT_INIT };
	char program[64], quiet[] = "--quiet", image[] = "/image", tree[] = "/tree";
	char *argv[] = { program, quiet, image, tree, NULL };
	char *env[] = { NULL };
	struct isolate_plan plan;
	int r;

	r = FAILPOINT("image.disk");
	if (r < 0)
		return error_set(err, r, "start " EROFS_PROGRAM);
	r = erofs_find_program(usr_fd, program, err);
	if (r < 0)
		return r;
	mounts[0].target = "/usr";
	mounts[0].source_fd = usr_fd;
	mounts[0].attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
	mounts[1].target = "/tree";
	mounts[1].source_fd = tree_fd;
	mounts[1].detached = true;
	isolate_plan_init(&plan);
	for (size_t ns = ISOLATE_NS_PID; ns <= ISOLATE_NS_UTS; ns++)
		plan.ns[ns] = ISOLATE_NEW;
	plan.root = ISOLATE_ROOT_TREE;
	plan.root_fd = root_fd;
	plan.mounts = mounts;
	plan.n_mounts = ARRAY_SIZE(mounts);
	plan.argv = argv;
	plan.env = env;
	plan.caps = UINT64_C(1) << CAP_DAC_READ_SEARCH;
	plan.no_new_privs = true;
	plan.seccomp = isolate_seccomp_default(isolate_caps_default);
	plan.new_session = true;
	plan.death_signal = SIGKILL;
	plan.stdio[2] = words_fd;
	return isolate_spawn(&plan, &j->child, err);
}

static int erofs_make_place(struct erofs_job *j, struct error *err)
{
	struct image_store *s = j->store;

	(void)str_printf(j->dir, sizeof(j->dir), "erofs-%" PRIu64, ++s->n_erofs);
	if (sysio_mkdirat(s->staging_fd, j->dir, 0700) < 0)
		return error_set(err, -errno, "make a directory for the file of an image");
	j->dir_fd = sysio_openat(s->staging_fd, j->dir,
				 O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (j->dir_fd < 0 || sysio_symlinkat("usr/lib", j->dir_fd, "lib") < 0 ||
	    sysio_symlinkat("usr/lib64", j->dir_fd, "lib64") < 0)
		return error_set(err, -errno, "make a directory for the file of an image");
	return detached_open(j->dir_fd, "", 0, err);
}

static int erofs_start(struct erofs_job *j, struct error *err)
{
	_cleanup_fd_ int root_fd = -1, usr_fd = -1, tree_fd = -1, words_fd = -1;
	int words[2], r;

	/* It is hardly smaller than its layers are when they are compressed. */
	r = room_check(j->store, j->image->size, err);
	if (r < 0)
		return r;
	usr_fd = sysio_openat(AT_FDCWD, "/usr", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	if (usr_fd < 0)
		return error_set(err, -errno, "open /usr");
	root_fd = erofs_make_place(j, err);
	if (root_fd < 0)
		return root_fd;
	tree_fd = overlay_mount(j->store, j->image, NULL, -1, NULL, err);
	if (tree_fd < 0)
		return tree_fd;
	if (pipe2(words, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe for " EROFS_PROGRAM);
	j->words_fd = words[0];
	words_fd = words[1];
	r = erofs_spawn(j, root_fd, usr_fd, tree_fd, words_fd, err);
	if (r < 0)
		return r;
	j->running = true;
	loop_child_init(&j->watch, j->store->config.loop, j->child.pidfd, erofs_on_end);
	return 0;
}

/* ---- who asks ---- */

int64_t erofs_number(const struct image *image)
{
	return image->n_layers ? image->layers[image->n_layers - 1] : 0;
}

static void erofs_name(const struct image *image, char ret[EROFS_NAME_SIZE])
{
	(void)str_printf(ret, EROFS_NAME_SIZE, "%" PRId64, erofs_number(image));
}

int erofs_open_file(const struct image_store *s, const struct image *image)
{
	char name[EROFS_NAME_SIZE];
	int fd;

	erofs_name(image, name);
	fd = sysio_openat(s->erofs_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0);
	return fd < 0 ? -errno : fd;
}

static struct erofs_job *erofs_job_new(struct image_store *s, struct image *image)
{
	struct erofs_job *j = calloc(1, sizeof(*j));

	if (!j)
		return NULL;
	*j = (struct erofs_job){ .store = s,
				 .image = image,
				 .dir_fd = -1,
				 .words_fd = -1,
				 .child = ISOLATE_CHILD_INIT,
				 .work = { .run = erofs_run, .done = erofs_ran },
				 .fd = -1,
				 .err = ERROR_INIT };
	list_init(&j->link);
	list_init(&j->waiters);
	loop_defer_init(&j->answer, s->config.loop, erofs_on_answer);
	erofs_name(image, j->name);
	image->n_users++;
	list_add_tail(&s->erofs, &j->link);
	return j;
}

static struct erofs_job *erofs_find(struct image_store *s, const struct image *image)
{
	char name[EROFS_NAME_SIZE];
	struct erofs_job *j;

	erofs_name(image, name);
	list_for_each (j, &s->erofs, struct erofs_job, link)
		if (str_eq(j->name, name) && j->image)
			return j;
	return NULL;
}

static int erofs_begin(struct image_store *s, struct image *image, struct erofs_job **ret,
		       struct error *err)
{
	struct erofs_job *j = erofs_job_new(s, image);
	int r = 0;

	if (!j)
		return error_set(err, -ENOMEM, "make the file of an image");
	j->fd = erofs_open_file(s, image);
	if (j->fd >= 0)
		loop_defer_schedule(&j->answer);
	else
		r = erofs_start(j, err);
	if (r < 0) {
		erofs_job_free(j);
		return r;
	}
	*ret = j;
	return 0;
}

int image_erofs_open(struct image_store *s, struct image *image, image_erofs_fn done,
		     void *userdata, struct error *err)
{
	struct erofs_waiter *w = malloc(sizeof(*w));
	struct erofs_job *j = erofs_find(s, image);
	int r = 0;

	if (!w)
		return error_set(err, -ENOMEM, "make the file of an image");
	if (!j)
		r = erofs_begin(s, image, &j, err);
	if (r < 0) {
		free(w);
		return error_wrap(err, r, "the file of image %.100s", image->id);
	}
	*w = (struct erofs_waiter){ .done = done, .userdata = userdata };
	list_init(&w->link);
	list_add_tail(&j->waiters, &w->link);
	return 0;
}

static void erofs_job_forget(struct erofs_job *j, const void *userdata)
{
	struct erofs_waiter *w;

	list_for_each (w, &j->waiters, struct erofs_waiter, link)
		if (w->userdata == userdata) {
			list_remove(&w->link);
			free(w);
		}
	/* Its end is told nobody. What was made already is kept. */
	if (list_empty(&j->waiters) && j->running && j->image) {
		j->image->n_users--;
		j->image = NULL;
		(void)pidfd_kill(j->child.pidfd, SIGKILL);
	}
}

void erofs_forget(struct image_store *s, const void *userdata)
{
	struct erofs_job *j;

	list_for_each (j, &s->erofs, struct erofs_job, link)
		erofs_job_forget(j, userdata);
}

void erofs_inventory(const struct image_store *s, struct inventory *t)
{
	const struct erofs_job *j;

	list_for_each (j, &s->erofs, struct erofs_job, link)
		inventory_may(t, "staging", j->dir);
}

void erofs_free_all(struct image_store *s)
{
	struct erofs_job *j;

	list_for_each (j, &s->erofs, struct erofs_job, link)
		erofs_job_free(j);
}
