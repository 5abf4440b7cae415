/* SPDX-License-Identifier: Apache-2.0 */
#include "store/sql.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sqlite3.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"

#define SQL_BUSY_MSEC 2000
#define SQL_FILE_MODE 0600

static const struct {
	int rc;
	int code;
} sql_codes[] = {
	{ SQLITE_FULL, -ENOSPC },    { SQLITE_IOERR, -EIO },      { SQLITE_NOMEM, -ENOMEM },
	{ SQLITE_BUSY, -EBUSY },     { SQLITE_LOCKED, -EBUSY },   { SQLITE_CORRUPT, -EBADMSG },
	{ SQLITE_NOTADB, -EBADMSG }, { SQLITE_READONLY, -EROFS }, { SQLITE_CANTOPEN, -EIO },
	{ SQLITE_PERM, -EACCES },    { SQLITE_TOOBIG, -E2BIG },
};

static int sql_code(struct sqlite3 *db, int rc)
{
	int primary = rc & 0xff;

	/* What the kernel said is more exact: a full disk also shows as a failed write. */
	if (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN) {
		int cause = db ? sqlite3_system_errno(db) : 0;

		if (cause == ENOSPC || cause == EDQUOT || cause == EROFS || cause == EACCES)
			return -cause;
	}
	for (size_t i = 0; i < ARRAY_SIZE(sql_codes); i++)
		if (sql_codes[i].rc == primary)
			return sql_codes[i].code;
	return -EINVAL;
}

int sql_fail(struct sqlite3 *db, int rc, struct error *err, const char *what)
{
	int code = sql_code(db, rc);

	if (code == -EBADMSG)
		return error_set(err, code, "%s: the database file is damaged (%s)", what,
				 sqlite3_errstr(rc));
	return error_set(err, code, "%s: %s", what, db ? sqlite3_errmsg(db) : sqlite3_errstr(rc));
}

int sql_run(struct sqlite3 *db, const char *text, struct error *err)
{
	int rc = sqlite3_exec(db, text, NULL, NULL, NULL);

	return rc == SQLITE_OK ? 0 : sql_fail(db, rc, err, "run a statement");
}

int sql_prepare(struct sqlite3 *db, struct sqlite3_stmt **ret, const char *text, struct error *err)
{
	int rc = sqlite3_prepare_v3(db, text, -1, SQLITE_PREPARE_PERSISTENT, ret, NULL);

	return rc == SQLITE_OK ? 0 : sql_fail(db, rc, err, "prepare a statement");
}

struct sqlite3_stmt *sql_finish(struct sqlite3_stmt *s)
{
	(void)sqlite3_finalize(s);
	return NULL;
}

int sql_next_row(struct sqlite3 *db, struct sqlite3_stmt *s, struct error *err, const char *what)
{
	int rc = sqlite3_step(s);

	if (rc == SQLITE_ROW)
		return 1;
	return rc == SQLITE_DONE ? 0 : sql_fail(db, rc, err, what);
}

int sql_finish_write(struct sqlite3 *db, struct sqlite3_stmt *s, struct error *err,
		     const char *what)
{
	int r = sql_next_row(db, s, err, what);

	while (r > 0)
		r = sql_next_row(db, s, err, what);
	(void)sqlite3_reset(s);
	(void)sqlite3_clear_bindings(s);
	return r;
}

/* The first integer that a statement yields. */
static int sql_ask(struct sqlite3 *db, const char *text, int *ret, struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *s = NULL;
	int r;

	r = sql_prepare(db, &s, text, err);
	if (r < 0)
		return r;
	r = sql_next_row(db, s, err, text);
	if (r < 0)
		return r;
	*ret = r ? sqlite3_column_int(s, 0) : 0;
	return 0;
}

/* A file that was torn is found now, and not in the middle of a change. */
static int sql_check(struct sqlite3 *db, struct error *err)
{
	_cleanup_statement_ struct sqlite3_stmt *s = NULL;
	const char *verdict;
	int r;

	r = sql_prepare(db, &s, "PRAGMA quick_check(1)", err);
	if (r < 0)
		return r;
	r = sql_next_row(db, s, err, "check the database");
	if (r < 0)
		return r;
	verdict = r ? (const char *)sqlite3_column_text(s, 0) : NULL;
	if (verdict && str_eq(verdict, "ok"))
		return 0;
	return error_set(err, -EBADMSG, "the database file is damaged (%s)",
			 verdict ? verdict : "no verdict");
}

