/* SPDX-License-Identifier: Apache-2.0 */

/*
 * run.db. One connection, used by the loop thread alone; every statement is prepared once. The
 * write ahead log with synchronous=OFF makes a put one write() into the page cache: the file
 * survives SIGKILL, and after a power cut it is gone with its tmpfs.
 */

#include "store/store.h"

#include <assert.h>
#include <errno.h>
#include <sqlite3.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "store/room.h"
#include "store/sql.h"

static const struct sql_column instance_columns[] = {
	SQL_COLUMN(run_instance, id, SQL_TEXT),
	SQL_COLUMN(run_instance, path, SQL_TEXT),
	SQL_COLUMN(run_instance, kind, SQL_TEXT),
	SQL_COLUMN(run_instance, state, SQL_INT),
	SQL_COLUMN(run_instance, state_word, SQL_TEXT),
	SQL_COLUMN(run_instance, pid, SQL_I64),
	SQL_COLUMN(run_instance, start_time, SQL_U64),
	SQL_COLUMN(run_instance, cgroup, SQL_TEXT),
	SQL_COLUMN(run_instance, host_network, SQL_BOOL),
	SQL_COLUMN(run_instance, owner, SQL_TEXT),
	SQL_COLUMN(run_instance, reason, SQL_TEXT),
	SQL_COLUMN(run_instance, created_at, SQL_U64),
	SQL_COLUMN(run_instance, request, SQL_TEXT),
	SQL_COLUMN(run_instance, settings, SQL_TEXT),
	SQL_COLUMN(run_instance, kind_reason, SQL_TEXT),
	SQL_COLUMN(run_instance, kernel, SQL_TEXT),
	SQL_COLUMN(run_instance, machine_memory, SQL_U64),
	SQL_COLUMN(run_instance, machine_room, SQL_U64),
	SQL_COLUMN(run_instance, machine_cpus, SQL_UNSIGNED),
	SQL_COLUMN(run_instance, handle, SQL_TEXT),
};

static const struct sql_column workload_columns[] = {
	SQL_COLUMN(run_workload, id, SQL_TEXT),
	SQL_COLUMN(run_workload, path, SQL_TEXT),
	SQL_COLUMN(run_workload, kind, SQL_TEXT),
	SQL_COLUMN(run_workload, instance, SQL_TEXT),
	SQL_COLUMN(run_workload, state, SQL_INT),
	SQL_COLUMN(run_workload, state_word, SQL_TEXT),
	SQL_COLUMN(run_workload, network, SQL_TEXT),
	SQL_COLUMN(run_workload, auto_remove, SQL_BOOL),
	SQL_COLUMN(run_workload, reason, SQL_TEXT),
	SQL_COLUMN(run_workload, created_at, SQL_U64),
	SQL_COLUMN(run_workload, request, SQL_TEXT),
	SQL_COLUMN(run_workload, comment, SQL_TEXT),
	SQL_COLUMN(run_workload, settings, SQL_TEXT),
	SQL_COLUMN(run_workload, instance_kind, SQL_TEXT),
	SQL_COLUMN(run_workload, kind_reason, SQL_TEXT),
	SQL_COLUMN(run_workload, stop_by, SQL_U64),
	SQL_COLUMN(run_workload, attachment, SQL_TEXT),
	SQL_COLUMN(run_workload, lasts, SQL_BOOL),
	SQL_COLUMN(run_workload, drops_volumes, SQL_BOOL),
	SQL_COLUMN(run_workload, stays, SQL_BOOL),
	SQL_COLUMN(run_workload, restart, SQL_TEXT),
	SQL_COLUMN(run_workload, restart_max, SQL_UNSIGNED),
	SQL_COLUMN(run_workload, restart_count, SQL_UNSIGNED),
	SQL_COLUMN(run_workload, restart_delay, SQL_U64),
	SQL_COLUMN(run_workload, stopped, SQL_BOOL),
	SQL_COLUMN(run_workload, handle, SQL_TEXT),
	SQL_COLUMN(run_workload, ids_uid, SQL_UNSIGNED),
	SQL_COLUMN(run_workload, ids_gid, SQL_UNSIGNED),
	SQL_COLUMN(run_workload, ids_count, SQL_UNSIGNED),
};

