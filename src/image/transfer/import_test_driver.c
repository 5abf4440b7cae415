/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The store of images without the daemon, for tests:
 *
 *   image-driver ROOT FETCH import PATH [NAME]   prints the id
 *   image-driver ROOT FETCH root PATH CONFIG [NAME] the same of the tar of a root file system
 *   image-driver ROOT FETCH batch                imports each path of stdin, prints a line for
 * each: "ok ID LAYER..." or "KIND: TEXT" image-driver ROOT FETCH both PATH PATH       two imports
 * at once image-driver ROOT FETCH pull REF...          pulls all of them at once
 *   image-driver ROOT FETCH pullcancel REF MS REF...  begins a pull, the others, and cancels the
 * first image-driver ROOT FETCH cancel PATH MS       begins an import and cancels it image-driver
 * ROOT FETCH list                 id, names, layers, size of each image-driver ROOT FETCH rm REF
 *   image-driver ROOT FETCH rootfs REF ID        mounts it on ROOT/mnt and runs until its stdin
 * ends
 *
 * Exit status 1: refused or failed, with the text on stderr as "KIND: TEXT". `sweep` removes what
 * containers of an earlier run left.
 */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "image/image.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "store/root.h"

static const char *const kinds[] = {
	[ERROR_FAULT] = "fault",
	[ERROR_INVALID] = "invalid",
	[ERROR_PRECONDITION] = "precondition",
	[ERROR_NOT_FOUND] = "not-found",
	[ERROR_EXISTS] = "exists",
	[ERROR_UNAVAILABLE] = "unavailable",
	[ERROR_EXHAUSTED] = "exhausted",
	[ERROR_UNSUPPORTED] = "unsupported",
	[ERROR_DENIED] = "denied",
	[ERROR_UNAUTHENTICATED] = "unauthenticated",
	[ERROR_CANCELLED] = "cancelled",
	[ERROR_DEADLINE] = "deadline",
	[ERROR_ABORTED] = "aborted",
	[ERROR_UNKNOWN] = "unknown",
};

struct driver {
	struct loop *loop;
	struct pool *pool;
	struct root_store *root;
	struct image_store *images;
	int root_fd;
	const char *root_path;
	char transfer[PATH_MAX];
	int pending;
	int result;
	struct image_import *import;
	const char *ref;
	struct image_pull *pull, *first;
	char **more;
	nsec_t delay;
	struct loop_timer timer;
	unsigned looks;
	struct pool_work barrier;
};

#define CANCEL_LOOK (20 * NSEC_PER_MSEC)
#define CANCEL_LOOKS 3000

static int driver_fail(struct driver *d, const struct error *err)
{
	(void)fprintf(stderr, "%s: %s\n", kinds[err->kind], error_text(err));
	d->result = 1;
	return 1;
}

static void on_progress(void *userdata, const char *text)
{
	(void)fprintf(stderr, "# %s\n", text);
}

static void on_done(void *userdata, struct image *image, const struct error *err)
{
	struct driver *d = userdata;

	if (err)
		(void)driver_fail(d, err);
	else
		(void)printf("%s\n", image->id);
	if (--d->pending == 0)
		loop_quit(d->loop, 0);
}

static void on_image(void *userdata, struct image *image)
{
	for (size_t i = 0; image->names && image->names[i]; i++)
		(void)fprintf(stderr, "# name %s\n", image->names[i]);
}

static const struct image_import_ops ops = { on_progress, on_image, on_done };

static int driver_import(struct driver *d, const char *path, const char *name, const char *config)
{
	struct error err = ERROR_INIT;

	if (image_import_start(d->images,
			       &(struct image_import_what){ .path = path,
							    .name = name,
							    .config = config,
							    .source = "",
							    .ref = d->ref ? d->ref : "" },
			       &ops, d, &d->import, &err) < 0)
		return driver_fail(d, &err);
	d->pending++;
	return 0;
}

static int run_import(struct driver *d, char **args)
{
	d->ref = args[1] ? args[2] : NULL;
	if (driver_import(d, args[0], args[1] ? args[1] : "", "") == 0)
		(void)loop_run(d->loop);
	return d->result;
}

static int run_root(struct driver *d, char **args)
{
	if (driver_import(d, args[0], args[2] ? args[2] : "", args[1]) == 0)
		(void)loop_run(d->loop);
	return d->result;
}

static void on_batch_done(void *userdata, struct image *image, const struct error *err)
{
	struct driver *d = userdata;

	if (err)
		(void)printf("%s: %s\n", kinds[err->kind], error_text(err));
	else
		(void)printf("ok %s", image->id);
	for (size_t i = 0; image && i < image->n_layers; i++)
		(void)printf(" %lld", (long long)image->layers[i]);
	if (image)
		(void)printf("\n");
	(void)fflush(stdout);
	loop_quit(d->loop, 0);
}

