/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STORE_SQL_H
#define NACRE_STORE_SQL_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/macros.h"

/*
 * The common part of both databases: opening with a schema, and records that are described by
 * tables of columns, so that no statement is written twice. Private to src/store.
 */

struct sqlite3;
struct sqlite3_stmt;

struct sql_schema {
	const char *pragmas; /* run after opening, each time */
	/* migrations[n] leads from PRAGMA user_version n to n + 1, in one transaction each. */
	const char *const *migrations;
	int n_migrations;
};

/*
 * Opens or makes the file, checks it (a damaged one is -EBADMSG, one of a newer nacre is
 * ERROR_UNSUPPORTED) and brings its schema up to date.
 */
int sql_open(struct sqlite3 **ret, int dir_fd, const char *name, const struct sql_schema *schema,
	     struct error *err);
struct sqlite3 *sql_close(struct sqlite3 *db);

/* Runs statements without results. */
int sql_run(struct sqlite3 *db, const char *text, struct error *err);

int sql_prepare(struct sqlite3 *db, struct sqlite3_stmt **ret, const char *text, struct error *err);
struct sqlite3_stmt *sql_finish(struct sqlite3_stmt *s);
static inline void sql_statement_drop(struct sqlite3_stmt **s)
{
	*s = sql_finish(*s);
}
#define _cleanup_statement_ _cleanup_(sql_statement_drop)

/* The result of an SQLite call as a negative errno: -ENOSPC, -EIO, -ENOMEM, -EBUSY, -EBADMSG (the
 * file is damaged), -EROFS; anything else is -EINVAL, a fault of ours. */
int sql_fail(struct sqlite3 *db, int rc, struct error *err, const char *what);

/* Steps a statement to its end without looking at rows, and resets it. */
int sql_finish_write(struct sqlite3 *db, struct sqlite3_stmt *s, struct error *err,
		     const char *what);
/* 1: there is a row, 0: the end. */
int sql_next_row(struct sqlite3 *db, struct sqlite3_stmt *s, struct error *err, const char *what);

/* ---- records ---- */

enum sql_kind { SQL_TEXT, SQL_I64, SQL_U64, SQL_INT, SQL_UNSIGNED, SQL_BOOL, SQL_KIND_COUNT };

struct sql_column {
	const char *name;
	enum sql_kind kind;
	size_t offset; /* in the struct */
};

struct sql_table {
	const char *name;
	const struct sql_column *columns; /* the first one is the key */
	size_t n_columns;
};

#define SQL_COLUMN(type, member, k)                                                                \
	{                                                                                          \
#member, k, offsetof(struct type, member)                                          \
	}

/*
 * A record as a line of text, and back: the name of its table, then NAME=VALUE for each column,
 * texts in hexadecimal digits. A column that the line has not is empty, one that the table has not
 * is -EBADMSG. Texts that are read are in the arena.
 */
struct arena;
struct buf;
int sql_text_add(struct buf *b, const struct sql_table *t, const void *record);
int sql_text_read(struct arena *a, const struct sql_table *t, const char *line, size_t n,
		  void *record);

/* "INSERT ... ON CONFLICT(key) DO UPDATE ..." for all columns. */
int sql_prepare_put(struct sqlite3 *db, struct sqlite3_stmt **ret, const struct sql_table *t,
		    struct error *err);
/* "SELECT columns FROM table TAIL". */
int sql_prepare_select(struct sqlite3 *db, struct sqlite3_stmt **ret, const struct sql_table *t,
		       const char *tail, struct error *err);
/* Binds the record's members from parameter 1 on; the strings must live until the statement was
 * stepped. */
int sql_bind_record(struct sqlite3 *db, struct sqlite3_stmt *s, const struct sql_table *t,
		    const void *record, struct error *err);
int sql_bind_text(struct sqlite3 *db, struct sqlite3_stmt *s, int at, const char *text,
		  struct error *err);
int sql_bind_int(struct sqlite3 *db, struct sqlite3_stmt *s, int at, int64_t value,
		 struct error *err);
/* Fills the record from the current row; strings live until the next step. -EBADMSG: a number is
 * none, or none that its member can hold. */
int sql_read_record(struct sqlite3_stmt *s, const struct sql_table *t, void *record,
		    struct error *err);

#endif