static const struct sql_column wish_columns[] = {
	SQL_COLUMN(run_wish, id, SQL_TEXT),
	SQL_COLUMN(run_wish, text, SQL_TEXT),
};

static const struct sql_column container_columns[] = {
	SQL_COLUMN(run_container, id, SQL_TEXT),
	SQL_COLUMN(run_container, workload, SQL_TEXT),
	SQL_COLUMN(run_container, position, SQL_UNSIGNED),
	SQL_COLUMN(run_container, name, SQL_TEXT),
	SQL_COLUMN(run_container, image, SQL_TEXT),
	SQL_COLUMN(run_container, image_name, SQL_TEXT),
	SQL_COLUMN(run_container, command, SQL_TEXT),
	SQL_COLUMN(run_container, user, SQL_TEXT),
	SQL_COLUMN(run_container, stdin_open, SQL_BOOL),
	SQL_COLUMN(run_container, tty, SQL_BOOL),
	SQL_COLUMN(run_container, state, SQL_INT),
	SQL_COLUMN(run_container, state_word, SQL_TEXT),
	SQL_COLUMN(run_container, pid, SQL_I64),
	SQL_COLUMN(run_container, exit_code, SQL_INT),
	SQL_COLUMN(run_container, signal, SQL_INT),
	SQL_COLUMN(run_container, reason, SQL_TEXT),
	SQL_COLUMN(run_container, started_at, SQL_U64),
	SQL_COLUMN(run_container, finished_at, SQL_U64),
	SQL_COLUMN(run_container, created_at, SQL_U64),
	SQL_COLUMN(run_container, own_log, SQL_BOOL),
	SQL_COLUMN(run_container, log_lost, SQL_U64),
	SQL_COLUMN(run_container, settings, SQL_TEXT),
	SQL_COLUMN(run_container, volumes, SQL_TEXT),
	SQL_COLUMN(run_container, health, SQL_TEXT),
	SQL_COLUMN(run_container, role, SQL_TEXT),
	SQL_COLUMN(run_container, restart, SQL_TEXT),
	SQL_COLUMN(run_container, restart_max, SQL_UNSIGNED),
	SQL_COLUMN(run_container, restart_count, SQL_UNSIGNED),
	SQL_COLUMN(run_container, stopped, SQL_BOOL),
};

static const struct sql_column mirror_columns[] = {
	SQL_COLUMN(run_mirror, id, SQL_TEXT),
	SQL_COLUMN(run_mirror, workload, SQL_TEXT),
	SQL_COLUMN(run_mirror, name, SQL_TEXT),
	SQL_COLUMN(run_mirror, source, SQL_TEXT),
};

static const struct sql_column share_columns[] = {
	SQL_COLUMN(run_share, id, SQL_TEXT),        SQL_COLUMN(run_share, workload, SQL_TEXT),
	SQL_COLUMN(run_share, name, SQL_TEXT),      SQL_COLUMN(run_share, source, SQL_TEXT),
	SQL_COLUMN(run_share, read_only, SQL_BOOL), SQL_COLUMN(run_share, dev, SQL_U64),
	SQL_COLUMN(run_share, ino, SQL_U64),
};

static const struct sql_column health_columns[] = {
	SQL_COLUMN(run_health, id, SQL_TEXT),        SQL_COLUMN(run_health, container, SQL_TEXT),
	SQL_COLUMN(run_health, started_at, SQL_U64), SQL_COLUMN(run_health, ended_at, SQL_U64),
	SQL_COLUMN(run_health, exit_code, SQL_INT),  SQL_COLUMN(run_health, output, SQL_TEXT),
};

static const struct sql_column forward_columns[] = {
	SQL_COLUMN(run_forward, id, SQL_TEXT),
	SQL_COLUMN(run_forward, family, SQL_TEXT),
	SQL_COLUMN(run_forward, link, SQL_UNSIGNED),
};

enum run_kind {
	RUN_INSTANCE,
	RUN_WORKLOAD,
	RUN_CONTAINER,
	RUN_MIRROR,
	RUN_SHARE,
	RUN_HEALTH,
	RUN_FORWARD,
	RUN_WISH,
	RUN_KIND_COUNT
};

