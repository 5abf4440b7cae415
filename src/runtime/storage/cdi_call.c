/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/cdi_call.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "image/helper/profile.h"
#include "loop/pool.h"
#include "rpc/server/server.h"
#include "runtime/storage/profile_file.h"

#define CDI_FILES_MAX 256 /* of all directories */

struct cdi_call {
	struct pool_work work;
	struct loop_timer timer;
	struct list member;
	struct cdi_calls *all;
	struct rpc_call *call; /* NULL: of who is none */
	struct arena *arena;   /* for the changes, while somebody waits */
	bool waits;
	void (*go_on)(void *userdata, const struct cdi_changes *changes);
	void (*fail)(void *userdata, const struct error *err); /* where there is no call */
	void *userdata;
	char field[ERROR_FIELD_MAX];
	const char *dirs;
	struct buf request;
	size_t n_files;
	int fd; /* the request, for the helper */
	struct profile_job *job;
	struct error err;
};

/* ---- on the thread ---- */

static int cdi_add_word(struct buf *b, const char *word)
{
	return buf_add(b, word, strlen(word) + 1);
}

static int cdi_add_file(struct cdi_call *v, const char *dir, int dir_fd, const char *name)
{
	_cleanup_fd_ int fd = -1;
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct stat st;
	int r;

	/* No FIFO and no device is waited for. */
	fd = sysio_openat(dir_fd, name, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0);
	if (fd < 0)
		r = -errno;
	else if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		r = -EINVAL;
	else
		r = fd_read_all(fd, CDI_FILE_MAX, &text);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return error_field(&v->err, ERROR_PRECONDITION, v->field, "read %.200s/%.200s: %s",
				   dir, name,
				   r == -EINVAL ? "it is no regular file" : strerror(-r));
	if (v->n_files++ == CDI_FILES_MAX)
		return error_field(&v->err, ERROR_PRECONDITION, v->field,
				   "%.200s: more files than the limit of %d", dir, CDI_FILES_MAX);
	if (cdi_add_word(&v->request, "file") < 0 || cdi_add_word(&v->request, dir) < 0 ||
	    buf_addf(&v->request, "%s/%s%c%zu%c", dir, name, 0, text.len, 0) < 0 ||
	    buf_add(&v->request, buf_data(&text), text.len) < 0)
		return error_set(&v->err, -ENOMEM, "read %s", dir);
	return 0;
}

static int cdi_is_file(const struct dirent *e)
{
	return e->d_name[0] != '.' &&
	       (str_has_suffix(e->d_name, ".json") || str_has_suffix(e->d_name, ".yaml"));
}

static int cdi_add_dir(struct cdi_call *v, const char *dir)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	struct dirent **list = NULL;
	int n, r = 0;

	if (fd < 0 && errno == ENOENT)
		return 0;
	n = fd < 0 ? -1 : scandirat(fd, ".", &list, cdi_is_file, alphasort);
	if (n < 0)
		return error_field(&v->err, ERROR_PRECONDITION, v->field, "read %.200s: %s", dir,
				   strerror(errno));
	for (int i = 0; i < n; i++) {
		if (r == 0)
			r = cdi_add_file(v, dir, fd, list[i]->d_name);
		free(list[i]);
	}
	free(list);
	return r;
}

static void cdi_run(struct pool_work *work)
{
	struct cdi_call *v = container_of(work, struct cdi_call, work);
	_cleanup_str_ char *dirs = strdup(v->dirs);
	char *save = NULL;
	int r = dirs ? 0 : error_set(&v->err, -ENOMEM, "read devices");

	for (char *dir = dirs ? strtok_r(dirs, ":", &save) : NULL; dir && r == 0;
	     dir = strtok_r(NULL, ":", &save))
		r = cdi_add_dir(v, dir);
	if (r == 0)
		v->fd = profile_file_seal(buf_data(&v->request), v->request.len, v->field, &v->err);
}

/* ---- its end ---- */

static struct cdi_call *cdi_call_free(struct cdi_call *v)
{
	list_remove(&v->member);
	v->all->n--;
	loop_timer_done(&v->timer);
	v->job = profile_job_free(v->job);
	(void)fd_close(v->fd);
	buf_done(&v->request);
	free(v);
	return NULL;
}

