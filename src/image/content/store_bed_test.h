/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_STORE_BED_TEST_H
#define NACRE_IMAGE_STORE_BED_TEST_H

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "image/image.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "store/root.h"
#include "unit.h"

/* A store of images in a directory of its own, for tests. */

#define HEX_63 "000000000000000000000000000000000000000000000000000000000000000"

struct stage {
	char path[64];
	int fd;
	struct loop *loop;
	struct pool *pool;
	struct root_store *root;
	struct image_store *images;
	unsigned n_done;
	size_t n_pruned;
	struct image_space space;
	bool full;        /* no file may grow once the database is open */
	struct error err; /* of the last done() */
};

static inline void disk_is_full(bool full)
{
	struct rlimit limit = { full ? 0 : RLIM_INFINITY, RLIM_INFINITY };
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	CHECK_INT(sigaction(SIGXFSZ, &ignore, NULL), 0);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static inline void stage_open(struct stage *s)
{
	struct image_store_config config = { .root_fd = s->fd,
					     .fetch_path = "/nowhere",
					     .transfer_path = "/nowhere" };
	struct error err = ERROR_INIT;

	CHECK_INT(loop_new(&s->loop), 0);
	CHECK_INT(pool_new(&s->pool, s->loop, 1), 0);
	CHECK_INT(root_store_open(&s->root, s->pool, s->fd, "root.db", &err), 0);
	disk_is_full(s->full);
	config.loop = s->loop;
	config.pool = s->pool;
	config.store = s->root;
	CHECK_INT(image_store_new(&s->images, &config, &err), 0);
	CHECK_STR(err.text, "");
}

static inline void stage_close(struct stage *s)
{
	s->pool = pool_free(s->pool);
	s->images = image_store_free(s->images);
	s->root = root_store_close(s->root);
	s->loop = loop_free(s->loop);
}

static inline void stage_init(struct stage *s)
{
	*s = (struct stage){ .fd = -1, .err = ERROR_INIT };
	(void)str_copy(s->path, sizeof(s->path), "/tmp/nacre-image-XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage_open(s);
}

static inline void stage_again(struct stage *s)
{
	stage_close(s);
	stage_open(s);
}

static inline void stage_done(struct stage *s)
{
	stage_close(s);
	s->fd = fd_close(s->fd);
	CHECK_INT(scratch_remove(s->path), 0);
}

static inline void on_done(void *userdata, const struct error *err)
{
	struct stage *s = userdata;

	s->n_done++;
	s->err = (struct error)ERROR_INIT;
	if (err)
		(void)error_copy(&s->err, err);
}

static inline void wait_done(struct stage *s, unsigned n)
{
	LOOP_WAIT(s->loop, s->n_done >= n);
}

static inline bool is_there(const struct stage *s, const char *name)
{
	struct stat st;

	return fstatat(s->fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline void make(const struct stage *s, const char *name, bool dir)
{
	_cleanup_fd_ int fd = -1;

	if (dir) {
		CHECK_INT(mkdirat(s->fd, name, 0751), 0);
		return;
	}
	fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
	CHECK(fd >= 0);
}

/* "sha256:" and 64 digits that begin with `first`. */
static inline void digest(char ret[72], char first)
{
	(void)str_printf(ret, 72, "sha256:%c%s", first, HEX_63);
}

/* An image of one layer and one blob, as an import leaves it. */
static inline void put(struct stage *s, char c, int64_t layer, char *const *names)
{
	char id[72], manifest[72], path[128];
	char *blobs[] = { id, NULL };
	struct root_layer l = { .number = layer, .diff_id = manifest };
	struct root_image i = { .id = id,
				.digest = manifest,
				.names = names,
				.blobs = blobs,
				.layers = &layer,
				.n_layers = 1 };
	struct error err = ERROR_INIT;
	unsigned n = s->n_done;

	digest(id, c);
	digest(manifest, (char)(c + 1));
	(void)str_printf(path, sizeof(path), "layers/%" PRId64, layer);
	make(s, path, true);
	(void)str_printf(path, sizeof(path), "blobs/sha256/%s", id + strlen("sha256:"));
	make(s, path, false);
	CHECK_INT(root_store_put_image(s->root, &i, &l, 1, on_done, s, &err), 0);
	wait_done(s, n + 1);
	CHECK_STR(s->err.text, "");
}

static char busybox[] = "docker.io/library/busybox:latest", tools[] = "docker.io/x/tools:1";
static char *const two_names[] = { busybox, tools, NULL };
static char *const no_names[] = { NULL };

#endif