static int sql_migrate_step(struct sqlite3 *db, const char *text, int version, struct error *err)
{
	_cleanup_str_ char *all =
		str_format("BEGIN IMMEDIATE; %s; PRAGMA user_version=%d; COMMIT", text, version);
	int r;

	if (!all)
		return error_set(err, -ENOMEM, "migrate the database");
	r = sql_run(db, all, err);
	if (r < 0 && !sqlite3_get_autocommit(db))
		(void)sql_run(db, "ROLLBACK", NULL);
	return r;
}

static int sql_migrate(struct sqlite3 *db, const struct sql_schema *schema, struct error *err)
{
	int version = 0;
	int r;

	r = sql_ask(db, "PRAGMA user_version", &version, err);
	if (r < 0)
		return r;
	if (version < 0 || version > schema->n_migrations)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the database has schema version %d, this nacre knows up to %d",
				    version, schema->n_migrations);
	for (; version < schema->n_migrations; version++) {
		r = sql_migrate_step(db, schema->migrations[version], version + 1, err);
		if (r < 0)
			return error_wrap(err, r, "bring the schema to version %d", version + 1);
	}
	return 0;
}

static int sql_setup(struct sqlite3 *db, const struct sql_schema *schema, struct error *err)
{
	int r;

	(void)sqlite3_busy_timeout(db, SQL_BUSY_MSEC);
	(void)sqlite3_extended_result_codes(db, 1);
	r = sql_run(db, schema->pragmas, err);
	if (r < 0)
		return r;
	r = sql_check(db, err);
	if (r < 0)
		return r;
	return sql_migrate(db, schema, err);
}

/* SQLite would make it readable for all. Its companions (-wal, -shm) get the mode of the file. */
static int sql_make_file(int dir_fd, const char *name, struct error *err)
{
	_cleanup_fd_ int fd = sysio_openat(dir_fd, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC,
					   SQL_FILE_MODE);

	if (fd < 0)
		return error_set(err, -errno, "open the database %s", name);
	/* One of an older release, or the umask. */
	if (fchmod(fd, SQL_FILE_MODE) < 0)
		return error_set(err, -errno, "change the mode of the database %s", name);
	return 0;
}

int sql_open(struct sqlite3 **ret, int dir_fd, const char *name, const struct sql_schema *schema,
	     struct error *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX;
	struct sqlite3 *db = NULL;
	char path[320];
	int rc, r;

	r = str_printf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd, name);
	if (r < 0)
		return error_set(err, r, "open %s", name);
	r = sql_make_file(dir_fd, name, err);
	if (r < 0)
		return r;
	rc = sqlite3_open_v2(path, &db, flags, NULL);
	if (rc != SQLITE_OK) {
		r = sql_fail(db, rc, err, name);
		(void)sql_close(db);
		return error_wrap(err, r, "open the database");
	}
	r = sql_setup(db, schema, err);
	if (r < 0) {
		(void)sql_close(db);
		return error_wrap(err, r, "open the database %s", name);
	}
	*ret = db;
	return 0;
}

struct sqlite3 *sql_close(struct sqlite3 *db)
{
	(void)sqlite3_close_v2(db);
	return NULL;
}

/* ---- records ---- */

/* Adds what `form` makes of each column from number `from` on, comma separated. */
static int sql_list(struct buf *b, const struct sql_table *t, size_t from, const char *prefix)
{
	for (size_t i = from; i < t->n_columns; i++) {
		const char *name = t->columns[i].name;
		int r;

		if (prefix)
			r = buf_addf(b, "%s\"%s\"=%s.\"%s\"", i > from ? "," : "", name, prefix,
				     name);
		else
			r = buf_addf(b, "%s\"%s\"", i > from ? "," : "", name);
		if (r < 0)
			return r;
	}
	return 0;
}

static int sql_put_text(struct buf *b, const struct sql_table *t)
{
	int r;

	r = buf_addf(b, "INSERT INTO %s(", t->name);
	if (r == 0)
		r = sql_list(b, t, 0, NULL);
	if (r == 0)
		r = buf_add_str(b, ") VALUES(?");
	for (size_t i = 1; i < t->n_columns && r == 0; i++)
		r = buf_add_str(b, ",?");
	if (r == 0)
		r = buf_addf(b, ") ON CONFLICT(\"%s\") DO UPDATE SET ", t->columns[0].name);
	if (r == 0)
		r = sql_list(b, t, 1, "excluded");
	return r == 0 ? buf_add(b, "", 1) : r;
}