static const struct {
	struct sql_table table;
	const char *each;
	const char *drop; /* what is of a workload goes with it, by triggers */
} run_kinds[] = {
	[RUN_INSTANCE] = { { "instance", instance_columns, ARRAY_SIZE(instance_columns) },
			   "ORDER BY created_at, rowid",
			   "DELETE FROM instance WHERE id=?" },
	[RUN_WORKLOAD] = { { "workload", workload_columns, ARRAY_SIZE(workload_columns) },
			   "ORDER BY created_at, rowid",
			   "DELETE FROM workload WHERE id=?" },
	[RUN_CONTAINER] = { { "container", container_columns, ARRAY_SIZE(container_columns) },
			    "WHERE workload=? ORDER BY position, rowid",
			    "DELETE FROM container WHERE id=?" },
	[RUN_MIRROR] = { { "mirror", mirror_columns, ARRAY_SIZE(mirror_columns) },
			 "WHERE workload=? ORDER BY rowid",
			 "DELETE FROM mirror WHERE id=?" },
	[RUN_SHARE] = { { "share", share_columns, ARRAY_SIZE(share_columns) },
			"WHERE workload=? ORDER BY rowid",
			"DELETE FROM share WHERE id=?" },
	[RUN_HEALTH] = { { "health", health_columns, ARRAY_SIZE(health_columns) },
			 "WHERE container=? ORDER BY ended_at, rowid",
			 "DELETE FROM health WHERE container=?" },
	[RUN_FORWARD] = { { "forward", forward_columns, ARRAY_SIZE(forward_columns) },
			  "ORDER BY rowid",
			  "DELETE FROM forward WHERE id=?" },
	[RUN_WISH] = { { "wish", wish_columns, ARRAY_SIZE(wish_columns) },
		       "WHERE id=?",
		       "DELETE FROM wish WHERE id=?" },
};
static_assert(ARRAY_SIZE(run_kinds) == RUN_KIND_COUNT, "a row for each kind");