/* Whether somebody waited, who does so no more. */
static bool cdi_end_wait(struct cdi_call *v)
{
	bool waited = v->waits;

	v->waits = false;
	loop_timer_stop(&v->timer);
	if (waited && v->call)
		rpc_call_on_cancel(v->call, NULL, NULL);
	return waited;
}

static void cdi_fail(struct cdi_call *v, const struct error *err)
{
	bool waited = cdi_end_wait(v);

	if (waited && v->call)
		rpc_call_fail(v->call, err);
	else if (waited)
		v->fail(v->userdata, err);
	(void)cdi_call_free(v);
}

/* ---- the answer ---- */

struct cdi_words {
	const char *at;
	size_t left;
};

static const char *cdi_next(struct cdi_words *w)
{
	const char *word = w->at, *end = memchr(w->at, 0, w->left);

	if (!end)
		return NULL;
	w->left -= (size_t)(end - word) + 1;
	w->at = end + 1;
	return word;
}

static int cdi_take_device(struct arena *a, struct cdi_words *w, struct cdi_changes *to)
{
	const char *path = cdi_next(w), *host_path = path ? cdi_next(w) : NULL;
	const char *permissions = host_path ? cdi_next(w) : NULL;
	Aurae__Runtime__V0__Device *d = arena_zalloc(a, 1, sizeof(*d));
	size_t i = 0;

	if (!permissions || !d)
		return permissions ? -ENOMEM : -EBADMSG;
	aurae__runtime__v0__device__init(d);
	d->path = arena_strdup(a, path);
	d->cdi = true;
	d->host_path = arena_strdup(a, host_path);
	d->permissions = arena_strdup(a, permissions);
	if (!d->path || !d->host_path || !d->permissions)
		return -ENOMEM;
	/* Of several that name one, as parts of one card do, the last counts. */
	while (i < to->n_devices && !str_eq(to->devices[i]->path, d->path))
		i++;
	to->devices[i] = d;
	to->n_devices = MAX(to->n_devices, i + 1);
	return 0;
}

static int cdi_take_mount(struct arena *a, struct cdi_words *w, struct cdi_changes *to)
{
	const char *target = cdi_next(w), *source = target ? cdi_next(w) : NULL;
	const char *propagation = source ? cdi_next(w) : NULL;
	const char *flags = propagation ? cdi_next(w) : NULL;
	Aurae__Runtime__V0__Mount *m = arena_zalloc(a, 1, sizeof(*m));
	size_t i = 0;

	if (!flags || !m)
		return flags ? -ENOMEM : -EBADMSG;
	aurae__runtime__v0__mount__init(m);
	m->target = arena_strdup(a, target);
	m->cdi = true;
	m->source = arena_strdup(a, source);
	m->propagation = arena_strdup(a, propagation);
	m->read_only = strchr(flags, 'r') != NULL;
	m->no_exec = strchr(flags, 'x') != NULL;
	if (!m->target || !m->source || !m->propagation)
		return -ENOMEM;
	while (i < to->n_mounts && !str_eq(to->mounts[i]->target, m->target))
		i++;
	to->mounts[i] = m;
	to->n_mounts = MAX(to->n_mounts, i + 1);
	return 0;
}

static int cdi_take_one(struct arena *a, struct cdi_words *w, struct cdi_changes *to)
{
	const char *kind = cdi_next(w), *word;

	if (kind && str_eq(kind, "device"))
		return cdi_take_device(a, w, to);
	if (kind && str_eq(kind, "mount"))
		return cdi_take_mount(a, w, to);
	word = kind ? cdi_next(w) : NULL;
	if (!word)
		return -EBADMSG;
	if (str_eq(kind, "env")) {
		to->env[to->n_env] = arena_strdup(a, word);
		return to->env[to->n_env++] ? 0 : -ENOMEM;
	}
	if (!str_eq(kind, "group"))
		return -EBADMSG;
	to->groups[to->n_groups++] = (uint32_t)strtoul(word, NULL, 10);
	return 0;
}

/* A change has at least two words. */
static int cdi_take(struct arena *a, const void *data, size_t len, struct cdi_changes *to)
{
	struct cdi_words w = { data, len };
	size_t n = 1;
	int r = 0;

	for (size_t i = 0; i < len; i++)
		n += w.at[i] == '\0';
	to->env = arena_zalloc(a, n, sizeof(*to->env));
	to->devices = arena_zalloc(a, n, sizeof(*to->devices));
	to->mounts = arena_zalloc(a, n, sizeof(*to->mounts));
	to->groups = arena_zalloc(a, n, sizeof(*to->groups));
	if (!to->env || !to->devices || !to->mounts || !to->groups)
		return -ENOMEM;
	while (w.left > 0 && r == 0)
		r = cdi_take_one(a, &w, to);
	return r;
}

