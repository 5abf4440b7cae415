/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two lists of changes: `waiting`, filled by the loop thread, and `batch`, which belongs to the
 * pool's thread while the work is busy. There is one work, so the connection is used by one thread
 * at a time, and what gathers while it runs is the next transaction.
 */

#include "store/root.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "base/arena.h"
#include "base/failpoint.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"
#include "base/sysio.h"
#include "loop/pool.h"
#include "store/room.h"
#include "store/sql.h"

static const struct sql_column image_columns[] = {
	SQL_COLUMN(root_image, id, SQL_TEXT),
	SQL_COLUMN(root_image, digest, SQL_TEXT),
	SQL_COLUMN(root_image, size, SQL_U64),
	SQL_COLUMN(root_image, created, SQL_U64),
	SQL_COLUMN(root_image, pinned, SQL_U64),
	SQL_COLUMN(root_image, source, SQL_TEXT),
	SQL_COLUMN(root_image, user, SQL_TEXT),
	SQL_COLUMN(root_image, working_dir, SQL_TEXT),
	SQL_COLUMN(root_image, stop_signal, SQL_TEXT),
};

static const struct sql_column layer_columns[] = {
	SQL_COLUMN(root_layer, number, SQL_I64),
	SQL_COLUMN(root_layer, parent, SQL_I64),
	SQL_COLUMN(root_layer, diff_id, SQL_TEXT),
	SQL_COLUMN(root_layer, size, SQL_U64),
};

static const struct sql_table image_table = { "image", image_columns, ARRAY_SIZE(image_columns) };
static const struct sql_table layer_table = { "layer", layer_columns, ARRAY_SIZE(layer_columns) };

static const char *const root_migrations[] = {
	"CREATE TABLE image("
	" id TEXT PRIMARY KEY, digest TEXT NOT NULL, size INTEGER NOT NULL,"
	" created INTEGER NOT NULL, user TEXT NOT NULL, working_dir TEXT NOT NULL,"
	" stop_signal TEXT NOT NULL);"
	"CREATE TABLE layer("
	" number INTEGER PRIMARY KEY, parent INTEGER NOT NULL, diff_id TEXT NOT NULL,"
	" size INTEGER NOT NULL, UNIQUE(parent, diff_id));"
	"CREATE TABLE image_name(word TEXT PRIMARY KEY, image TEXT NOT NULL);"
	"CREATE TABLE image_word("
	" image TEXT NOT NULL, list TEXT NOT NULL, position INTEGER NOT NULL, word TEXT NOT NULL,"
	" PRIMARY KEY(image, list, position)) WITHOUT ROWID;"
	"CREATE TABLE image_layer("
	" image TEXT NOT NULL, position INTEGER NOT NULL, layer INTEGER NOT NULL,"
	" PRIMARY KEY(image, position)) WITHOUT ROWID;"
	"CREATE INDEX image_of_name ON image_name(image);"
	"CREATE INDEX image_of_layer ON image_layer(layer);"
	"CREATE TRIGGER image_gone AFTER DELETE ON image BEGIN"
	" DELETE FROM image_name WHERE image=OLD.id;"
	" DELETE FROM image_word WHERE image=OLD.id;"
	" DELETE FROM image_layer WHERE image=OLD.id; END",
	"ALTER TABLE image ADD COLUMN pinned INTEGER NOT NULL DEFAULT 0;"
	"ALTER TABLE image ADD COLUMN source TEXT NOT NULL DEFAULT ''",
};

static const struct sql_schema root_schema = {
	.pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
		   "PRAGMA cache_size=-256",
	.migrations = root_migrations,
	.n_migrations = ARRAY_SIZE(root_migrations),
};