int sql_prepare_put(struct sqlite3 *db, struct sqlite3_stmt **ret, const struct sql_table *t,
		    struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = sql_put_text(&b, t);
	if (r < 0)
		return error_set(err, r, "write a statement for %s", t->name);
	return sql_prepare(db, ret, (const char *)buf_data(&b), err);
}

int sql_prepare_select(struct sqlite3 *db, struct sqlite3_stmt **ret, const struct sql_table *t,
		       const char *tail, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = buf_add_str(&b, "SELECT ");
	if (r == 0)
		r = sql_list(&b, t, 0, NULL);
	if (r == 0)
		r = buf_addf(&b, " FROM %s %s", t->name, tail);
	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return error_set(err, r, "write a statement for %s", t->name);
	return sql_prepare(db, ret, (const char *)buf_data(&b), err);
}

int sql_bind_text(struct sqlite3 *db, struct sqlite3_stmt *s, int at, const char *text,
		  struct error *err)
{
	int rc = sqlite3_bind_text(s, at, text ? text : "", -1, SQLITE_STATIC);

	return rc == SQLITE_OK ? 0 : sql_fail(db, rc, err, "bind a value");
}

int sql_bind_int(struct sqlite3 *db, struct sqlite3_stmt *s, int at, int64_t value,
		 struct error *err)
{
	int rc = sqlite3_bind_int64(s, at, value);

	return rc == SQLITE_OK ? 0 : sql_fail(db, rc, err, "bind a value");
}

static int64_t sql_member_int(enum sql_kind kind, const char *member)
{
	switch (kind) {
	case SQL_I64:
		return *(const int64_t *)(const void *)member;
	case SQL_U64:
		return (int64_t) * (const uint64_t *)(const void *)member;
	case SQL_INT:
		return *(const int *)(const void *)member;
	case SQL_UNSIGNED:
		return *(const unsigned *)(const void *)member;
	case SQL_BOOL:
		return *(const bool *)(const void *)member;
	case SQL_TEXT:
	case SQL_KIND_COUNT:
		break;
	}
	assert(false);
	return 0;
}

/* -EBADMSG: no value that such a member can have. */
static int sql_set_member(enum sql_kind kind, char *member, int64_t value)
{
	switch (kind) {
	case SQL_I64:
		*(int64_t *)(void *)member = value;
		return 0;
	case SQL_U64:
		*(uint64_t *)(void *)member = (uint64_t)value;
		return 0;
	case SQL_INT:
		*(int *)(void *)member = (int)value;
		return value < INT_MIN || value > INT_MAX ? -EBADMSG : 0;
	case SQL_UNSIGNED:
		*(unsigned *)(void *)member = (unsigned)value;
		return value < 0 || value > (int64_t)UINT_MAX ? -EBADMSG : 0;
	case SQL_BOOL:
		*(bool *)(void *)member = value != 0;
		return value < 0 || value > 1 ? -EBADMSG : 0;
	case SQL_TEXT:
	case SQL_KIND_COUNT:
		break;
	}
	assert(false);
	return -EBADMSG;
}

int sql_bind_record(struct sqlite3 *db, struct sqlite3_stmt *s, const struct sql_table *t,
		    const void *record, struct error *err)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct sql_column *c = &t->columns[i];
		const char *member = (const char *)record + c->offset;
		int r;

		if (c->kind == SQL_TEXT)
			r = sql_bind_text(db, s, (int)i + 1,
					  *(const char *const *)(const void *)member, err);
		else
			r = sql_bind_int(db, s, (int)i + 1, sql_member_int(c->kind, member), err);
		if (r < 0)
			return error_wrap(err, r, "%s.%s", t->name, c->name);
	}
	return 0;
}