static void cdi_on_made(void *userdata, const void *bytes, size_t len, unsigned flags,
			const struct error *err)
{
	struct cdi_call *v = userdata;
	struct cdi_changes changes = { .n_env = 0 };
	struct error own = ERROR_INIT;
	int r;

	(void)flags;
	v->job = NULL;
	if (err) {
		(void)error_field(&own, err->kind, v->field, "%.400s", error_text(err));
		cdi_fail(v, &own);
		return;
	}
	r = cdi_take(v->arena, bytes, len, &changes);
	if (r < 0) {
		(void)error_set(&own, r, "read what devices change");
		cdi_fail(v, &own);
		return;
	}
	if (cdi_end_wait(v))
		v->go_on(v->userdata, &changes);
	(void)cdi_call_free(v);
}

static void cdi_done(struct pool_work *work)
{
	struct cdi_call *v = container_of(work, struct cdi_call, work);

	if (!v->waits) {
		(void)cdi_call_free(v);
		return;
	}
	if (v->err.code == 0)
		(void)profile_devices_start(&v->job, v->all->images, v->fd, cdi_on_made, v,
					    &v->err);
	if (v->err.code)
		cdi_fail(v, &v->err);
}

/* Nobody waits any more. A thread that works still ends it when it is back. */
static void cdi_give_up(struct cdi_call *v)
{
	if (!v->work.busy)
		(void)cdi_call_free(v);
}

static void cdi_on_timer(struct loop_timer *t)
{
	struct cdi_call *v = container_of(t, struct cdi_call, timer);
	void (*fail)(void *userdata, const struct error *err) = v->fail;
	struct rpc_call *call = v->call;
	void *userdata = v->userdata;
	struct error err = ERROR_INIT;

	(void)cdi_end_wait(v);
	(void)error_field(&err, ERROR_UNAVAILABLE, v->field,
			  "the files in %.200s could not be read within %d s", v->dirs,
			  (int)(CDI_PATIENCE / NSEC_PER_SEC));
	cdi_give_up(v);
	if (call)
		rpc_call_fail(call, &err);
	else
		fail(userdata, &err);
}

static void cdi_on_cancel(struct rpc_call *call, void *data)
{
	struct error err = ERROR_INIT;
	struct cdi_call *v = data;

	(void)cdi_end_wait(v);
	(void)error_refuse(&err, ERROR_CANCELLED, "the call was cancelled");
	cdi_give_up(v);
	rpc_call_fail(call, &err);
}

/* ---- its beginning ---- */

/* What both beginnings have in common; `as` says who waits. */
static int cdi_begin(struct cdi_calls *all, const struct cdi_call *as, const char *field,
		     char *const *names, size_t n, struct error *err)
{
	struct cdi_call *v;
	int r = 0;

	if (n > CDI_NAMES_MAX)
		return error_field(err, ERROR_INVALID, field, "%zu are more than the limit of %d",
				   n, CDI_NAMES_MAX);
	if (all->n >= CDI_CALLS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "%d calls wait for their devices already, the limit",
				    CDI_CALLS_MAX);
	v = calloc(1, sizeof(*v));
	if (!v)
		return error_set(err, -ENOMEM, "look devices up");
	*v = *as;
	v->all = all;
	v->dirs = all->dirs;
	v->fd = -1;
	v->work = (struct pool_work){ .run = cdi_run, .done = cdi_done };
	(void)str_copy(v->field, sizeof(v->field), field);
	list_init(&v->member);
	list_add_tail(&all->list, &v->member);
	all->n++;
	loop_timer_init(&v->timer, all->loop, cdi_on_timer);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = cdi_add_word(&v->request, "device");
		if (r == 0)
			r = cdi_add_word(&v->request, names[i]);
	}
	if (r < 0) {
		(void)cdi_call_free(v);
		return error_set(err, r, "look devices up");
	}
	v->waits = true;
	if (v->call)
		rpc_call_on_cancel(v->call, cdi_on_cancel, v);
	loop_timer_set(&v->timer, CDI_PATIENCE);
	pool_submit(all->pool, &v->work);
	return 0;
}

