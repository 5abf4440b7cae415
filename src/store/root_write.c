/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Two lists of changes: `waiting`, filled by the loop thread, and `batch`, which belongs to the
 * pool's thread while the work is busy. There is one work, so the connection is used by one thread
 * at a time, and what gathers while it runs is the next transaction.
 */

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <stdbool.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/arena.h"
#include "base/memory/list.h"
#include "base/text/str.h"
#include "loop/pool.h"
#include "store/root_state.h"

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
	"CREATE TABLE network("
	" name TEXT PRIMARY KEY, number INTEGER NOT NULL UNIQUE, pool4 TEXT NOT NULL,"
	" pool6 TEXT NOT NULL, gateway4 TEXT NOT NULL, mtu INTEGER NOT NULL,"
	" internal INTEGER NOT NULL, node_open INTEGER NOT NULL, created_at INTEGER NOT NULL)",
	"CREATE TABLE identity("
	" serial TEXT PRIMARY KEY, name TEXT NOT NULL, role TEXT NOT NULL,"
	" issued_at INTEGER NOT NULL, not_before INTEGER NOT NULL, not_after INTEGER NOT NULL,"
	" revoked_at INTEGER NOT NULL)",
	"CREATE TABLE volume("
	" id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, labels TEXT NOT NULL,"
	" anonymous INTEGER NOT NULL, created_at INTEGER NOT NULL)",
	"CREATE TABLE cloud_vm("
	" id TEXT PRIMARY KEY, name TEXT NOT NULL, request TEXT NOT NULL, token TEXT NOT NULL,"
	" instance TEXT NOT NULL, state TEXT NOT NULL, wanted TEXT NOT NULL, reason TEXT NOT NULL,"
	" address TEXT NOT NULL, zone TEXT NOT NULL, created_at INTEGER NOT NULL,"
	" ended_at INTEGER NOT NULL)",
	"CREATE TABLE kept(id TEXT PRIMARY KEY, text TEXT NOT NULL)",
	"CREATE TABLE aurae_vm(id TEXT PRIMARY KEY, text TEXT NOT NULL)",
	"ALTER TABLE network ADD COLUMN driver TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE network ADD COLUMN parent TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE network ADD COLUMN mode TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE network ADD COLUMN range4 TEXT NOT NULL DEFAULT '';"
	"ALTER TABLE network ADD COLUMN gateway6 TEXT NOT NULL DEFAULT ''",
};

static const struct sql_schema root_schema = {
	.pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA temp_store=MEMORY;"
		   "PRAGMA cache_size=-256",
	.migrations = root_migrations,
	.n_migrations = ARRAY_SIZE(root_migrations),
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
	[ROOT_DROP_NETWORK] = "DELETE FROM network WHERE name=?",
	[ROOT_DROP_IDENTITY] = "DELETE FROM identity WHERE serial=?",
	[ROOT_DROP_VOLUME] = "DELETE FROM volume WHERE id=?",
	[ROOT_DROP_CLOUD_VM] = "DELETE FROM cloud_vm WHERE id=?",
	[ROOT_DROP_KEPT] = "DELETE FROM kept WHERE id=?",
	[ROOT_DROP_AURAE_VM] = "DELETE FROM aurae_vm WHERE id=?",
	[ROOT_ADD_IMAGE_LAYER] = "INSERT INTO image_layer(image, position, layer) VALUES(?,?,?)",
};
static_assert(ARRAY_SIZE(root_texts) == ROOT_STATEMENT_COUNT, "a text for each statement");

enum root_kind {
	ROOT_IMAGE,
	ROOT_NETWORK,
	ROOT_IDENTITY,
	ROOT_VOLUME,
	ROOT_CLOUD_VM,
	ROOT_KEPT,
	ROOT_AURAE_VM,
};