enum root_statement {
	ROOT_BEGIN,
	ROOT_COMMIT,
	ROOT_ROLLBACK,
	ROOT_MARK,
	ROOT_MARK_DONE,
	ROOT_MARK_UNDO,
	ROOT_DROP_IMAGE,
	ROOT_DROP_LAYERS,
	ROOT_ADD_LAYER,
	ROOT_ADD_NAME,
	ROOT_ADD_WORD,
	ROOT_ADD_IMAGE_LAYER,
	ROOT_STATEMENT_COUNT
};

static const char *const root_texts[] = {
	[ROOT_BEGIN] = "BEGIN IMMEDIATE",
	[ROOT_COMMIT] = "COMMIT",
	[ROOT_ROLLBACK] = "ROLLBACK",
	[ROOT_MARK] = "SAVEPOINT change",
	[ROOT_MARK_DONE] = "RELEASE change",
	[ROOT_MARK_UNDO] = "ROLLBACK TO change",
	[ROOT_DROP_IMAGE] = "DELETE FROM image WHERE id=?",
	[ROOT_DROP_LAYERS] =
		"DELETE FROM layer WHERE number NOT IN (SELECT layer FROM image_layer)",
	[ROOT_ADD_LAYER] =
		"INSERT OR IGNORE INTO layer(number, parent, diff_id, size) VALUES(?,?,?,?)",
	[ROOT_ADD_NAME] = "INSERT OR REPLACE INTO image_name(word, image) VALUES(?,?)",
	[ROOT_ADD_WORD] = "INSERT INTO image_word(image, list, position, word) VALUES(?,?,?,?)",
	[ROOT_ADD_IMAGE_LAYER] = "INSERT INTO image_layer(image, position, layer) VALUES(?,?,?)",
};
static_assert(ARRAY_SIZE(root_texts) == ROOT_STATEMENT_COUNT, "a text for each statement");

/* The lists of an image that are stored word by word. */
static const struct {
	const char *name;
	size_t offset;
} root_lists[] = {
	{ "env", offsetof(struct root_image, env) },
	{ "entrypoint", offsetof(struct root_image, entrypoint) },
	{ "cmd", offsetof(struct root_image, cmd) },
	{ "blob", offsetof(struct root_image, blobs) },
	{ "origin", offsetof(struct root_image, origins) },
	{ "verdict", offsetof(struct root_image, verdicts) },
};

static char *const **root_list_at(struct root_image *image, size_t i)
{
	return (char *const **)(void *)((char *)image + root_lists[i].offset);
}

struct root_change {
	struct list link;
	struct arena arena;
	const char *id;
	struct root_image *image; /* NULL: the image of that id goes */
	struct root_layer *layers;
	size_t n_layers;
	root_done_fn done;
	void *userdata;
	struct error err;
};

struct root_store {
	struct sqlite3 *db;
	struct store_room room; /* images are removed when a disk is full: a write too */
	struct sqlite3_stmt *put_image;
	struct sqlite3_stmt *statements[ROOT_STATEMENT_COUNT];
	struct pool *pool;
	struct pool_work work;
	struct list waiting;
	struct list batch;
};

/* ---- applying, on the pool's thread ---- */

static int root_do(struct root_store *s, enum root_statement which, struct error *err)
{
	return sql_finish_write(s->db, s->statements[which], err, "root.db");
}