int cdi_call_start(struct cdi_calls *all, struct rpc_call *call, const char *field,
		   char *const *names, size_t n,
		   void (*go_on)(void *userdata, const struct cdi_changes *changes), void *userdata,
		   struct error *err)
{
	const struct cdi_call as = { .call = call,
				     .arena = rpc_call_arena(call),
				     .go_on = go_on,
				     .userdata = userdata,
				     .err = ERROR_INIT };

	return cdi_begin(all, &as, field, names, n, err);
}

int cdi_lookup_start(struct cdi_calls *all, struct arena *a, const char *field, char *const *names,
		     size_t n, const struct cdi_waiter *waiter, struct error *err)
{
	const struct cdi_call as = { .arena = a,
				     .go_on = waiter->go_on,
				     .fail = waiter->fail,
				     .userdata = waiter->userdata,
				     .err = ERROR_INIT };

	return cdi_begin(all, &as, field, names, n, err);
}

int cdi_calls_init(struct cdi_calls *all, struct loop *l, struct image_store *images,
		   const char *dirs)
{
	*all = (struct cdi_calls){ .loop = l, .images = images, .dirs = dirs };
	list_init(&all->list);
	return pool_new(&all->pool, l, CDI_THREADS);
}

void cdi_calls_done(struct cdi_calls *all)
{
	struct cdi_call *v;

	if (!all->pool)
		return;
	list_for_each (v, &all->list, struct cdi_call, member)
		v->waits = false;
	all->pool = pool_leave(all->pool);
	/* A thread that is not back has its own for as long as this process lives. */
	list_for_each (v, &all->list, struct cdi_call, member) {
		loop_timer_done(&v->timer);
		v->job = profile_job_free(v->job);
		if (!v->work.busy)
			(void)cdi_call_free(v);
	}
}

/* ---- into a container ---- */

static bool cdi_is_same_variable(const char *a, const char *b)
{
	size_t n = strcspn(a, "=");

	return strncmp(a, b, n) == 0 && b[n] == '=';
}

static int cdi_add_env(struct arena *a, const struct cdi_changes *changes,
		       Aurae__Runtime__V0__Container *to)
{
	char **env = arena_zalloc(a, to->n_env + changes->n_env + 1, sizeof(*env));
	size_t n = 0;

	if (!env)
		return -ENOMEM;
	for (size_t i = 0; i < to->n_env + changes->n_env; i++) {
		char *word = i < to->n_env ? to->env[i] : changes->env[i - to->n_env];
		size_t k = 0;

		while (i >= to->n_env && k < n && !cdi_is_same_variable(word, env[k]))
			k++;
		k = i < to->n_env ? n : k;
		env[k] = word;
		n += k == n;
	}
	to->env = env;
	to->n_env = n;
	return 0;
}

/* The lists are copied: those of the request are somebody else's. */
static void *cdi_join(struct arena *a, const void *list, size_t n, const void *more, size_t n_more,
		      size_t size)
{
	uint8_t *all = arena_zalloc(a, n + n_more + 1, size);

	if (all && n > 0)
		memcpy(all, list, n * size);
	if (all && n_more > 0)
		memcpy(all + n * size, more, n_more * size);
	return all;
}

int cdi_changes_add(struct arena *a, const struct cdi_changes *changes,
		    Aurae__Runtime__V0__Container *to, struct error *err)
{
	Aurae__Runtime__V0__Security *s = arena_alloc(a, sizeof(*s));

	if (!s || cdi_add_env(a, changes, to) < 0)
		return error_set(err, -ENOMEM, "devices");
	if (to->security)
		*s = *to->security;
	else
		aurae__runtime__v0__security__init(s);
	to->devices = cdi_join(a, to->devices, to->n_devices, changes->devices, changes->n_devices,
			       sizeof(*to->devices));
	to->mounts = cdi_join(a, to->mounts, to->n_mounts, changes->mounts, changes->n_mounts,
			      sizeof(*to->mounts));
	s->groups = cdi_join(a, s->groups, s->n_groups, changes->groups, changes->n_groups,
			     sizeof(*s->groups));
	if (!to->devices || !to->mounts || !s->groups)
		return error_set(err, -ENOMEM, "devices");
	to->n_devices += changes->n_devices;
	to->n_mounts += changes->n_mounts;
	s->n_groups += changes->n_groups;
	if (changes->n_groups > 0)
		to->security = s;
	return 0;
}
