/* SPDX-License-Identifier: Apache-2.0 */

/* Directories on a tmpfs of the test's own, real threads and inotify, and a peer that keeps what it
 * is given. */

#include "pod/storage/mirror.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/tree_list.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "instance/peer.h"
#include "isolate/mount/bind.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"

static struct loop *l;
static struct mirrors all;
static char dir[64];
static int dir_fd;

/* ---- a peer ---- */

static struct {
	bool none;   /* there is nobody */
	bool silent; /* answers nothing */
	unsigned n;  /* how often something was given */
	size_t n_files;
	char a[32], b[32], file[32]; /* what two of the files have */
	peer_done_fn done;
	void *userdata;
	struct loop_defer defer;
} given;

static void peer_answers(struct loop_defer *d)
{
	peer_done_fn done = given.done;

	given.done = NULL;
	if (done)
		done(given.userdata, NULL);
}

static void put_files(struct peer *p, const char *volume, const struct tree_list *files,
		      peer_done_fn done, void *userdata)
{
	CHECK_STR(volume, "v0");
	given.n++;
	given.n_files = files->n;
	given.a[0] = given.b[0] = given.file[0] = '\0';
	for (size_t i = 0; i < files->n; i++) {
		const struct tree_item *item = &files->items[i];
		const char *name = strrchr(item->entry.path, '/');
		char *to = !name                   ? NULL
			   : str_eq(name, "/a")    ? given.a
			   : str_eq(name, "/b")    ? given.b
			   : str_eq(name, "/file") ? given.file
						   : NULL;

		if (to && item->entry.size < sizeof(given.a)) {
			memcpy(to, item->data, item->entry.size);
			to[item->entry.size] = '\0';
		}
	}
	given.done = done;
	given.userdata = userdata;
	if (!given.silent)
		loop_defer_schedule(&given.defer);
}

static const struct peer_ops peer_ops = { .put_files = put_files };
static struct peer peer = { .ops = &peer_ops };

/* ---- what is told ---- */

static struct {
	unsigned n_done, n_kept;
	struct error err, kept;
} told;

static struct peer *whom(void *userdata)
{
	return given.none ? NULL : &peer;
}

static void on_done(void *userdata, const struct error *err)
{
	told.n_done++;
	told.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_kept(void *userdata, const struct error *err)
{
	told.n_kept++;
	told.kept = *err;
}

static const struct mirror_ops ops = { .peer = whom, .done = on_done, .kept = on_kept };

/* ---- the world ---- */

static bool begin(void)
{
	const struct volume_guard guard = { -1, -1, -1 };

	memset(&given, 0, sizeof(given));
	memset(&told, 0, sizeof(told));
	(void)str_copy(dir, sizeof(dir), "/tmp/pod-mirror-XXXXXX");
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mkdtemp(dir) != NULL);
	CHECK_INT(mount("t", dir, "tmpfs", 0, NULL), 0);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mkdirat(dir_fd, "s", 0755), 0);
	if (loop_new(&l) < 0)
		return false;
	mirrors_init(&all, l, &guard);
	loop_defer_init(&given.defer, l, peer_answers);
	return true;
}

static void end(void)
{
	if (l) {
		loop_defer_done(&given.defer);
		mirrors_done(&all);
	}
	l = loop_free(l);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(umount2(dir, MNT_DETACH), 0);
	CHECK_INT(scratch_remove(dir), 0);
}

static void put(const char *name, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0400);

	CHECK_INT(fd_write_full(fd, text, strlen(text)), 0);
}

/* As a kubelet does: a new directory, the link, and the old one is gone. */
static void swap(unsigned n)
{
	char name[32], path[64], text[16];

	(void)str_printf(name, sizeof(name), "..g%u", n);
	(void)str_printf(path, sizeof(path), "s/%s", name);
	(void)str_printf(text, sizeof(text), "%u", n);
	CHECK_INT(mkdirat(dir_fd, path, 0755), 0);
	(void)str_printf(path, sizeof(path), "s/%s/a", name);
	put(path, text);
	(void)str_printf(path, sizeof(path), "s/%s/b", name);
	put(path, text);
	CHECK_INT(symlinkat(name, dir_fd, "s/..tmp"), 0);
	CHECK_INT(renameat(dir_fd, "s/..tmp", dir_fd, "s/..data"), 0);
	if (n == 1) {
		CHECK_INT(symlinkat("..data/a", dir_fd, "s/a"), 0);
		CHECK_INT(symlinkat("..data/b", dir_fd, "s/b"), 0);
		return;
	}
	(void)str_printf(path, sizeof(path), "%s/s/..g%u", dir, n - 1);
	(void)str_printf(name, sizeof(name), "s/..g%u", n - 1);
	(void)str_printf(path, sizeof(path), "%s/a", name);
	CHECK_INT(unlinkat(dir_fd, path, 0), 0);
	(void)str_printf(path, sizeof(path), "%s/b", name);
	CHECK_INT(unlinkat(dir_fd, path, 0), 0);
	CHECK_INT(unlinkat(dir_fd, name, AT_REMOVEDIR), 0);
}

