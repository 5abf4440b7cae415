/* SPDX-License-Identifier: Apache-2.0 */
#include "store/root.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"

struct stage {
	char path[64];
	int fd;
	struct loop *loop;
	struct pool *pool;
	struct root_store *store;
	unsigned n_done, n_failed;
	int code;
};

static void stage_open(struct stage *s)
{
	struct error err = ERROR_INIT;

	CHECK_INT(loop_new(&s->loop), 0);
	CHECK_INT(pool_new(&s->pool, s->loop, 2), 0);
	CHECK_INT(root_store_open(&s->store, s->pool, s->fd, "root.db", &err), 0);
	CHECK_STR(err.text, "");
}

static void stage_init(struct stage *s)
{
	*s = (struct stage){ .fd = -1 };
	(void)str_copy(s->path, sizeof(s->path), "/tmp/nacre-root-XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage_open(s);
}

static void stage_close(struct stage *s)
{
	s->pool = pool_free(s->pool);
	s->store = root_store_close(s->store);
	s->loop = loop_free(s->loop);
}

static void stage_done(struct stage *s)
{
	stage_close(s);
	s->fd = fd_close(s->fd);
	CHECK_INT(scratch_remove(s->path), 0);
}

static void on_done(void *userdata, const struct error *err)
{
	struct stage *s = userdata;

	s->n_done++;
	if (err) {
		s->n_failed++;
		s->code = err->code;
	}
}

static void wait_done(struct stage *s, unsigned n)
{
	LOOP_WAIT(s->loop, s->n_done >= n);
}

static char env_a[] = "A=1", env_b[] = "B=\n", name_a[] = "x/y:1", name_b[] = "x/z:2";
static char blob[] = "sha256:b";
static char *const env[] = { env_a, env_b, NULL };
static char *const names[] = { name_a, name_b, NULL };
static char *const blobs[] = { blob, NULL };
static const int64_t numbers[] = { 3, 5 };
static const struct root_layer layers[] = { { 3, 0, "sha256:3", 30 }, { 5, 3, "sha256:5", 50 } };

static struct root_image sample(const char *id, uint64_t created)
{
	return (struct root_image){ .id = id,
				    .digest = "sha256:m",
				    .size = 80,
				    .created = created,
				    .user = "me",
				    .env = env,
				    .names = names,
				    .blobs = blobs,
				    .layers = numbers,
				    .n_layers = 2 };
}

static int see_image(void *data, const struct root_image *image)
{
	char *seen = data;

	(void)snprintf(seen + strlen(seen), 64 - strlen(seen), "%s(%zu,%zu,%zu)", image->id,
		       strv_len(image->names), strv_len(image->env), image->n_layers);
	if (image->n_layers == 2)
		CHECK_INT(image->layers[1], 5);
	CHECK_STR(image->env[1], "B=\n");
	CHECK_STR(image->working_dir, "");
	CHECK_STR(image->blobs[0], "sha256:b");
	CHECK(strv_len(image->cmd) == 0);
	return 0;
}

static int see_layer(void *data, const struct root_layer *layer)
{
	char *seen = data;

	(void)snprintf(seen + strlen(seen), 64 - strlen(seen), "%d<%d ", (int)layer->number,
		       (int)layer->parent);
	return 0;
}

static void check_content(struct stage *s, const char *images, const char *layer_text)
{
	char seen[64] = "", seen_layers[64] = "";
	struct error err = ERROR_INIT;

	CHECK_INT(root_store_each_image(s->store, see_image, seen, &err), 0);
	CHECK_STR(seen, images);
	CHECK_INT(root_store_each_layer(s->store, see_layer, seen_layers, &err), 0);
	CHECK_STR(seen_layers, layer_text);
}

static void keeps_images(void)
{
	struct root_image a = sample("a", 1), b = sample("b", 2);
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	CHECK_INT(root_store_put_image(s.store, &a, layers, 2, on_done, &s, &err), 0);
	CHECK_INT(s.n_done, 0);
	b.names = NULL;
	b.n_layers = 1;
	CHECK_INT(root_store_put_image(s.store, &b, layers, 1, on_done, &s, &err), 0);
	wait_done(&s, 2);
	CHECK_INT(s.n_failed, 0);
	check_content(&s, "a(2,2,2)b(0,2,1)", "3<0 5<3 ");

	/* The names move to b, and the layer that only a had goes with a. */
	b.names = names;
	CHECK_INT(root_store_put_image(s.store, &b, layers, 1, on_done, &s, &err), 0);
	CHECK_INT(root_store_drop_image(s.store, "a", on_done, &s, &err), 0);
	CHECK_INT(root_store_drop_image(s.store, "never", NULL, NULL, &err), 0);
	wait_done(&s, 4);
	stage_close(&s);
	stage_open(&s);
	check_content(&s, "b(2,2,1)", "3<0 ");
	stage_done(&s);
}

/* What is read between a change and the release is what lay on the disk before. */
static void writes_nothing_while_held(void)
{
	struct root_image a = sample("a", 1);
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	root_store_hold(s.store);
	CHECK_INT(root_store_put_image(s.store, &a, layers, 2, on_done, &s, &err), 0);
	CHECK(!root_store_is_idle(s.store));
	check_content(&s, "", "");
	root_store_release(s.store);
	wait_done(&s, 1);
	CHECK_INT(s.n_failed, 0);
	check_content(&s, "a(2,2,2)", "3<0 5<3 ");
	root_store_hold(s.store);
	CHECK_INT(root_store_drop_image(s.store, "a", on_done, &s, &err), 0);
	stage_close(&s);
	stage_open(&s);
	check_content(&s, "", "");
	stage_done(&s);
}

static void writes_what_waits_at_close(void)
{
	struct root_image a = sample("a", 1);
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	CHECK_INT(root_store_put_image(s.store, &a, layers, 2, on_done, &s, &err), 0);
	stage_close(&s);
	CHECK_INT(s.n_done, 0);
	stage_open(&s);
	check_content(&s, "a(2,2,2)", "3<0 5<3 ");
	stage_done(&s);
}

/* A file may not grow any more: the write fails, is told, and the next one that may goes through.
 */
static void tells_of_a_failed_write(void)
{
	struct root_image a = sample("a", 1), b = sample("b", 2);
	struct rlimit none = { 0, RLIM_INFINITY }, all = { RLIM_INFINITY, RLIM_INFINITY };
	struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	CHECK_INT(sigaction(SIGXFSZ, &ignore, NULL), 0);
	CHECK_INT(root_store_put_image(s.store, &a, layers, 2, on_done, &s, &err), 0);
	wait_done(&s, 1);
	CHECK_INT(s.n_failed, 0);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &none), 0);
	CHECK_INT(root_store_put_image(s.store, &b, layers, 1, on_done, &s, &err), 0);
	CHECK_INT(root_store_drop_image(s.store, "a", on_done, &s, &err), 0);
	wait_done(&s, 3);
	CHECK_INT(setrlimit(RLIMIT_FSIZE, &all), 0);
	CHECK_INT(s.n_failed, 2);
	CHECK(s.code == -EIO || s.code == -ENOSPC);
	check_content(&s, "a(2,2,2)", "3<0 5<3 ");
	CHECK_INT(root_store_drop_image(s.store, "a", on_done, &s, &err), 0);
	wait_done(&s, 4);
	CHECK_INT(s.n_failed, 2);
	check_content(&s, "", "");
	stage_done(&s);
}