static int run_batch(struct driver *d, char **args)
{
	static const struct image_import_ops batch_ops = { NULL, NULL, on_batch_done };
	char path[4096];

	while (fgets(path, sizeof(path), stdin)) {
		struct error err = ERROR_INIT;

		path[strcspn(path, "\n")] = '\0';
		if (image_import_start(d->images,
				       &(struct image_import_what){ path, "", "", "", "" },
				       &batch_ops, d, &d->import, &err) < 0) {
			(void)printf("%s: %s\n", kinds[err.kind], error_text(&err));
			(void)fflush(stdout);
			continue;
		}
		(void)loop_run(d->loop);
	}
	return 0;
}

static int run_both(struct driver *d, char **args)
{
	(void)driver_import(d, args[0], "", "");
	(void)driver_import(d, args[1], "", "");
	if (d->pending)
		(void)loop_run(d->loop);
	return d->result;
}

static void on_event(void *userdata, const struct image_pull_event *e)
{
	static const char *const words[] = { "resolved", "note",   "waiting",
					     "loading",  "loaded", "unpacked" };

	(void)fprintf(stderr, "# %s %s layer %u/%u %llu/%llu%s %s\n", words[e->step], e->digest,
		      e->layer, e->n_layers, (unsigned long long)e->n_bytes,
		      (unsigned long long)e->size, e->there ? " there" : "", e->text);
}

static const struct image_pull_ops pull_ops = { on_event, on_done };

static int driver_pull(struct driver *d, const char *reference)
{
	const struct image_pull_request q = { .reference = reference };
	struct error err = ERROR_INIT;

	if (image_pull_start(d->images, &q, &pull_ops, d, &d->pull, &err) < 0)
		return driver_fail(d, &err);
	d->pending++;
	return 0;
}

static int run_pull(struct driver *d, char **args)
{
	for (char **a = args; *a; a++)
		(void)driver_pull(d, *a);
	if (d->pending)
		(void)loop_run(d->loop);
	return d->result;
}

