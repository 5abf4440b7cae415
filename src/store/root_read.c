/* SPDX-License-Identifier: Apache-2.0 */

/* What is read of root.db, and how its records lie in its tables. */

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "base/text/str.h"
#include "store/root_state.h"

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

static const struct sql_column network_columns[] = {
	SQL_COLUMN(root_network, name, SQL_TEXT),
	SQL_COLUMN(root_network, number, SQL_UNSIGNED),
	SQL_COLUMN(root_network, pool4, SQL_TEXT),
	SQL_COLUMN(root_network, pool6, SQL_TEXT),
	SQL_COLUMN(root_network, gateway4, SQL_TEXT),
	SQL_COLUMN(root_network, mtu, SQL_UNSIGNED),
	SQL_COLUMN(root_network, internal, SQL_BOOL),
	SQL_COLUMN(root_network, node_open, SQL_BOOL),
	SQL_COLUMN(root_network, created_at, SQL_U64),
	SQL_COLUMN(root_network, driver, SQL_TEXT),
	SQL_COLUMN(root_network, parent, SQL_TEXT),
	SQL_COLUMN(root_network, mode, SQL_TEXT),
	SQL_COLUMN(root_network, range4, SQL_TEXT),
	SQL_COLUMN(root_network, gateway6, SQL_TEXT),
};

static const struct sql_column identity_columns[] = {
	SQL_COLUMN(root_identity, serial, SQL_TEXT),
	SQL_COLUMN(root_identity, name, SQL_TEXT),
	SQL_COLUMN(root_identity, role, SQL_TEXT),
	SQL_COLUMN(root_identity, issued_at, SQL_U64),
	SQL_COLUMN(root_identity, not_before, SQL_U64),
	SQL_COLUMN(root_identity, not_after, SQL_U64),
	SQL_COLUMN(root_identity, revoked_at, SQL_U64),
};

static const struct sql_column volume_columns[] = {
	SQL_COLUMN(root_volume, id, SQL_TEXT),        SQL_COLUMN(root_volume, name, SQL_TEXT),
	SQL_COLUMN(root_volume, labels, SQL_TEXT),    SQL_COLUMN(root_volume, anonymous, SQL_BOOL),
	SQL_COLUMN(root_volume, created_at, SQL_U64),
};

static const struct sql_column cloud_vm_columns[] = {
	SQL_COLUMN(root_cloud_vm, id, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, name, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, request, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, token, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, instance, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, state, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, wanted, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, reason, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, address, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, zone, SQL_TEXT),
	SQL_COLUMN(root_cloud_vm, created_at, SQL_U64),
	SQL_COLUMN(root_cloud_vm, ended_at, SQL_U64),
};

static const struct sql_column kept_columns[] = {
	SQL_COLUMN(root_kept, id, SQL_TEXT),
	SQL_COLUMN(root_kept, text, SQL_TEXT),
};

static const struct sql_column aurae_vm_columns[] = {
	SQL_COLUMN(root_aurae_vm, id, SQL_TEXT),
	SQL_COLUMN(root_aurae_vm, text, SQL_TEXT),
};

const struct sql_table root_image_table = { "image", image_columns, ARRAY_SIZE(image_columns) };
const struct sql_table root_layer_table = { "layer", layer_columns, ARRAY_SIZE(layer_columns) };
const struct sql_table root_network_table = { "network", network_columns,
					      ARRAY_SIZE(network_columns) };
const struct sql_table root_identity_table = { "identity", identity_columns,
					       ARRAY_SIZE(identity_columns) };
const struct sql_table root_volume_table = { "volume", volume_columns, ARRAY_SIZE(volume_columns) };
const struct sql_table root_cloud_vm_table = { "cloud_vm", cloud_vm_columns,
					       ARRAY_SIZE(cloud_vm_columns) };
const struct sql_table root_kept_table = { "kept", kept_columns, ARRAY_SIZE(kept_columns) };
const struct sql_table root_aurae_vm_table = { "aurae_vm", aurae_vm_columns,
					       ARRAY_SIZE(aurae_vm_columns) };