static bool one_file;

static struct mirror *mirror_of(const char *path, bool again)
{
	_cleanup_fd_ int at_fd = open(path, O_RDONLY | O_CLOEXEC);
	struct mirror_spec spec = { .name = "v0", .source = path, .fd = -1, .ops = &ops };
	struct mirror *m = NULL;

	spec.one_file = one_file;
	if (!again) {
		spec.fd = isolate_bind(at_fd, ISOLATE_BIND_READ_ONLY, NULL);
		CHECK(spec.fd >= 0);
	}
	if (mirror_new(&m, &all, &spec) < 0)
		(void)fd_close(spec.fd);
	return m;
}

static struct mirror *mirror_s(bool again)
{
	char path[80];

	(void)str_printf(path, sizeof(path), "%s/s", dir);
	return mirror_of(path, again);
}

/* Whether it came to be one; else memory failed. */
static bool is_given(struct mirror *m)
{
	if (m)
		LOOP_WAIT(l, told.n_done == 1);
	return m && told.n_done == 1 && !told.err.code;
}

static void follows_a_link(void)
{
	struct mirror *m;

	if (begin()) {
		swap(1);
		m = mirror_s(false);
		if (is_given(m)) {
			CHECK_STR(given.a, "1");
			CHECK_INT(given.n_files, 3);
			swap(2);
			LOOP_WAIT(l, str_eq(given.b, "2"));
			CHECK_STR(given.a, "2");
			CHECK_INT(told.n_kept, 0);
		}
		(void)mirror_free(m);
	}
	end();
}

static void follows_what_is_in_memory(void)
{
	struct mirror *m;

	if (begin()) {
		CHECK_INT(mkdirat(dir_fd, "s/in", 0700), 0);
		put("s/in/x", "x");
		put("s/a", "1");
		m = mirror_s(false);
		if (is_given(m)) {
			CHECK_INT(given.n_files, 4);
			put("s/in/y", "y");
			LOOP_WAIT(l, given.n_files == 5);
			CHECK_INT(unlinkat(dir_fd, "s/in/x", 0), 0);
			LOOP_WAIT(l, given.n_files == 4);
			CHECK_STR(given.a, "1");
		}
		(void)mirror_free(m);
	}
	end();
}

/* One of an earlier life of the daemon, whose path alone is known. */
static void goes_on_from_a_path(void)
{
	struct mirror *m;

	if (begin()) {
		swap(1);
		m = mirror_s(true);
		if (m) {
			LOOP_WAIT(l, str_eq(given.a, "1"));
			swap(2);
			LOOP_WAIT(l, str_eq(given.a, "2"));
			CHECK_INT(told.n_done, 0);
		}
		(void)mirror_free(m);
	}
	end();
}

struct writer {
	atomic_uint n;
	unsigned n_max;
	pthread_t thread;
};

static void *writer_run(void *data)
{
	struct writer *w = data;

	for (unsigned n = 2; n <= w->n_max; n++) {
		swap(n);
		atomic_store(&w->n, n);
	}
	return NULL;
}

/* However fast it changes, what is given is one state of it; the last one comes in the end. */
static void never_gives_halves(void)
{
	struct writer w = { .n_max = 300 };
	unsigned halves = 0;
	struct mirror *m;

	if (begin()) {
		swap(1);
		m = mirror_s(false);
		if (is_given(m) && pthread_create(&w.thread, NULL, writer_run, &w) == 0) {
			while (atomic_load(&w.n) < w.n_max) {
				loop_turn(l, false);
				halves += !given.a[0] || !str_eq(given.a, given.b);
			}
			CHECK_INT(pthread_join(w.thread, NULL), 0);
			LOOP_WAIT(l, str_eq(given.a, "300"));
			CHECK_STR(given.b, "300");
			CHECK_INT(halves, 0);
		}
		(void)mirror_free(m);
	}
	end();
}

static void fill(size_t n)
{
	for (size_t i = 0; i < n; i++) {
		char name[32];

		(void)str_printf(name, sizeof(name), "s/f%zu", i);
		put(name, "");
	}
}

/* At its edge it is one; past it it keeps what it had, which is said once. */
static void keeps_limits(void)
{
	struct mirror *m;

	if (begin()) {
		fill(VOLUME_FILES_MAX);
		m = mirror_s(false);
		if (is_given(m)) {
			CHECK_INT(given.n_files, VOLUME_FILES_MAX + 1);
			put("s/a", "more");
			LOOP_WAIT(l, told.n_kept == 1);
			CHECK_INT(told.kept.kind, ERROR_EXHAUSTED);
			CHECK_INT(given.n, 1);
			CHECK_INT(unlinkat(dir_fd, "s/f0", 0), 0);
			LOOP_WAIT(l, given.n == 2);
			CHECK_STR(given.a, "more");
			CHECK_INT(told.n_kept, 1);
		}
		(void)mirror_free(m);
	}
	end();
}