static void on_done_again(void *userdata, const struct error *err)
{
	struct stage *s = userdata;

	on_done(s, err);
	CHECK_INT(root_store_drop_image(s->store, "b", on_done, s, NULL), 0);
}

/* A batch of more than one, whose first callback queues another change. */
static void takes_changes_from_callbacks(void)
{
	struct root_image a = sample("a", 1), b = sample("b", 2), c = sample("c", 3);
	struct error err = ERROR_INIT;
	struct stage s;

	stage_init(&s);
	b.names = c.names = NULL;
	CHECK_INT(root_store_put_image(s.store, &a, layers, 2, on_done, &s, &err), 0);
	CHECK_INT(root_store_put_image(s.store, &b, layers, 2, on_done_again, &s, &err), 0);
	CHECK_INT(root_store_put_image(s.store, &c, layers, 2, on_done, &s, &err), 0);
	wait_done(&s, 4);
	CHECK_INT(s.n_failed, 0);
	check_content(&s, "a(2,2,2)c(0,2,2)", "3<0 5<3 ");
	stage_done(&s);
}

static void keeps_a_reserve(void)
{
	struct stage s;

	stage_init(&s);
	CHECK_INT(faccessat(s.fd, "root.db-reserve", F_OK, 0), 0);
	CHECK_INT(unlinkat(s.fd, "root.db-reserve", 0), 0);
	stage_close(&s);
	stage_open(&s);
	CHECK_INT(faccessat(s.fd, "root.db-reserve", F_OK, 0), 0);
	stage_done(&s);
}

UNIT_MAIN({ "keeps_images", keeps_images },
	  { "writes_nothing_while_held", writes_nothing_while_held },
	  { "writes_what_waits_at_close", writes_what_waits_at_close },
	  { "tells_of_a_failed_write", tells_of_a_failed_write },
	  { "takes_changes_from_callbacks", takes_changes_from_callbacks },
	  { "keeps_a_reserve", keeps_a_reserve })