const struct root_list root_lists[ROOT_LISTS] = {
	{ "env", offsetof(struct root_image, env) },
	{ "entrypoint", offsetof(struct root_image, entrypoint) },
	{ "cmd", offsetof(struct root_image, cmd) },
	{ "blob", offsetof(struct root_image, blobs) },
	{ "origin", offsetof(struct root_image, origins) },
	{ "volume", offsetof(struct root_image, volumes) },
	{ "verdict", offsetof(struct root_image, verdicts) },
	{ "health", offsetof(struct root_image, health) },
};

int root_copy_list(struct arena *a, char *const **list)
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

/* The connection is that of the writer, whose thread must not have it meanwhile. */
static bool root_store_is_written(const struct root_store *s)
{
	return s->held ? s->work.busy || !list_empty(&s->batch) : !root_store_is_idle(s);
}

static int root_select(struct root_store *s, struct sqlite3_stmt **ret,
		       const struct sql_table *table, const char *order, struct error *err)
{
	assert(!root_store_is_written(s));
	return sql_prepare_select(s->db, ret, table, order, err);
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

	r = root_select(s, &rows, &root_image_table, "ORDER BY created, rowid", err);
	while (r == 0) {
		_cleanup_(arena_done) struct arena a = ARENA_INIT;
		struct root_image image = { .id = NULL };

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_image_table, &image, err);
		if (r == 0)
			r = root_read_lists(s, &image, &a, err);
		if (r == 0)
			r = root_read_layers(s, &image, &a, err);
		if (r == 0)
			r = fn(data, &image);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_layer(struct root_store *s,
			  int (*fn)(void *data, const struct root_layer *layer), void *data,
			  struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = root_select(s, &rows, &root_layer_table, "ORDER BY number", err);
	while (r == 0) {
		struct root_layer layer;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_layer_table, &layer, err);
		if (r == 0)
			r = fn(data, &layer);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_network(struct root_store *s,
			    int (*fn)(void *data, const struct root_network *network), void *data,
			    struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = root_select(s, &rows, &root_network_table, "ORDER BY number", err);
	while (r == 0) {
		struct root_network network;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_network_table, &network, err);
		if (r == 0)
			r = fn(data, &network);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_volume(struct root_store *s,
			   int (*fn)(void *data, const struct root_volume *volume), void *data,
			   struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = root_select(s, &rows, &root_volume_table, "ORDER BY created_at, rowid", err);
	while (r == 0) {
		struct root_volume volume;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_volume_table, &volume, err);
		if (r == 0)
			r = fn(data, &volume);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_identity(struct root_store *s,
			     int (*fn)(void *data, const struct root_identity *identity),
			     void *data, struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = root_select(s, &rows, &root_identity_table, "ORDER BY issued_at, rowid", err);
	while (r == 0) {
		struct root_identity identity;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_identity_table, &identity, err);
		if (r == 0)
			r = fn(data, &identity);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_cloud_vm(struct root_store *s,
			     int (*fn)(void *data, const struct root_cloud_vm *vm), void *data,
			     struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r;

	r = root_select(s, &rows, &root_cloud_vm_table, "ORDER BY created_at, rowid", err);
	while (r == 0) {
		struct root_cloud_vm vm;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_cloud_vm_table, &vm, err);
		if (r == 0)
			r = fn(data, &vm);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_kept(struct root_store *s, int (*fn)(void *data, const struct root_kept *kept),
			 void *data, struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r = root_select(s, &rows, &root_kept_table, "ORDER BY rowid", err);

	while (r == 0) {
		struct root_kept kept;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_kept_table, &kept, err);
		if (r == 0)
			r = fn(data, &kept);
		assert(!root_store_is_written(s));
	}
	return r;
}

int root_store_each_aurae_vm(struct root_store *s,
			     int (*fn)(void *data, const struct root_aurae_vm *vm), void *data,
			     struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r = root_select(s, &rows, &root_aurae_vm_table, "ORDER BY rowid", err);

	while (r == 0) {
		struct root_aurae_vm vm;

		r = sql_next_row(s->db, rows, err, "root.db");
		if (r <= 0)
			break;
		r = sql_read_record(rows, &root_aurae_vm_table, &vm, err);
		if (r == 0)
			r = fn(data, &vm);
		assert(!root_store_is_written(s));
	}
	return r;
}