struct root_change {
	struct list link;
	struct arena arena;
	const char *id;
	enum root_kind kind;          /* of what id is the name */
	struct root_image *image;     /* NULL: the image of that id goes */
	struct root_network *network; /* likewise */
	struct root_identity *identity;
	struct root_volume *volume;
	struct root_cloud_vm *vm;
	struct root_kept *kept;
	struct root_aurae_vm *aurae_vm;
	struct root_layer *layers;
	size_t n_layers;
	root_done_fn done;
	void *userdata;
	struct error err;
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
		r = sql_bind_record(s->db, s->statements[ROOT_ADD_LAYER], &root_layer_table,
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

	r = sql_bind_record(s->db, s->put_image, &root_image_table, c->image, err);
	if (r == 0)
		r = sql_finish_write(s->db, s->put_image, err, "root.db");
	if (r == 0)
		r = root_apply_names(s, c->image, err);
	for (size_t i = 0; i < ARRAY_SIZE(root_lists) && r == 0; i++)
		r = root_apply_list(s, c->image, root_lists[i].name, *root_list_at(c->image, i),
				    err);
	return r == 0 ? root_apply_layers(s, c, err) : r;
}

/* Puts the record, or where that is NULL drops the one of that id. */
static int root_apply_record(struct root_store *s, struct sqlite3_stmt *put,
			     const struct sql_table *table, const void *record,
			     enum root_statement drop, const char *id, struct error *err)
{
	int r;