static const char *const run_migrations[] = {
	"CREATE TABLE instance("
	" id TEXT PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, state INTEGER NOT NULL,"
	" state_word TEXT NOT NULL, pid INTEGER NOT NULL, start_time INTEGER NOT NULL,"
	" cgroup TEXT NOT NULL, host_network INTEGER NOT NULL, owner TEXT NOT NULL,"
	" reason TEXT NOT NULL, created_at INTEGER NOT NULL);"
	"CREATE TABLE workload("
	" id TEXT PRIMARY KEY, path TEXT NOT NULL, kind TEXT NOT NULL, instance TEXT NOT NULL,"
	" state INTEGER NOT NULL, state_word TEXT NOT NULL, network TEXT NOT NULL,"
	" auto_remove INTEGER NOT NULL, reason TEXT NOT NULL, created_at INTEGER NOT NULL);"
	"CREATE TABLE container("
	" id TEXT PRIMARY KEY, workload TEXT NOT NULL, position INTEGER NOT NULL,"
	" name TEXT NOT NULL, image TEXT NOT NULL, image_name TEXT NOT NULL,"
	" command TEXT NOT NULL, user TEXT NOT NULL, stdin_open INTEGER NOT NULL,"
	" state INTEGER NOT NULL, state_word TEXT NOT NULL, pid INTEGER NOT NULL,"
	" exit_code INTEGER NOT NULL, signal INTEGER NOT NULL, reason TEXT NOT NULL,"
	" started_at INTEGER NOT NULL, finished_at INTEGER NOT NULL);"
	"CREATE INDEX container_of_workload ON container(workload);"
	"CREATE TRIGGER workload_gone AFTER DELETE ON workload"
	" BEGIN DELETE FROM container WHERE workload=OLD.id; END",
	("ALTER TABLE instance ADD COLUMN request TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE workload ADD COLUMN request TEXT NOT NULL DEFAULT ''"),
	"ALTER TABLE container ADD COLUMN tty INTEGER NOT NULL DEFAULT 0",
	"ALTER TABLE container ADD COLUMN log_lost INTEGER NOT NULL DEFAULT 0",
	"ALTER TABLE workload ADD COLUMN comment TEXT NOT NULL DEFAULT ''",
	"ALTER TABLE container ADD COLUMN settings TEXT NOT NULL DEFAULT ''",
	("ALTER TABLE instance ADD COLUMN settings TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE workload ADD COLUMN settings TEXT NOT NULL DEFAULT ''"),
	/* There were cells alone, and nobody had chosen. */
	("ALTER TABLE instance ADD COLUMN kind_reason TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE instance ADD COLUMN kernel TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE workload ADD COLUMN instance_kind TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE workload ADD COLUMN kind_reason TEXT NOT NULL DEFAULT '';"
	 "UPDATE workload SET instance_kind='cell' WHERE kind='pod'"),
	("ALTER TABLE instance ADD COLUMN machine_memory INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE instance ADD COLUMN machine_room INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE instance ADD COLUMN machine_cpus INTEGER NOT NULL DEFAULT 0"),
	("CREATE TABLE mirror("
	 " id TEXT PRIMARY KEY, workload TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL);"
	 "CREATE INDEX mirror_of_workload ON mirror(workload);"
	 "CREATE TRIGGER workload_gone_mirror AFTER DELETE ON workload"
	 " BEGIN DELETE FROM mirror WHERE workload=OLD.id; END"),
	"ALTER TABLE workload ADD COLUMN stop_by INTEGER NOT NULL DEFAULT 0",
	("ALTER TABLE workload ADD COLUMN attachment TEXT NOT NULL DEFAULT '';"
	 "CREATE TABLE forward("
	 " id TEXT PRIMARY KEY, family TEXT NOT NULL, link INTEGER NOT NULL)"),
	("ALTER TABLE workload ADD COLUMN lasts INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE container ADD COLUMN created_at INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE container ADD COLUMN own_log INTEGER NOT NULL DEFAULT 0"),
	("ALTER TABLE workload ADD COLUMN drops_volumes INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE container ADD COLUMN volumes TEXT NOT NULL DEFAULT ''"),
	("ALTER TABLE workload ADD COLUMN stays INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE workload ADD COLUMN restart TEXT NOT NULL DEFAULT 'no';"
	 "ALTER TABLE workload ADD COLUMN restart_max INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE workload ADD COLUMN restart_count INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE workload ADD COLUMN restart_delay INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE workload ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0;"
	 "CREATE TABLE wish(id TEXT PRIMARY KEY, text TEXT NOT NULL);"
	 "CREATE TRIGGER workload_gone_wish AFTER DELETE ON workload"
	 " BEGIN DELETE FROM wish WHERE id=OLD.id; END"),
	"CREATE TABLE restored(one INTEGER PRIMARY KEY)",
	("ALTER TABLE instance ADD COLUMN handle TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE workload ADD COLUMN handle TEXT NOT NULL DEFAULT ''"),
	"ALTER TABLE container ADD COLUMN health TEXT NOT NULL DEFAULT ''",
	("ALTER TABLE workload ADD COLUMN ids_uid INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE workload ADD COLUMN ids_gid INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE workload ADD COLUMN ids_count INTEGER NOT NULL DEFAULT 0"),
	("ALTER TABLE container ADD COLUMN role TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE container ADD COLUMN restart TEXT NOT NULL DEFAULT 'no';"
	 "ALTER TABLE container ADD COLUMN restart_max INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE container ADD COLUMN restart_count INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE container ADD COLUMN stopped INTEGER NOT NULL DEFAULT 0"),
	("CREATE TABLE share("
	 " id TEXT PRIMARY KEY, workload TEXT NOT NULL, name TEXT NOT NULL, source TEXT NOT NULL,"
	 " read_only INTEGER NOT NULL, dev INTEGER NOT NULL, ino INTEGER NOT NULL);"
	 "CREATE INDEX share_of_workload ON share(workload);"
	 "CREATE TRIGGER workload_gone_share AFTER DELETE ON workload"
	 " BEGIN DELETE FROM share WHERE workload=OLD.id; END"),
	("CREATE TABLE health("
	 " id TEXT PRIMARY KEY, container TEXT NOT NULL, started_at INTEGER NOT NULL,"
	 " ended_at INTEGER NOT NULL, exit_code INTEGER NOT NULL, output TEXT NOT NULL);"
	 "CREATE INDEX health_of_container ON health(container);"
	 "CREATE TRIGGER container_gone_health AFTER DELETE ON container"
	 " BEGIN DELETE FROM health WHERE container=OLD.id; END"),
};