static void keeps_limits_of_bytes(void)
{
	struct mirror *m;

	if (begin()) {
		put("s/big", "");
		CHECK_INT(chmod(dir, 0755), 0);
		{
			_cleanup_fd_ int fd = openat(dir_fd, "s/big", O_RDWR | O_CLOEXEC);

			CHECK_INT(ftruncate(fd, (off_t)VOLUME_BYTES_MAX), 0);
			m = mirror_s(false);
			if (is_given(m)) {
				CHECK_INT(given.n_files, 2);
				CHECK_INT(ftruncate(fd, (off_t)VOLUME_BYTES_MAX + 1), 0);
			}
		}
		if (told.n_done && !told.err.code) {
			LOOP_WAIT(l, told.n_kept == 1);
			CHECK_INT(told.kept.kind, ERROR_EXHAUSTED);
		}
		(void)mirror_free(m);
	}
	end();
}

static void expect_none(const char *path, enum error_kind kind)
{
	struct mirror *m = path ? mirror_of(path, false) : mirror_s(false);

	memset(&told, 0, sizeof(told));
	if (m)
		LOOP_WAIT(l, told.n_done == 1);
	if (told.n_done && told.err.code != -ENOMEM)
		CHECK_INT(told.err.kind, kind);
	(void)mirror_free(m);
}

/* Where that is asked for, and at most of so many bytes. */
static void gives_one_file(void)
{
	char path[80];
	struct mirror *m;

	one_file = true;
	if (begin()) {
		put("s/a", "1");
		(void)str_printf(path, sizeof(path), "%s/s/a", dir);
		m = mirror_of(path, false);
		if (is_given(m)) {
			CHECK_INT(given.n_files, 2);
			CHECK_STR(given.file, "1");
		}
		(void)mirror_free(m);
		CHECK_INT(truncate(path, (off_t)VOLUME_BYTES_MAX + 1), 0);
		expect_none(path, ERROR_EXHAUSTED);
	}
	end();
	one_file = false;
}

static void says_that_it_is_gone(void)
{
	struct mirror *m;

	if (begin()) {
		put("s/a", "1");
		m = mirror_s(false);
		if (is_given(m)) {
			CHECK_INT(rootfd_remove_tree(dir_fd, "s"), 0);
			LOOP_WAIT(l, told.n_kept > 0 && told.kept.kind == ERROR_NOT_FOUND);
		}
		(void)mirror_free(m);
	}
	end();
}

static void is_not_any_directory(void)
{
	if (begin()) {
		expect_none("/usr", ERROR_PRECONDITION);
		expect_none("/etc/passwd", ERROR_PRECONDITION);
		CHECK_INT(mkfifoat(dir_fd, "s/fifo", 0600), 0);
		expect_none(NULL, ERROR_PRECONDITION);
		CHECK_INT(unlinkat(dir_fd, "s/fifo", 0), 0);
		put("s/..x", "");
		expect_none(NULL, ERROR_PRECONDITION);
		CHECK_INT(unlinkat(dir_fd, "s/..x", 0), 0);
		CHECK_INT(symlinkat("/etc", dir_fd, "s/..data"), 0);
		expect_none(NULL, ERROR_PRECONDITION);
		CHECK_INT(unlinkat(dir_fd, "s/..data", 0), 0);
		swap(1);
		put("s/beside", "");
		expect_none(NULL, ERROR_PRECONDITION);
		CHECK_INT(unlinkat(dir_fd, "s/beside", 0), 0);
		fill(0);
		CHECK_INT(given.n, 0);
	}
	end();
}

/* A peer that goes away with a question is asked again when there is one. */
static void outlives_its_peer(void)
{
	struct mirror *m;

	if (begin()) {
		put("s/a", "1");
		m = mirror_s(false);
		if (is_given(m)) {
			given.silent = true;
			put("s/a", "2");
			LOOP_WAIT(l, given.n == 2);
			given.done = NULL;
			given.silent = false;
			mirror_lose_peer(m);
			LOOP_WAIT(l, given.n == 3);
			CHECK_STR(given.a, "2");
		}
		/* Freed while it is asked. */
		(void)mirror_free(m);
	}
	end();
}

static void leaves_a_new_one_without_a_peer(void)
{
	struct mirror *m;

	if (begin()) {
		given.none = true;
		put("s/a", "1");
		m = mirror_s(false);
		if (m)
			LOOP_WAIT(l, told.n_done == 1);
		CHECK(!m || told.err.code);
		(void)mirror_free(m);
	}
	end();
}

UNIT_MAIN({ "follows_a_link", follows_a_link },
	  { "follows_what_is_in_memory", follows_what_is_in_memory },
	  { "goes_on_from_a_path", goes_on_from_a_path },
	  { "never_gives_halves", never_gives_halves }, { "keeps_limits", keeps_limits },
	  { "keeps_limits_of_bytes", keeps_limits_of_bytes }, { "gives_one_file", gives_one_file },
	  { "says_that_it_is_gone", says_that_it_is_gone },
	  { "is_not_any_directory", is_not_any_directory },
	  { "outlives_its_peer", outlives_its_peer },
	  { "leaves_a_new_one_without_a_peer", leaves_a_new_one_without_a_peer })