	if (record) {
		r = sql_bind_record(s->db, put, table, record, err);
		return r == 0 ? sql_finish_write(s->db, put, err, "root.db") : r;
	}
	r = sql_bind_text(s->db, s->statements[drop], 1, id, err);
	return r == 0 ? root_do(s, drop, err) : r;
}

static int root_apply_network(struct root_store *s, const struct root_change *c, struct error *err)
{
	return root_apply_record(s, s->put_network, &root_network_table, c->network,
				 ROOT_DROP_NETWORK, c->id, err);
}

static int root_apply_identity(struct root_store *s, const struct root_change *c, struct error *err)
{
	return root_apply_record(s, s->put_identity, &root_identity_table, c->identity,
				 ROOT_DROP_IDENTITY, c->id, err);
}

static int root_apply_cloud_vm(struct root_store *s, const struct root_change *c, struct error *err)
{
	return root_apply_record(s, s->put_cloud_vm, &root_cloud_vm_table, c->vm,
				 ROOT_DROP_CLOUD_VM, c->id, err);
}

static int root_apply_kept(struct root_store *s, const struct root_change *c, struct error *err)
{
	int r;

	if (c->kept) {
		r = sql_bind_record(s->db, s->put_kept, &root_kept_table, c->kept, err);
		if (r == 0)
			r = sql_finish_write(s->db, s->put_kept, err, "root.db");
	} else {
		r = sql_bind_text(s->db, s->statements[ROOT_DROP_KEPT], 1, c->id, err);
		if (r == 0)
			r = root_do(s, ROOT_DROP_KEPT, err);
	}
	if (r == 0)
		FAILPOINT_AFTER("store.write");
	return r;
}

static int root_apply_aurae_vm(struct root_store *s, const struct root_change *c, struct error *err)
{
	return root_apply_record(s, s->put_aurae_vm, &root_aurae_vm_table, c->aurae_vm,
				 ROOT_DROP_AURAE_VM, c->id, err);
}

static int root_apply_volume(struct root_store *s, const struct root_change *c, struct error *err)
{
	return root_apply_record(s, s->put_volume, &root_volume_table, c->volume, ROOT_DROP_VOLUME,
				 c->id, err);
}

static int root_apply(struct root_store *s, const struct root_change *c, struct error *err)
{
	int r;

	r = FAILPOINT("store.write");
	if (r < 0)
		return error_set(err, r, "root.db");
	if (c->kind == ROOT_NETWORK)
		return root_apply_network(s, c, err);
	if (c->kind == ROOT_IDENTITY)
		return root_apply_identity(s, c, err);
	if (c->kind == ROOT_VOLUME)
		return root_apply_volume(s, c, err);
	if (c->kind == ROOT_CLOUD_VM)
		return root_apply_cloud_vm(s, c, err);
	if (c->kind == ROOT_KEPT)
		return root_apply_kept(s, c, err);
	if (c->kind == ROOT_AURAE_VM)
		return root_apply_aurae_vm(s, c, err);
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

/* Whether something had no room that the reserve is for. What is kept for a reboot is written all
 * the time: on a full disk it would take what the next opening needs. */
static bool root_batch_wants_room(const struct root_store *s)
{
	struct root_change *c;

	list_for_each (c, &s->batch, struct root_change, link)
		if (c->err.code == -ENOSPC && !c->kept)
			return true;
	return false;
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
	if (root_batch_wants_room(s) && store_room_use(&s->room))
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

static int root_copy_text(struct arena *a, const char **text)
{
	*text = arena_strdup(a, *text ? *text : "");
	return *text ? 0 : -ENOMEM;
}

/* Those of a record that was copied as it is. */
static int root_copy_texts(struct arena *a, const struct sql_table *t, void *record)
{
	int r = 0;

	for (size_t i = 0; i < t->n_columns && r == 0; i++)
		if (t->columns[i].kind == SQL_TEXT)
			r = root_copy_text(
				a, (const char **)(void *)((char *)record + t->columns[i].offset));
	return r;
}

static int root_copy_image(struct root_change *c, const struct root_image *image)
{
	struct root_image *copy = arena_memdup(&c->arena, image, sizeof(*image));
	int r;

	if (!copy)
		return -ENOMEM;
	c->image = copy;
	r = root_copy_texts(&c->arena, &root_image_table, copy);
	if (r < 0)
		return r;
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

int root_store_put_network(struct root_store *s, const struct root_network *network,
			   root_done_fn done, void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(network->name, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "record network %s", network->name);
	c->kind = ROOT_NETWORK;
	c->network = arena_memdup(&c->arena, network, sizeof(*network));
	r = c->network ? root_copy_texts(&c->arena, &root_network_table, c->network) : -ENOMEM;
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "record network %s", network->name);
	}
	return root_queue(s, c);
}

int root_store_drop_network(struct root_store *s, const char *name, root_done_fn done,
			    void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(name, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop the record of network %s", name);
	c->kind = ROOT_NETWORK;
	return root_queue(s, c);
}

int root_store_put_identity(struct root_store *s, const struct root_identity *identity,
			    root_done_fn done, void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(identity->serial, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "record a certificate of %s", identity->name);
	c->kind = ROOT_IDENTITY;
	c->identity = arena_memdup(&c->arena, identity, sizeof(*identity));
	r = c->identity ? root_copy_texts(&c->arena, &root_identity_table, c->identity) : -ENOMEM;
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "record a certificate of %s", identity->name);
	}
	return root_queue(s, c);
}

int root_store_drop_identity(struct root_store *s, const char *serial, root_done_fn done,
			     void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(serial, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop the record of certificate %s", serial);
	c->kind = ROOT_IDENTITY;
	return root_queue(s, c);
}

int root_store_put_cloud_vm(struct root_store *s, const struct root_cloud_vm *vm, root_done_fn done,
			    void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(vm->id, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "record a machine in a cloud");
	c->kind = ROOT_CLOUD_VM;
	c->vm = arena_memdup(&c->arena, vm, sizeof(*vm));
	r = c->vm ? root_copy_texts(&c->arena, &root_cloud_vm_table, c->vm) : -ENOMEM;
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "record a machine in a cloud");
	}
	return root_queue(s, c);
}