static const struct sql_schema run_schema = {
	.pragmas = "PRAGMA journal_mode=WAL; PRAGMA synchronous=OFF; PRAGMA temp_store=MEMORY;"
		   "PRAGMA cache_size=-256; PRAGMA wal_autocheckpoint=256",
	.migrations = run_migrations,
	.n_migrations = ARRAY_SIZE(run_migrations),
};

/* The log begins anew after that many bytes, and finds its blocks there whatever the disk has. */
#define RUN_LOG ((size_t)2 << 20)
/* The file grows by so much. */
#define RUN_CHUNK (256 << 10)

struct run_store {
	struct sqlite3 *db;
	struct store_room room;
	bool used; /* it is to come back when there is room again */
	struct sqlite3_stmt *put[RUN_KIND_COUNT];
	struct sqlite3_stmt *drop[RUN_KIND_COUNT];
	struct sqlite3_stmt *each[RUN_KIND_COUNT];
	bool open;          /* between begin and commit */
	struct error fault; /* of the open transaction: its commit undoes it */
};

static int run_store_prepare(struct run_store *s, struct error *err)
{
	for (size_t i = 0; i < RUN_KIND_COUNT; i++) {
		const struct sql_table *t = &run_kinds[i].table;
		int r;

		r = sql_prepare_put(s->db, &s->put[i], t, err);
		if (r == 0)
			r = sql_prepare_select(s->db, &s->each[i], t, run_kinds[i].each, err);
		if (r == 0)
			r = sql_prepare(s->db, &s->drop[i], run_kinds[i].drop, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Neither is a reason not to begin. */
static void run_store_set_room(struct run_store *s, const char *name)
{
	int chunk = RUN_CHUNK;
	char log[64];

	(void)sqlite3_file_control(s->db, "main", SQLITE_FCNTL_CHUNK_SIZE, &chunk);
	/* Not the database itself: to close it once is to lose SQLite's locks. */
	(void)str_printf(log, sizeof(log), "%s-wal", name);
	store_room_extend(&s->room, log, RUN_LOG);
	store_room_make(&s->room);
}

int run_store_open(struct run_store **ret, int dir_fd, const char *name, struct error *err)
{
	struct run_store *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "open the database %s", name);
	r = store_room_init(&s->room, dir_fd, name);
	r = r < 0 ? error_set(err, r, "open the database %s", name)
		  : sql_open(&s->db, dir_fd, name, &run_schema, err);
	if (r == -ENOSPC && store_room_use(&s->room))
		r = sql_open(&s->db, dir_fd, name, &run_schema, err);
	if (r == 0)
		r = run_store_prepare(s, err);
	if (r < 0) {
		(void)run_store_close(s);
		return r;
	}
	run_store_set_room(s, name);
	*ret = s;
	return 0;
}

struct run_store *run_store_close(struct run_store *s)
{
	if (!s)
		return NULL;
	for (size_t i = 0; i < RUN_KIND_COUNT; i++) {
		(void)sql_finish(s->put[i]);
		(void)sql_finish(s->drop[i]);
		(void)sql_finish(s->each[i]);
	}
	(void)sql_close(s->db);
	store_room_done(&s->room);
	free(s);
	return NULL;
}

/* Whether a write that found no room may be tried once more. */
static bool run_store_find_room(struct run_store *s, int r)
{
	if (r != -ENOSPC || !store_room_use(&s->room))
		return false;
	s->used = true;
	return true;
}

/* After a write that went well. */
static void run_store_keep_room(struct run_store *s)
{
	if (s->used)
		store_room_make(&s->room);
	s->used = s->used && !store_room_is_there(&s->room);
}

int run_store_begin(struct run_store *s, struct error *err)
{
	int r;

	assert(!s->open);
	r = sql_run(s->db, "BEGIN IMMEDIATE", err);
	if (run_store_find_room(s, r))
		r = sql_run(s->db, "BEGIN IMMEDIATE", err);
	if (r < 0)
		return error_wrap(err, r, "run.db");
	s->open = true;
	s->fault = (struct error)ERROR_INIT;
	return 0;
}

int run_store_commit(struct run_store *s, struct error *err)
{
	struct error fault = s->fault;
	int r = fault.code;

	assert(s->open);
	s->open = false;
	if (r == 0)
		r = FAILPOINT("store.commit") < 0 ? error_set(&fault, -EIO, "commit") : 0;
	if (r == 0)
		r = sql_run(s->db, "COMMIT", &fault);
	/* Where SQLite has not undone it. */
	if (!sqlite3_get_autocommit(s->db) && run_store_find_room(s, r))
		r = sql_run(s->db, "COMMIT", &fault);
	if (r == 0) {
		run_store_keep_room(s);
		FAILPOINT_AFTER("store.commit");
		return 0;
	}
	/* SQLite has undone it by itself where the disk failed. */
	if (!sqlite3_get_autocommit(s->db))
		(void)sql_run(s->db, "ROLLBACK", NULL);
	(void)error_copy(err, &fault);
	return error_wrap(err, r, "run.db");
}

/* Ends a bound write; what goes wrong inside a transaction is kept for its commit. */
static int run_store_write(struct run_store *s, struct sqlite3_stmt *statement, const char *what,
			   struct error *err)
{
	struct error fault = ERROR_INIT;
	int r;

	r = FAILPOINT("store.write");
	if (r < 0)
		(void)error_set(&fault, r, "%s", what);
	else
		r = sql_finish_write(s->db, statement, &fault, what);
	if (r == 0) {
		FAILPOINT_AFTER("store.write");
		if (!s->open)
			run_store_keep_room(s);
		return 0;
	}
	(void)sqlite3_reset(statement);
	if (s->open && !s->fault.code)
		s->fault = fault;
	(void)error_copy(err, &fault);
	return error_wrap(err, r, "run.db");
}

static int run_store_put(struct run_store *s, enum run_kind kind, const void *record,
			 struct error *err)
{
	const struct sql_table *t = &run_kinds[kind].table;
	int r;

	r = sql_bind_record(s->db, s->put[kind], t, record, err);
	if (r == 0)
		r = run_store_write(s, s->put[kind], t->name, err);
	if (s->open || !run_store_find_room(s, r))
		return r;
	r = sql_bind_record(s->db, s->put[kind], t, record, err);
	return r < 0 ? r : run_store_write(s, s->put[kind], t->name, err);
}

static int run_store_drop(struct run_store *s, enum run_kind kind, const char *id,
			  struct error *err)
{
	int r;

	r = sql_bind_text(s->db, s->drop[kind], 1, id, err);
	if (r == 0)
		r = run_store_write(s, s->drop[kind], run_kinds[kind].table.name, err);
	if (s->open || !run_store_find_room(s, r))
		return r;
	r = sql_bind_text(s->db, s->drop[kind], 1, id, err);
	return r < 0 ? r : run_store_write(s, s->drop[kind], run_kinds[kind].table.name, err);
}

int run_store_put_instance(struct run_store *s, const struct run_instance *r, struct error *err)
{
	return run_store_put(s, RUN_INSTANCE, r, err);
}

int run_store_put_workload(struct run_store *s, const struct run_workload *r, struct error *err)
{
	return run_store_put(s, RUN_WORKLOAD, r, err);
}

int run_store_put_container(struct run_store *s, const struct run_container *r, struct error *err)
{
	return run_store_put(s, RUN_CONTAINER, r, err);
}

int run_store_put_forward(struct run_store *s, const struct run_forward *r, struct error *err)
{
	return run_store_put(s, RUN_FORWARD, r, err);
}

int run_store_put_mirror(struct run_store *s, const struct run_mirror *r, struct error *err)
{
	return run_store_put(s, RUN_MIRROR, r, err);
}

int run_store_put_share(struct run_store *s, const struct run_share *r, struct error *err)
{
	return run_store_put(s, RUN_SHARE, r, err);
}

int run_store_put_health(struct run_store *s, const struct run_health *r, struct error *err)
{
	return run_store_put(s, RUN_HEALTH, r, err);
}

int run_store_put_wish(struct run_store *s, const struct run_wish *r, struct error *err)
{
	return run_store_put(s, RUN_WISH, r, err);
}

int run_store_drop_instance(struct run_store *s, const char *id, struct error *err)
{
	return run_store_drop(s, RUN_INSTANCE, id, err);
}

int run_store_drop_workload(struct run_store *s, const char *id, struct error *err)
{
	return run_store_drop(s, RUN_WORKLOAD, id, err);
}

int run_store_drop_container(struct run_store *s, const char *id, struct error *err)
{
	return run_store_drop(s, RUN_CONTAINER, id, err);
}

int run_store_drop_share(struct run_store *s, const char *id, struct error *err)
{
	return run_store_drop(s, RUN_SHARE, id, err);
}

int run_store_drop_health(struct run_store *s, const char *container, struct error *err)
{
	return run_store_drop(s, RUN_HEALTH, container, err);
}

/* A record of any kind, and the function of the kind that takes it. */
union run_record {
	struct run_instance instance;
	struct run_workload workload;
	struct run_container container;
	struct run_mirror mirror;
	struct run_share share;
	struct run_health health;
	struct run_forward forward;
	struct run_wish wish;
};

union run_each_fn {
	int (*instance)(void *data, const struct run_instance *r);
	int (*workload)(void *data, const struct run_workload *r);
	int (*container)(void *data, const struct run_container *r);
	int (*mirror)(void *data, const struct run_mirror *r);
	int (*share)(void *data, const struct run_share *r);
	int (*health)(void *data, const struct run_health *r);
	int (*forward)(void *data, const struct run_forward *r);
	int (*wish)(void *data, const struct run_wish *r);
};

static int run_store_call(enum run_kind kind, union run_each_fn fn, void *data,
			  const union run_record *record)
{
	if (kind == RUN_INSTANCE)
		return fn.instance(data, &record->instance);
	if (kind == RUN_WORKLOAD)
		return fn.workload(data, &record->workload);
	if (kind == RUN_CONTAINER)
		return fn.container(data, &record->container);
	if (kind == RUN_MIRROR)
		return fn.mirror(data, &record->mirror);
	if (kind == RUN_SHARE)
		return fn.share(data, &record->share);
	if (kind == RUN_HEALTH)
		return fn.health(data, &record->health);
	if (kind == RUN_WISH)
		return fn.wish(data, &record->wish);
	return fn.forward(data, &record->forward);
}

static int run_store_each(struct run_store *s, enum run_kind kind, union run_each_fn fn, void *data,
			  struct error *err)
{
	struct sqlite3_stmt *statement = s->each[kind];
	const struct sql_table *t = &run_kinds[kind].table;
	int r;

	for (;;) {
		union run_record record;

		r = sql_next_row(s->db, statement, err, t->name);
		if (r <= 0)
			break;
		r = sql_read_record(statement, t, &record, err);
		if (r == 0)
			r = run_store_call(kind, fn, data, &record);
		if (r < 0)
			break;
	}
	(void)sqlite3_reset(statement);
	return r;
}

int run_store_each_instance(struct run_store *s,
			    int (*fn)(void *data, const struct run_instance *r), void *data,
			    struct error *err)
{
	return run_store_each(s, RUN_INSTANCE, (union run_each_fn){ .instance = fn }, data, err);
}

int run_store_each_workload(struct run_store *s,
			    int (*fn)(void *data, const struct run_workload *r), void *data,
			    struct error *err)
{
	return run_store_each(s, RUN_WORKLOAD, (union run_each_fn){ .workload = fn }, data, err);
}

int run_store_each_container(struct run_store *s, const char *workload,
			     int (*fn)(void *data, const struct run_container *r), void *data,
			     struct error *err)
{
	int r;

	r = sql_bind_text(s->db, s->each[RUN_CONTAINER], 1, workload, err);
	if (r < 0)
		return r;
	return run_store_each(s, RUN_CONTAINER, (union run_each_fn){ .container = fn }, data, err);
}

int run_store_each_forward(struct run_store *s, int (*fn)(void *data, const struct run_forward *r),
			   void *data, struct error *err)
{
	return run_store_each(s, RUN_FORWARD, (union run_each_fn){ .forward = fn }, data, err);
}

int run_store_each_wish(struct run_store *s, const char *workload,
			int (*fn)(void *data, const struct run_wish *r), void *data,
			struct error *err)
{
	int r;

	r = sql_bind_text(s->db, s->each[RUN_WISH], 1, workload, err);
	if (r < 0)
		return r;
	return run_store_each(s, RUN_WISH, (union run_each_fn){ .wish = fn }, data, err);
}

int run_store_each_mirror(struct run_store *s, const char *workload,
			  int (*fn)(void *data, const struct run_mirror *r), void *data,
			  struct error *err)
{
	int r;

	r = sql_bind_text(s->db, s->each[RUN_MIRROR], 1, workload, err);
	if (r < 0)
		return r;
	return run_store_each(s, RUN_MIRROR, (union run_each_fn){ .mirror = fn }, data, err);
}

int run_store_each_share(struct run_store *s, const char *workload,
			 int (*fn)(void *data, const struct run_share *r), void *data,
			 struct error *err)
{
	int r;

	r = sql_bind_text(s->db, s->each[RUN_SHARE], 1, workload, err);
	if (r < 0)
		return r;
	return run_store_each(s, RUN_SHARE, (union run_each_fn){ .share = fn }, data, err);
}

int run_store_each_health(struct run_store *s, const char *container,
			  int (*fn)(void *data, const struct run_health *r), void *data,
			  struct error *err)
{
	int r;

	r = sql_bind_text(s->db, s->each[RUN_HEALTH], 1, container, err);
	if (r < 0)
		return r;
	return run_store_each(s, RUN_HEALTH, (union run_each_fn){ .health = fn }, data, err);
}

/* ---- what root.db keeps ---- */

int run_store_is_restored(struct run_store *s, bool *ret, struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *rows = NULL;
	int r = sql_prepare(s->db, &rows, "SELECT one FROM restored", err);

	if (r == 0)
		r = sql_next_row(s->db, rows, err, "restored");
	if (r < 0)
		return r;
	*ret = r > 0;
	return 0;
}

int run_store_set_restored(struct run_store *s, struct error *err)
{
	return sql_run(s->db, "INSERT OR IGNORE INTO restored(one) VALUES(1)", err);
}

int run_kept_write(struct buf *b, const struct run_kept *kept)
{
	int r = sql_text_add(b, &run_kinds[RUN_WORKLOAD].table, &kept->workload);

	for (size_t i = 0; i < kept->n_containers && r == 0; i++)
		r = sql_text_add(b, &run_kinds[RUN_CONTAINER].table, &kept->containers[i]);
	return r == 0 ? sql_text_add(b, &run_kinds[RUN_WISH].table, &kept->wish) : r;
}

static bool run_kept_is(const char *line, enum run_kind kind)
{
	const char *name = run_kinds[kind].table.name;
	size_t n = strlen(name);

	return strncmp(line, name, n) == 0 && line[n] == ' ';
}

static int run_kept_read_line(struct arena *a, const char *line, size_t n, struct run_kept *k)
{
	if (run_kept_is(line, RUN_WORKLOAD))
		return sql_text_read(a, &run_kinds[RUN_WORKLOAD].table, line, n, &k->workload);
	if (run_kept_is(line, RUN_CONTAINER))
		return sql_text_read(a, &run_kinds[RUN_CONTAINER].table, line, n,
				     &k->containers[k->n_containers++]);
	return run_kept_is(line, RUN_WISH)
		       ? sql_text_read(a, &run_kinds[RUN_WISH].table, line, n, &k->wish)
		       : -EBADMSG;
}

int run_kept_read(struct arena *a, const char *text, struct run_kept *ret, struct error *err)
{
	size_t n_lines = 0;
	int r = 0;

	for (const char *at = strchr(text, '\n'); at; at = strchr(at + 1, '\n'))
		n_lines++;
	*ret = (struct run_kept){ .containers =
					  arena_zalloc(a, n_lines + 1, sizeof(*ret->containers)) };
	if (!ret->containers)
		return error_set(err, -ENOMEM, "read a workload that was kept");
	while (*text && r == 0) {
		size_t n = strcspn(text, "\n");

		r = run_kept_read_line(a, text, n, ret);
		text += n + (text[n] == '\n');
	}
	if (r == 0 && (str_empty(ret->workload.id) || str_empty(ret->wish.text)))
		r = -EBADMSG;
	return r < 0 ? error_set(err, r, "read a workload that was kept") : 0;
}