static int root_apply_names(struct root_store *s, const struct root_image *image, struct error *err)
{
	struct sqlite3_stmt *add = s->statements[ROOT_ADD_NAME];

	for (char *const *name = image->names; name && *name; name++) {
		int r;

		r = sql_bind_text(s->db, add, 1, *name, err);
		if (r == 0)
			r = sql_bind_text(s->db, add, 2, image->id, err);
		if (r == 0)
			r = root_do(s, ROOT_ADD_NAME, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int root_apply_list(struct root_store *s, const struct root_image *image, const char *list,
			   char *const *words, struct error *err)
{
	struct sqlite3_stmt *add = s->statements[ROOT_ADD_WORD];

	for (int i = 0; words && words[i]; i++) {
		int r;

		r = sql_bind_text(s->db, add, 1, image->id, err);
		if (r == 0)
			r = sql_bind_text(s->db, add, 2, list, err);
		if (r == 0)
			r = sql_bind_int(s->db, add, 3, i, err);
		if (r == 0)
			r = sql_bind_text(s->db, add, 4, words[i], err);
		if (r == 0)
			r = root_do(s, ROOT_ADD_WORD, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int root_apply_layers(struct root_store *s, const struct root_change *c, struct error *err)
{
	struct sqlite3_stmt *add = s->statements[ROOT_ADD_IMAGE_LAYER];
	int r;

	for (size_t i = 0; i < c->n_layers; i++) {
		r = sql_bind_record(s->db, s->statements[ROOT_ADD_LAYER], &layer_table,
				    &c->layers[i], err);
		if (r == 0)
			r = root_do(s, ROOT_ADD_LAYER, err);
		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < c->image->n_layers; i++) {
		r = sql_bind_text(s->db, add, 1, c->image->id, err);
		if (r == 0)
			r = sql_bind_int(s->db, add, 2, (int64_t)i, err);
		if (r == 0)
			r = sql_bind_int(s->db, add, 3, c->image->layers[i], err);
		if (r == 0)
			r = root_do(s, ROOT_ADD_IMAGE_LAYER, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int root_apply_put(struct root_store *s, const struct root_change *c, struct error *err)
{
	int r;

	r = sql_bind_record(s->db, s->put_image, &image_table, c->image, err);
	if (r == 0)
		r = sql_finish_write(s->db, s->put_image, err, "root.db");
	if (r == 0)
		r = root_apply_names(s, c->image, err);
	for (size_t i = 0; i < ARRAY_SIZE(root_lists) && r == 0; i++)
		r = root_apply_list(s, c->image, root_lists[i].name, *root_list_at(c->image, i),
				    err);
	return r == 0 ? root_apply_layers(s, c, err) : r;
}

static int root_apply(struct root_store *s, const struct root_change *c, struct error *err)
{
	int r;

	r = FAILPOINT("store.write");
	if (r < 0)
		return error_set(err, r, "root.db");
	/* Also before a put: its triggers take the old lists away. */
	r = sql_bind_text(s->db, s->statements[ROOT_DROP_IMAGE], 1, c->id, err);
	if (r == 0)
		r = root_do(s, ROOT_DROP_IMAGE, err);
	if (r == 0 && c->image)
		r = root_apply_put(s, c, err);
	if (r == 0)
		r = root_do(s, ROOT_DROP_LAYERS, err);
	if (r == 0)
		FAILPOINT_AFTER("store.write");
	return r;
}

/* One change between savepoints. -ECANCELED where SQLite has undone the whole transaction. */
static int root_apply_marked(struct root_store *s, struct root_change *c)
{
	int r;

	r = root_do(s, ROOT_MARK, &c->err);
	if (r == 0)
		r = root_apply(s, c, &c->err);
	if (sqlite3_get_autocommit(s->db))
		return -ECANCELED;
	if (r < 0)
		(void)root_do(s, ROOT_MARK_UNDO, NULL);
	(void)root_do(s, ROOT_MARK_DONE, NULL);
	return 0;
}

static int root_apply_batch(struct root_store *s, struct error *err)
{
	struct root_change *c;
	int r;

	r = root_do(s, ROOT_BEGIN, err);
	if (r < 0)
		return r;
	list_for_each (c, &s->batch, struct root_change, link) {
		r = root_apply_marked(s, c);
		if (r < 0)
			return error_copy(err, &c->err);
	}
	r = FAILPOINT("store.commit");
	if (r < 0)
		return error_set(err, r, "root.db");
	r = root_do(s, ROOT_COMMIT, err);
	if (r == 0)
		FAILPOINT_AFTER("store.commit");
	return r;
}

/* What failed in the batch, as the first of its errors that is ENOSPC, else any. */
static int root_batch_error(const struct root_store *s)
{
	struct root_change *c;
	int r = 0;

	list_for_each (c, &s->batch, struct root_change, link) {
		if (c->err.code == -ENOSPC)
			return -ENOSPC;
		r = r == 0 ? c->err.code : r;
	}
	return r;
}

static void root_write_once(struct root_store *s)
{
	struct error err = ERROR_INIT;
	struct root_change *c;
	int r;

	list_for_each (c, &s->batch, struct root_change, link) {
		c->err = (struct error)ERROR_INIT;
	}
	r = root_apply_batch(s, &err);
	if (r == 0)
		return;
	if (!sqlite3_get_autocommit(s->db))
		(void)root_do(s, ROOT_ROLLBACK, NULL);
	list_for_each (c, &s->batch, struct root_change, link) {
		if (!c->err.code)
			c->err = err;
	}
}

static void root_write(struct root_store *s)
{
	root_write_once(s);
	/* Where some changes of a batch were made, making them again changes nothing. */
	if (root_batch_error(s) == -ENOSPC && store_room_use(&s->room))
		root_write_once(s);
	store_room_make(&s->room);
}

static void root_work_run(struct pool_work *work)
{
	root_write(container_of(work, struct root_store, work));
}

/* ---- queue, on the loop thread ---- */

static void root_change_free(struct root_change *c)
{
	list_remove(&c->link);
	arena_done(&c->arena);
	free(c);
}

static void root_take_batch(struct root_store *s)
{
	struct root_change *c;

	list_for_each (c, &s->waiting, struct root_change, link) {
		list_remove(&c->link);
		list_add_tail(&s->batch, &c->link);
	}
}

static void root_flush(struct root_store *s)
{
	/* While a batch is reported its callbacks queue more: that goes out when all were told. */
	if (s->work.busy || !list_empty(&s->batch) || list_empty(&s->waiting))
		return;
	root_take_batch(s);
	pool_submit(s->pool, &s->work);
}

static void root_work_done(struct pool_work *work)
{
	struct root_store *s = container_of(work, struct root_store, work);

	while (!list_empty(&s->batch)) {
		struct root_change *c = list_first(&s->batch, struct root_change, link);

		if (c->done)
			c->done(c->userdata, c->err.code ? &c->err : NULL);
		root_change_free(c);
	}
	root_flush(s);
}

static int root_queue(struct root_store *s, struct root_change *c)
{
	list_add_tail(&s->waiting, &c->link);
	root_flush(s);
	return 0;
}

static struct root_change *root_change_new(const char *id, root_done_fn done, void *userdata)
{
	struct root_change *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	*c = (struct root_change){ .arena = ARENA_INIT, .done = done, .userdata = userdata };
	list_init(&c->link);
	c->id = arena_strdup(&c->arena, id);
	if (!c->id) {
		root_change_free(c);
		return NULL;
	}
	return c;
}

static int root_copy_list(struct arena *a, char *const **list)
{
	size_t n = *list ? strv_len(*list) : 0;
	char **copy = arena_zalloc(a, n + 1, sizeof(*copy));

	if (!copy)
		return -ENOMEM;
	for (size_t i = 0; i < n; i++) {
		copy[i] = arena_strdup(a, (*list)[i]);
		if (!copy[i])
			return -ENOMEM;
	}
	*list = copy;
	return 0;
}

static int root_copy_text(struct arena *a, const char **text)
{
	*text = arena_strdup(a, *text ? *text : "");
	return *text ? 0 : -ENOMEM;
}

static int root_copy_image(struct root_change *c, const struct root_image *image)
{
	struct root_image *copy = arena_memdup(&c->arena, image, sizeof(*image));
	int r;

	if (!copy)
		return -ENOMEM;
	c->image = copy;
	for (size_t i = 0; i < image_table.n_columns; i++) {
		const struct sql_column *column = &image_columns[i];

		if (column->kind != SQL_TEXT)
			continue;
		r = root_copy_text(&c->arena,
				   (const char **)(void *)((char *)copy + column->offset));
		if (r < 0)
			return r;
	}
	r = root_copy_list(&c->arena, &copy->names);
	for (size_t i = 0; i < ARRAY_SIZE(root_lists) && r == 0; i++)
		r = root_copy_list(&c->arena, root_list_at(copy, i));
	if (r < 0)
		return r;
	copy->layers =
		arena_memdup(&c->arena, image->layers ? image->layers : (const int64_t[]){ 0 },
			     MAX(image->n_layers, (size_t)1) * sizeof(*image->layers));
	return copy->layers ? 0 : -ENOMEM;
}

static int root_copy_layers(struct root_change *c, const struct root_layer *layers, size_t n)
{
	c->layers = arena_zalloc(&c->arena, n + 1, sizeof(*layers));
	if (!c->layers)
		return -ENOMEM;
	c->n_layers = n;
	for (size_t i = 0; i < n; i++) {
		c->layers[i] = layers[i];
		if (root_copy_text(&c->arena, &c->layers[i].diff_id) < 0)
			return -ENOMEM;
	}
	return 0;
}

int root_store_put_image(struct root_store *s, const struct root_image *image,
			 const struct root_layer *layers, size_t n_layers, root_done_fn done,
			 void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(image->id, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "record image %s", image->id);
	r = root_copy_image(c, image);
	if (r == 0)
		r = root_copy_layers(c, layers, n_layers);
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "record image %s", image->id);
	}
	return root_queue(s, c);
}

int root_store_drop_image(struct root_store *s, const char *id, root_done_fn done, void *userdata,
			  struct error *err)
{
	struct root_change *c = root_change_new(id, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop the record of image %s", id);
	return root_queue(s, c);
}

/* ---- open, close, reading at the start ---- */

static int root_store_prepare(struct root_store *s, struct error *err)
{
	int r;

	r = sql_prepare_put(s->db, &s->put_image, &image_table, err);
	for (size_t i = 0; i < ROOT_STATEMENT_COUNT && r == 0; i++)
		r = sql_prepare(s->db, &s->statements[i], root_texts[i], err);
	return r;
}

int root_store_open(struct root_store **ret, struct pool *pool, int dir_fd, const char *name,
		    struct error *err)
{
	struct root_store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "open the database %s", name);
	s->pool = pool;
	s->work = (struct pool_work){ .run = root_work_run, .done = root_work_done };
	list_init(&s->waiting);
	list_init(&s->batch);
	r = store_room_init(&s->room, dir_fd, name);
	r = r < 0 ? error_set(err, r, "open the database %s", name)
		  : sql_open(&s->db, dir_fd, name, &root_schema, err);
	if (r == -ENOSPC && store_room_use(&s->room))
		r = sql_open(&s->db, dir_fd, name, &root_schema, err);
	if (r == 0)
		r = root_store_prepare(s, err);
	if (r < 0) {
		(void)root_store_close(s);
		return r;
	}
	store_room_make(&s->room);
	*ret = s;
	return 0;
}

struct root_store *root_store_close(struct root_store *s)
{
	if (!s)
		return NULL;
	/* A batch that was written and not reported yet is written again: the same records. */
	root_take_batch(s);
	if (!list_empty(&s->batch))
		root_write(s);
	while (!list_empty(&s->batch))
		root_change_free(list_first(&s->batch, struct root_change, link));
	(void)sql_finish(s->put_image);
	for (size_t i = 0; i < ROOT_STATEMENT_COUNT; i++)
		(void)sql_finish(s->statements[i]);
	(void)sql_close(s->db);
	store_room_done(&s->room);
	free(s);
	return NULL;
}

bool root_store_is_idle(const struct root_store *s)
{
	return !s->work.busy && list_empty(&s->batch) && list_empty(&s->waiting);
}

/* The words that a statement with the image's id as ?1 (and a list's name as ?2) yields. */
static int root_read_words(struct root_store *s, const char *text, const char *id, const char *list,
			   char ***ret, struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *words = NULL;
	_cleanup_strv_ char **v = strv_copy(NULL);
	int r;

	if (!v)
		return error_set(err, -ENOMEM, "read image %s", id);
	r = sql_prepare(s->db, &words, text, err);
	if (r == 0)
		r = sql_bind_text(s->db, words, 1, id, err);
	if (r == 0 && list)
		r = sql_bind_text(s->db, words, 2, list, err);
	if (r < 0)
		return r;
	for (;;) {
		const char *word;

		r = sql_next_row(s->db, words, err, "root.db");
		if (r < 0)
			return r;
		if (r == 0)
			break;
		word = (const char *)sqlite3_column_text(words, 0);
		if (strv_add(&v, word ? word : "") < 0)
			return error_set(err, -ENOMEM, "read image %s", id);
	}
	*ret = TAKE_PTR(v);
	return 0;
}

static int root_read_lists(struct root_store *s, struct root_image *image, struct arena *a,
			   struct error *err)
{
	for (size_t i = 0; i <= ARRAY_SIZE(root_lists); i++) {
		_cleanup_strv_ char **v = NULL;
		char *const *list;
		int r;

		if (i == ARRAY_SIZE(root_lists))
			r = root_read_words(
				s, "SELECT word FROM image_name WHERE image=? ORDER BY rowid",
				image->id, NULL, &v, err);
		else
			r = root_read_words(s,
					    "SELECT word FROM image_word WHERE image=? AND list=?"
					    " ORDER BY position",
					    image->id, root_lists[i].name, &v, err);
		if (r < 0)
			return r;
		list = v;
		if (root_copy_list(a, &list) < 0)
			return error_set(err, -ENOMEM, "read image %s", image->id);
		if (i == ARRAY_SIZE(root_lists))
			image->names = list;
		else
			*root_list_at(image, i) = list;
	}
	return 0;
}

static int root_read_layers(struct root_store *s, struct root_image *image, struct arena *a,
			    struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int64_t *layers = NULL;
	size_t n = 0, size = 0;
	int r;

	r = sql_prepare(s->db, &rows,
			"SELECT layer FROM image_layer WHERE image=? ORDER BY position", err);
	if (r == 0)
		r = sql_bind_text(s->db, rows, 1, image->id, err);
	while (r == 0) {
		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = 0;
		if (n == size) {
			int64_t *more = arena_zalloc(a, size + 64, sizeof(*more));

			if (!more)
				return error_set(err, -ENOMEM, "read image %s", image->id);
			if (n)
				memcpy(more, layers, n * sizeof(*more));
			layers = more;
			size += 64;
		}
		layers[n++] = sqlite3_column_int64(rows, 0);
	}
	image->layers = layers;
	image->n_layers = n;
	return r;
}

int root_store_each_image(struct root_store *s,
			  int (*fn)(void *data, const struct root_image *image), void *data,
			  struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = sql_prepare_select(s->db, &rows, &image_table, "ORDER BY created, rowid", err);
	while (r == 0) {
		_cleanup_(arena_done) struct arena a = ARENA_INIT;
		struct root_image image = { .id = NULL };

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		sql_read_record(rows, &image_table, &image);
		r = root_read_lists(s, &image, &a, err);
		if (r == 0)
			r = root_read_layers(s, &image, &a, err);
		if (r == 0)
			r = fn(data, &image);
		assert(root_store_is_idle(s));
	}
	return r;
}

int root_store_each_layer(struct root_store *s,
			  int (*fn)(void *data, const struct root_layer *layer), void *data,
			  struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = sql_prepare_select(s->db, &rows, &layer_table, "ORDER BY number", err);
	while (r == 0) {
		struct root_layer layer;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		sql_read_record(rows, &layer_table, &layer);
		r = fn(data, &layer);
		assert(root_store_is_idle(s));
	}
	return r;
}