int root_store_drop_cloud_vm(struct root_store *s, const char *id, root_done_fn done,
			     void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(id, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop the record of a machine in a cloud");
	c->kind = ROOT_CLOUD_VM;
	return root_queue(s, c);
}

int root_store_put_kept(struct root_store *s, const struct root_kept *kept, root_done_fn done,
			void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(kept->id, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "keep workload %s", kept->id);
	c->kind = ROOT_KEPT;
	c->kept = arena_memdup(&c->arena, kept, sizeof(*kept));
	r = c->kept ? root_copy_texts(&c->arena, &root_kept_table, c->kept) : -ENOMEM;
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "keep workload %s", kept->id);
	}
	return root_queue(s, c);
}

int root_store_drop_kept(struct root_store *s, const char *id, root_done_fn done, void *userdata,
			 struct error *err)
{
	struct root_change *c = root_change_new(id, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop what is kept of workload %s", id);
	c->kind = ROOT_KEPT;
	return root_queue(s, c);
}

int root_store_put_aurae_vm(struct root_store *s, const struct root_aurae_vm *vm, root_done_fn done,
			    void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(vm->id, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "record machine %s", vm->id);
	c->kind = ROOT_AURAE_VM;
	c->aurae_vm = arena_memdup(&c->arena, vm, sizeof(*vm));
	r = c->aurae_vm ? root_copy_texts(&c->arena, &root_aurae_vm_table, c->aurae_vm) : -ENOMEM;
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "record machine %s", vm->id);
	}
	return root_queue(s, c);
}

int root_store_drop_aurae_vm(struct root_store *s, const char *id, root_done_fn done,
			     void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(id, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop the record of machine %s", id);
	c->kind = ROOT_AURAE_VM;
	return root_queue(s, c);
}

int root_store_put_volume(struct root_store *s, const struct root_volume *volume, root_done_fn done,
			  void *userdata, struct error *err)
{
	struct root_change *c = root_change_new(volume->id, done, userdata);
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "record volume %s", volume->name);
	c->kind = ROOT_VOLUME;
	c->volume = arena_memdup(&c->arena, volume, sizeof(*volume));
	r = c->volume ? root_copy_texts(&c->arena, &root_volume_table, c->volume) : -ENOMEM;
	if (r < 0) {
		root_change_free(c);
		return error_set(err, r, "record volume %s", volume->name);
	}
	return root_queue(s, c);
}

int root_store_drop_volume(struct root_store *s, const char *id, root_done_fn done, void *userdata,
			   struct error *err)
{
	struct root_change *c = root_change_new(id, done, userdata);

	if (!c)
		return error_set(err, -ENOMEM, "drop the record of volume %s", id);
	c->kind = ROOT_VOLUME;
	return root_queue(s, c);
}

/* ---- open, close ---- */

static int root_store_prepare(struct root_store *s, struct error *err)
{
	int r;

	r = sql_prepare_put(s->db, &s->put_image, &root_image_table, err);
	if (r == 0)
		r = sql_prepare_put(s->db, &s->put_network, &root_network_table, err);
	if (r == 0)
		r = sql_prepare_put(s->db, &s->put_identity, &root_identity_table, err);
	if (r == 0)
		r = sql_prepare_put(s->db, &s->put_volume, &root_volume_table, err);
	if (r == 0)
		r = sql_prepare_put(s->db, &s->put_cloud_vm, &root_cloud_vm_table, err);
	if (r == 0)
		r = sql_prepare_put(s->db, &s->put_kept, &root_kept_table, err);
	if (r == 0)
		r = sql_prepare_put(s->db, &s->put_aurae_vm, &root_aurae_vm_table, err);
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
	(void)sql_finish(s->put_network);
	(void)sql_finish(s->put_identity);
	(void)sql_finish(s->put_volume);
	(void)sql_finish(s->put_cloud_vm);
	(void)sql_finish(s->put_kept);
	(void)sql_finish(s->put_aurae_vm);
	for (size_t i = 0; i < ROOT_STATEMENT_COUNT; i++)
		(void)sql_finish(s->statements[i]);
	(void)sql_close(s->db);
	store_room_done(&s->room);
	free(s);
	return NULL;
}