int sql_read_record(struct sqlite3_stmt *s, const struct sql_table *t, void *record,
		    struct error *err)
{
	for (size_t i = 0; i < t->n_columns; i++) {
		const struct sql_column *c = &t->columns[i];
		char *member = (char *)record + c->offset;

		if (c->kind == SQL_TEXT) {
			const char *text = (const char *)sqlite3_column_text(s, (int)i);

			*(const char **)(void *)member = text ? text : "";
		} else if (sqlite3_column_type(s, (int)i) != SQLITE_INTEGER ||
			   sql_set_member(c->kind, member, sqlite3_column_int64(s, (int)i)) < 0) {
			return error_set(err, -EBADMSG, "read %s.%s of a record", t->name, c->name);
		}
	}
	return 0;
}

/* ---- records as text ---- */

static const char sql_digits[] = "0123456789abcdef";

static int sql_text_add_hex(struct buf *b, const char *text)
{
	int r = 0;

	for (; text && *text && r == 0; text++) {
		const unsigned char c = (unsigned char)*text;
		const char two[] = { sql_digits[c >> 4], sql_digits[c & 15] };

		r = buf_add(b, two, sizeof(two));
	}
	return r;
}

int sql_text_add(struct buf *b, const struct sql_table *t, const void *record)
{
	int r = buf_add_str(b, t->name);

	for (size_t i = 0; i < t->n_columns && r == 0; i++) {
		const struct sql_column *c = &t->columns[i];
		const char *member = (const char *)record + c->offset;

		r = buf_addf(b, " %s=", c->name);
		if (r == 0 && c->kind == SQL_TEXT)
			r = sql_text_add_hex(b, *(const char *const *)(const void *)member);
		else if (r == 0)
			r = buf_addf(b, "%" PRId64, sql_member_int(c->kind, member));
	}
	return r == 0 ? buf_add_str(b, "\n") : r;
}

static int sql_text_digit(char c)
{
	const char *at = c ? strchr(sql_digits, c) : NULL;

	return at ? (int)(at - sql_digits) : -1;
}

static int sql_text_read_hex(struct arena *a, const char *from, size_t n, const char **ret)
{
	char *text = arena_alloc(a, n / 2 + 1);

	if (!text)
		return -ENOMEM;
	for (size_t i = 0; i + 1 < n; i += 2) {
		int high = sql_text_digit(from[i]), low = sql_text_digit(from[i + 1]);

		if (high < 0 || low < 0)
			return -EBADMSG;
		text[i / 2] = (char)(high << 4 | low);
	}
	text[n / 2] = '\0';
	*ret = text;
	return n % 2 ? -EBADMSG : 0;
}

static int sql_text_read_value(struct arena *a, const struct sql_column *c, const char *value,
			       size_t n, void *record)
{
	char *member = (char *)record + c->offset;
	char number[24], *end;
	long long parsed;

	if (c->kind == SQL_TEXT)
		return sql_text_read_hex(a, value, n, (const char **)(void *)member);
	if (n == 0 || n >= sizeof(number))
		return -EBADMSG;
	memcpy(number, value, n);
	number[n] = '\0';
	errno = 0;
	parsed = strtoll(number, &end, 10);
	return *end || errno ? -EBADMSG : sql_set_member(c->kind, member, parsed);
}

static int sql_text_read_word(struct arena *a, const struct sql_table *t, const char *word,
			      size_t n, void *record)
{
	const char *equals = memchr(word, '=', n);
	size_t n_name = equals ? (size_t)(equals - word) : n;

	for (size_t i = 0; equals && i < t->n_columns; i++)
		if (strlen(t->columns[i].name) == n_name &&
		    memcmp(t->columns[i].name, word, n_name) == 0)
			return sql_text_read_value(a, &t->columns[i], equals + 1, n - n_name - 1,
						   record);
	/* A column of a later release says nothing to this one. */
	return equals ? 0 : -EBADMSG;
}

int sql_text_read(struct arena *a, const struct sql_table *t, const char *line, size_t n,
		  void *record)
{
	size_t at = strlen(t->name);
	int r = 0;

	for (size_t i = 0; i < t->n_columns; i++)
		if (t->columns[i].kind == SQL_TEXT)
			*(const char **)(void *)((char *)record + t->columns[i].offset) = "";
	while (at < n && r == 0) {
		const char *word = line + at + 1;
		const char *blank = memchr(word, ' ', n - at - 1);
		size_t len = blank ? (size_t)(blank - word) : n - at - 1;

		r = sql_text_read_word(a, t, word, len, record);
		at += 1 + len;
	}
	return r;
}