/* Ends when nothing of what was cancelled lies in staging any more, or after CANCEL_LOOKS. */
static void cancel_look(struct driver *d, struct loop_timer *timer)
{
	int fd = sysio_openat(d->root_fd, "staging", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	size_t n = 0;

	while (dir && (e = readdir(dir)))
		n += !str_eq(e->d_name, ".") && !str_eq(e->d_name, "..");
	if (dir)
		(void)closedir(dir);
	if (n == 0 || ++d->looks == CANCEL_LOOKS)
		loop_quit(d->loop, 0);
	else
		loop_timer_set(timer, CANCEL_LOOK);
}

static void cancel_pull_later(struct loop_timer *timer)
{
	struct driver *d = container_of(timer, struct driver, timer);

	if (d->more) {
		for (char **a = TAKE_PTR(d->more); *a; a++)
			(void)driver_pull(d, *a);
		loop_timer_set(timer, d->delay);
		return;
	}
	if (d->first) {
		image_pull_cancel(TAKE_PTR(d->first));
		if (--d->pending > 0)
			return;
		loop_timer_set(timer, CANCEL_LOOK);
		return;
	}
	cancel_look(d, timer);
}

static int run_pull_cancel(struct driver *d, char **args)
{
	if (driver_pull(d, args[0]) != 0)
		return 1;
	d->first = d->pull;
	d->more = args + 2;
	d->delay = strtoull(args[1], NULL, 10) * NSEC_PER_MSEC / 2;
	loop_timer_init(&d->timer, d->loop, cancel_pull_later);
	loop_timer_set(&d->timer, d->delay);
	(void)loop_run(d->loop);
	loop_timer_done(&d->timer);
	return d->result;
}

static void cancel_later(struct loop_timer *timer)
{
	struct driver *d = container_of(timer, struct driver, timer);

	if (d->import) {
		image_import_cancel(d->import);
		d->import = NULL;
		loop_timer_set(timer, CANCEL_LOOK);
		return;
	}
	cancel_look(d, timer);
}

static int run_cancel(struct driver *d, char **args)
{
	if (driver_import(d, args[0], "", "") != 0)
		return 1;
	loop_timer_init(&d->timer, d->loop, cancel_later);
	loop_timer_set(&d->timer, strtoull(args[1], NULL, 10) * NSEC_PER_MSEC);
	(void)loop_run(d->loop);
	loop_timer_done(&d->timer);
	return d->result;
}

static int run_list(struct driver *d, char **args)
{
	const struct image *i;

	list_for_each (i, image_store_list(d->images), struct image, link) {
		(void)printf("%s", i->id);
		for (size_t k = 0; i->names[k]; k++)
			(void)printf(" %s", i->names[k]);
		for (size_t k = 0; k < i->n_layers; k++)
			(void)printf(" %lld", (long long)i->layers[k]);
		(void)printf(" size=%llu\n", (unsigned long long)i->size);
	}
	return 0;
}

static void on_removed(void *userdata, const struct error *err)
{
	struct driver *d = userdata;

	if (err)
		(void)driver_fail(d, err);
	loop_quit(d->loop, 0);
}

static int run_rm(struct driver *d, char **args)
{
	struct error err = ERROR_INIT;

	if (image_store_remove(d->images, args[0], on_removed, d, &err) < 0)
		return driver_fail(d, &err);
	(void)loop_run(d->loop);
	return d->result;
}

static int run_rootfs(struct driver *d, char **args)
{
	_cleanup_str_ char *target = str_format("%s/mnt", d->root_path);
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = -1;
	struct image *image;
	char byte;

	image = image_store_find(d->images, args[0], &err);
	if (!image)
		return driver_fail(d, &err);
	fd = image_rootfs_make(d->images, image, args[1], NULL, NULL, &err);
	if (fd < 0)
		return driver_fail(d, &err);
	(void)mkdirat(d->root_fd, "mnt", 0755);
	if (sysio_move_mount(fd, "", AT_FDCWD, target, MOVE_MOUNT_F_EMPTY_PATH) < 0) {
		(void)error_set(&err, -errno, "move the mount");
		return driver_fail(d, &err);
	}
	fd = fd_close(fd);
	(void)printf("mounted\n");
	(void)fflush(stdout);
	while (read(STDIN_FILENO, &byte, 1) > 0)
		;
	return 0;
}

static int run_sweep(struct driver *d, char **args)
{
	image_rootfs_sweep(d->images);
	return 0;
}

static const struct {
	const char *name;
	int n_args;
	int (*run)(struct driver *d, char **args);
} commands[] = {
	{ "import", 1, run_import },
	{ "root", 2, run_root },
	{ "batch", 0, run_batch },
	{ "both", 2, run_both },
	{ "cancel", 2, run_cancel },
	{ "list", 0, run_list },
	{ "rm", 1, run_rm },
	{ "rootfs", 2, run_rootfs },
	{ "sweep", 0, run_sweep },
	{ "pull", 1, run_pull },
	{ "pullcancel", 2, run_pull_cancel },
};

static int driver_open(struct driver *d, const char *root, const char *fetch, struct error *err)
{
	/* As on a machine with more processors than a builder has. */
	struct image_store_config config = { .fetch_path = fetch,
					     .transfer_path = d->transfer,
					     .parallel_unpacks = 4 };
	int r;

	/* Beside the other one. */
	(void)str_printf(d->transfer, sizeof(d->transfer), "%.*s/nacre-transfer",
			 (int)(strrchr(fetch, '/') - fetch), fetch);
	d->root_path = root;
	d->root_fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (d->root_fd < 0)
		return error_set(err, -errno, "open %s", root);
	if (loop_new(&d->loop) < 0 || pool_new(&d->pool, d->loop, 1) < 0)
		return error_set(err, -ENOMEM, "make a loop");
	r = root_store_open(&d->root, d->pool, d->root_fd, "root.db", err);
	if (r < 0)
		return r;
	config.loop = d->loop;
	config.pool = d->pool;
	config.store = d->root;
	config.root_fd = d->root_fd;
	return image_store_new(&d->images, &config, err);
}

static void barrier_run(struct pool_work *work)
{
}

static void barrier_done(struct pool_work *work)
{
	loop_quit(container_of(work, struct driver, barrier)->loop, 0);
}

/* The pool has one thread, so what was given to it before is done after this. */
static void driver_settle(struct driver *d)
{
	d->barrier = (struct pool_work){ .run = barrier_run, .done = barrier_done };
	pool_submit(d->pool, &d->barrier);
	(void)loop_run(d->loop);
}

int main(int argc, char **argv)
{
	struct driver d = { .root_fd = -1 };
	struct error err = ERROR_INIT;
	int result = 2;

	if (argc < 4)
		return 2;
	if (driver_open(&d, argv[1], argv[2], &err) < 0)
		result = driver_fail(&d, &err);
	for (size_t i = 0; d.images && i < ARRAY_SIZE(commands); i++)
		if (str_eq(commands[i].name, argv[3]) && argc >= 4 + commands[i].n_args)
			result = commands[i].run(&d, argv + 4);
	if (d.images)
		driver_settle(&d);
	d.pool = pool_free(d.pool);
	d.images = image_store_free(d.images);
	d.root = root_store_close(d.root);
	d.loop = loop_free(d.loop);
	(void)fd_close(d.root_fd);
	return result;
}
