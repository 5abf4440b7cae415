/* SPDX-License-Identifier: Apache-2.0 */
#include "volumes/volumes.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "store/root.h"
#include "unit.h"

struct stage {
	char path[64];
	int fd;
	struct loop *loop;
	struct pool *pool;
	struct root_store *store;
	struct volumes *all;
};

static void stage_open(struct stage *s)
{
	struct volumes_config config = { .root_fd = s->fd, .root = s->path };
	struct error err = ERROR_INIT;

	CHECK_INT(loop_new(&s->loop), 0);
	CHECK_INT(pool_new(&s->pool, s->loop, 2), 0);
	CHECK_INT(root_store_open(&s->store, s->pool, s->fd, "root.db", &err), 0);
	config.pool = s->pool;
	config.store = s->store;
	CHECK_INT(volumes_new(&s->all, &config, &err), 0);
	CHECK_STR(err.text, "");
}

static void stage_close(struct stage *s)
{
	volumes_stop(s->all);
	s->pool = pool_free(s->pool);
	s->all = volumes_free(s->all);
	s->store = root_store_close(s->store);
	s->loop = loop_free(s->loop);
}

static void stage_init(struct stage *s)
{
	*s = (struct stage){ .fd = -1 };
	(void)str_copy(s->path, sizeof(s->path), "/tmp/nacre-volumes-XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	stage_open(s);
}

static void stage_done(struct stage *s)
{
	stage_close(s);
	(void)fd_close(s->fd);
	CHECK_INT(scratch_remove(s->path), 0);
}

/* How many directories there are. */
static size_t stage_count(const struct stage *s)
{
	_cleanup_fd_ int fd = openat(s->fd, "volumes", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	_cleanup_strv_ char **names = NULL;

	CHECK_INT(fd_list_dir(fd, &names), 0);
	return strv_len(names);
}

struct told {
	struct volume_waiter waiter;
	struct volume *volume;
	int n, code;
};

static void told_done(struct volume_waiter *waiter, struct volume *v, const struct error *err)
{
	struct told *t = container_of(waiter, struct told, waiter);

	t->n++;
	t->volume = v;
	t->code = err ? err->code : 0;
}

static struct volume *stage_make(struct stage *s, const char *name, bool anonymous)
{
	const struct volume_spec spec = { .name = name, .anonymous = anonymous };
	struct told t = { .waiter = { .done = told_done } };
	struct error err = ERROR_INIT;
	struct volume *v = NULL;

	CHECK_INT(volumes_create(s->all, &spec, &t.waiter, &v, &err), 0);
	CHECK_STR(err.text, "");
	CHECK_INT(v->state, VOLUME_MAKING);
	LOOP_WAIT(s->loop, t.n == 1);
	CHECK(t.volume == v && t.code == 0 && v->state == VOLUME_READY);
	return v;
}

static void lives_over_a_restart(void)
{
	char label[] = "owner=shop", plain[] = "plain";
	char *labels[] = { label, plain };
	const struct volume_spec spec = { .name = "data", .labels = labels, .n_labels = 2 };
	struct error err = ERROR_INIT;
	struct volume *v = NULL;
	char path[128];
	struct stage s;

	stage_init(&s);
	CHECK_INT(volumes_create(s.all, &spec, NULL, &v, &err), 0);
	CHECK_INT(volumes_create(s.all, &spec, NULL, NULL, &err), -EEXIST);
	CHECK_INT(err.kind, ERROR_EXISTS);
	CHECK_STR(v->labels, "owner=shop\nplain=\n");
	LOOP_WAIT(s.loop, v->state == VOLUME_READY);
	stage_make(&s, NULL, true);
	stage_close(&s);
	stage_open(&s);
	CHECK_INT((int)volumes_count(s.all), 2);
	v = volumes_find(s.all, "data");
	CHECK(v && v->state == VOLUME_READY && !v->anonymous);
	CHECK_STR(v->labels, "owner=shop\nplain=\n");
	CHECK(volumes_find(s.all, v->id) == v);
	CHECK_INT(volume_path(v, path, sizeof(path)), 0);
	CHECK_INT(access(path, F_OK), 0);
	stage_done(&s);
}

static void goes_with_its_files(void)
{
	struct told t = { .waiter = { .done = told_done } };
	struct error err = ERROR_INIT;
	struct volume *v;
	struct stage s;

	stage_init(&s);
	v = stage_make(&s, "data", false);
	CHECK_INT(volume_remove(v, &t.waiter, &err), 0);
	CHECK(!volumes_find(s.all, "data") && volumes_has_name(s.all, "data"));
	CHECK_INT(volume_remove(v, NULL, &err), -EAGAIN);
	LOOP_WAIT(s.loop, t.n == 1);
	CHECK_INT(t.code, 0);
	CHECK(!volumes_has_name(s.all, "data"));
	CHECK_INT((int)stage_count(&s), 0);
	stage_done(&s);
}

/* One that nobody wants any more before it is recorded. */
static void goes_once_it_is_made(void)
{
	const struct volume_spec spec = { .name = "data" };
	struct error err = ERROR_INIT;
	struct volume *v = NULL;
	struct stage s;

	stage_init(&s);
	CHECK_INT(volumes_create(s.all, &spec, NULL, &v, &err), 0);
	CHECK_INT(volume_remove(v, NULL, &err), 0);
	LOOP_WAIT(s.loop, stage_count(&s) == 0);
	CHECK_INT((int)volumes_count(s.all), 0);
	stage_done(&s);
}

static void what_has_no_record_goes_at_the_start(void)
{
	struct stage s;
	char name[64];
	struct volume *v;

	stage_init(&s);
	v = stage_make(&s, "data", false);
	(void)str_printf(name, sizeof(name), "volumes/%s/new", v->id);
	CHECK_INT(mkdirat(s.fd, name, 0700), 0);
	CHECK_INT(mkdirat(s.fd, "volumes/0123456789abcdef", 0700), 0);
	CHECK_INT(mkdirat(s.fd, "volumes/0123456789abcdef/data", 0700), 0);
	stage_close(&s);
	stage_open(&s);
	LOOP_WAIT(s.loop, stage_count(&s) == 1);
	CHECK(volumes_find(s.all, "data") != NULL);
	CHECK_INT(faccessat(s.fd, name, F_OK, 0), -1);
	stage_done(&s);
}

static void forms(void)
{
	static const char *const good[] = { "a", "0", "A.b_c-d", "x..y" };
	static const char *const bad[] = { "",   ".",   "..",  ".a",  "-a",
					   "_a", "a/b", "a b", "a\n", "\xc3\xa4" };
	char one[] = "a=1", two[] = "a=2", none[] = "=x", line[] = "a=\n";
	char *twice[] = { one, two }, *nameless[] = { none }, *lines[] = { line };
	struct error err = ERROR_INIT;
	char longest[VOLUME_NAME_MAX + 2];

	for (size_t i = 0; i < ARRAY_SIZE(good); i++)
		CHECK_INT(volume_check_name("name", good[i], &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++)
		CHECK_INT(volume_check_name("name", bad[i], &err), -EINVAL);
	memset(longest, 'x', sizeof(longest));
	longest[VOLUME_NAME_MAX + 1] = '\0';
	CHECK_INT(volume_check_name("name", longest, &err), -EINVAL);
	longest[VOLUME_NAME_MAX] = '\0';
	CHECK_INT(volume_check_name("name", longest, &err), 0);
	CHECK_INT(volume_check_labels(twice, 2, &err), -EINVAL);
	CHECK_STR(err.field, "labels[1]");
	CHECK_INT(volume_check_labels(twice, 1, &err), 0);
	CHECK_INT(volume_check_labels(nameless, 1, &err), -EINVAL);
	CHECK_INT(volume_check_labels(lines, 1, &err), -EINVAL);
	CHECK_INT(volume_check_labels(twice, VOLUME_LABELS_MAX + 1, &err), -EINVAL);
}

UNIT_MAIN({ "lives_over_a_restart", lives_over_a_restart },
	  { "goes_with_its_files", goes_with_its_files },
	  { "goes_once_it_is_made", goes_once_it_is_made },
	  { "what_has_no_record_goes_at_the_start", what_has_no_record_goes_at_the_start },
	  { "forms", forms })
