/* SPDX-License-Identifier: Apache-2.0 */
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

struct scratch {
	char path[64];
	int fd;
};

static void scratch_init(struct scratch *s)
{
	(void)str_copy(s->path, sizeof(s->path), "/tmp/nacre-store-XXXXXX");
	if (!mkdtemp(s->path))
		abort();
	s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->fd < 0)
		abort();
}

static void scratch_done(struct scratch *s)
{
	s->fd = fd_close(s->fd);
	CHECK_INT(scratch_remove(s->path), 0);
}

static struct run_workload workload(const char *id, uint64_t created)
{
	return (struct run_workload){ .id = id,
				      .path = id,
				      .kind = "pod",
				      .instance = "",
				      .state = 2,
				      .state_word = "running",
				      .network = "pod",
				      .auto_remove = true,
				      .reason = "",
				      .handle = id,
				      .created_at = created };
}

static struct run_container container(const char *id, const char *owner, unsigned position)
{
	return (struct run_container){ .id = id,
				       .workload = owner,
				       .position = position,
				       .name = "main",
				       .image = "sha256:00",
				       .image_name = "busybox",
				       .command = "sh -c 'it''s'",
				       .user = "",
				       .state = 1,
				       .state_word = "created",
				       .pid = 4711,
				       .exit_code = -1,
				       .signal = 9,
				       .reason = "\303\244",
				       .started_at = 1ULL << 60,
				       .finished_at = 5,
				       .log_lost = 1ULL << 40 };
}

static int count_workload(void *data, const struct run_workload *r)
{
	char *seen = data;

	(void)snprintf(seen + strlen(seen), 64 - strlen(seen), "%s%s", r->id,
		       r->auto_remove ? "+" : "-");
	return 0;
}

static int count_container(void *data, const struct run_container *r)
{
	char *seen = data;

	(void)snprintf(seen + strlen(seen), 64 - strlen(seen), "%s", r->id);
	CHECK_STR(r->command, "sh -c 'it''s'");
	CHECK_INT(r->exit_code, -1);
	CHECK_INT(r->started_at, 1LL << 60);
	CHECK_STR(r->reason, "\303\244");
	CHECK_INT(r->pid, 4711);
	CHECK_INT(r->log_lost, 1LL << 40);
	return 0;
}

static int stop_at_once(void *data, const struct run_workload *r)
{
	return -ECANCELED;
}

static int see_instance(void *data, const struct run_instance *r)
{
	bool *seen = data;

	*seen = true;
	CHECK_STR(r->path, "a/b");
	CHECK(r->host_network);
	CHECK_INT(r->start_time, 77);
	return 0;
}

static int count_mirror(void *data, const struct run_mirror *r)
{
	char *seen = data;

	CHECK_STR(r->workload, "w1");
	CHECK_STR(r->source, "/a/b");
	(void)snprintf(seen + strlen(seen), 64 - strlen(seen), "%s", r->name);
	return 0;
}

static void keeps_records(void)
{
	struct run_workload second = workload("w2", 20), first = workload("w1", 10);
	struct run_container c1 = container("c1", "w1", 1), c0 = container("c0", "w1", 0);
	struct run_instance in = { .id = "i",
				   .path = "a/b",
				   .kind = "cell",
				   .host_network = true,
				   .start_time = 77,
				   .state_word = "up" };
	struct run_mirror mirror = {
		.id = "w1/v1", .workload = "w1", .name = "v1", .source = "/a/b"
	};
	char workloads[64] = "", containers[64] = "", mirrors[64] = "";
	struct run_store *s = NULL;
	struct error err = ERROR_INIT;
	struct scratch d;
	bool seen = false;

	scratch_init(&d);
	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
	CHECK_INT(run_store_begin(s, &err), 0);
	CHECK_INT(run_store_put_workload(s, &second, &err), 0);
	CHECK_INT(run_store_put_workload(s, &first, &err), 0);
	CHECK_INT(run_store_put_container(s, &c1, &err), 0);
	CHECK_INT(run_store_put_container(s, &c0, &err), 0);
	CHECK_INT(run_store_commit(s, &err), 0);
	CHECK_INT(run_store_put_mirror(s, &mirror, &err), 0);
	mirror.id = "w1/v0";
	mirror.name = "v0";
	CHECK_INT(run_store_put_mirror(s, &mirror, &err), 0);
	CHECK_INT(run_store_put_instance(s, &in, &err), 0);
	second.auto_remove = false;
	CHECK_INT(run_store_put_workload(s, &second, &err), 0);
	s = run_store_close(s);

	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
	CHECK_INT(run_store_each_workload(s, count_workload, workloads, &err), 0);
	CHECK_STR(workloads, "w1+w2-");
	CHECK_INT(run_store_each_container(s, "w1", count_container, containers, &err), 0);
	CHECK_STR(containers, "c0c1");
	CHECK_INT(run_store_each_mirror(s, "w1", count_mirror, mirrors, &err), 0);
	CHECK_STR(mirrors, "v1v0");
	mirrors[0] = '\0';
	CHECK_INT(run_store_each_instance(s, see_instance, &seen, &err), 0);
	CHECK(seen);
	CHECK_INT(run_store_each_workload(s, stop_at_once, NULL, &err), -ECANCELED);
	CHECK_INT(run_store_drop_workload(s, "w1", &err), 0);
	CHECK_INT(run_store_drop_workload(s, "never", &err), 0);
	containers[0] = '\0';
	CHECK_INT(run_store_each_container(s, "w1", count_container, containers, &err), 0);
	CHECK_STR(containers, "");
	CHECK_INT(run_store_each_mirror(s, "w1", count_mirror, mirrors, &err), 0);
	CHECK_STR(mirrors, "");
	CHECK_INT(run_store_drop_instance(s, "i", &err), 0);
	s = run_store_close(s);
	scratch_done(&d);
}

static void write_at(int dir_fd, const char *name, off_t at, const char *text)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);

	CHECK_INT(pwrite(fd, text, strlen(text), at), (ssize_t)strlen(text));
}

static void reports_damage(void)
{
	struct run_store *s = NULL;
	struct error err = ERROR_INIT;
	struct scratch d;

	scratch_init(&d);
	write_at(d.fd, "run.db", 0, "this is no database, but some text that somebody left here");
	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), -EBADMSG);
	CHECK(strstr(err.text, "run.db") != NULL);
	CHECK(strstr(err.text, "damaged") != NULL);
	CHECK_INT(unlinkat(d.fd, "run.db", 0), 0);

	err = (struct error)ERROR_INIT;
	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
	s = run_store_close(s);
	{
		_cleanup_fd_ int fd = openat(d.fd, "run.db", O_RDWR | O_CLOEXEC);
		struct stat st;

		CHECK_INT(fstat(fd, &st), 0);
		CHECK(st.st_size > 8192);
		/* Its end is room that is not in use yet. */
		CHECK_INT(ftruncate(fd, 8192), 0);
	}
	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), -EBADMSG);
	scratch_done(&d);
}

static int see_pod(void *data, const struct run_workload *r)
{
	CHECK_STR(r->instance_kind, str_eq(r->id, "p") ? "cell" : "");
	CHECK_STR(r->kind_reason, "");
	CHECK(r->stop_by == 0);
	++*(unsigned *)data;
	return 0;
}

static int see_cell(void *data, const struct run_instance *r)
{
	CHECK_STR(r->kind, "cell");
	CHECK_STR(r->kernel, "");
	CHECK_STR(r->kind_reason, "");
	++*(unsigned *)data;
	return 0;
}

/* Records of a release that knew cells alone. */
static void brings_records_of_cells_along(void)
{
	static const char undo[] = "ALTER TABLE instance DROP COLUMN kind_reason;"
				   "ALTER TABLE instance DROP COLUMN kernel;"
				   "ALTER TABLE instance DROP COLUMN machine_memory;"
				   "ALTER TABLE instance DROP COLUMN machine_room;"
				   "ALTER TABLE instance DROP COLUMN machine_cpus;"
				   "ALTER TABLE workload DROP COLUMN instance_kind;"
				   "ALTER TABLE workload DROP COLUMN kind_reason;"
				   "ALTER TABLE workload DROP COLUMN stop_by;"
				   "ALTER TABLE workload DROP COLUMN attachment;"
				   "ALTER TABLE workload DROP COLUMN lasts;"
				   "ALTER TABLE container DROP COLUMN created_at;"
				   "ALTER TABLE container DROP COLUMN own_log;"
				   "ALTER TABLE workload DROP COLUMN drops_volumes;"
				   "ALTER TABLE container DROP COLUMN volumes;"
				   "ALTER TABLE container DROP COLUMN health;"
				   "ALTER TABLE container DROP COLUMN role;"
				   "ALTER TABLE container DROP COLUMN restart;"
				   "ALTER TABLE container DROP COLUMN restart_max;"
				   "ALTER TABLE container DROP COLUMN restart_count;"
				   "ALTER TABLE container DROP COLUMN stopped;"
				   "ALTER TABLE workload DROP COLUMN stays;"
				   "ALTER TABLE workload DROP COLUMN restart;"
				   "ALTER TABLE workload DROP COLUMN restart_max;"
				   "ALTER TABLE workload DROP COLUMN restart_count;"
				   "ALTER TABLE workload DROP COLUMN restart_delay;"
				   "ALTER TABLE workload DROP COLUMN stopped;"
				   "ALTER TABLE workload DROP COLUMN ids_uid;"
				   "ALTER TABLE workload DROP COLUMN ids_gid;"
				   "ALTER TABLE workload DROP COLUMN ids_count;"
				   "DROP TABLE restored;"
				   "DROP TRIGGER workload_gone_wish;"
				   "DROP TABLE wish;"
				   "ALTER TABLE instance DROP COLUMN handle;"
				   "ALTER TABLE workload DROP COLUMN handle;"
				   "DROP TABLE forward;"
				   "DROP TRIGGER workload_gone_mirror;"
				   "DROP TABLE mirror;"
				   "DROP TRIGGER workload_gone_share;"
				   "DROP TRIGGER container_gone_health;"
				   "DROP TABLE health;"
				   "DROP TABLE share;"
				   "PRAGMA user_version=7";
	struct run_instance in = {
		.id = "i", .path = "p", .kind = "cell", .state_word = "ready", .kernel = "6.1"
	};
	struct run_workload pod = workload("p", 1), cell = workload("c", 2);
	struct run_store *s = NULL;
	struct error err = ERROR_INIT;
	struct scratch d;
	sqlite3 *db = NULL;
	unsigned seen = 0;
	char path[96];

	cell.kind = "cell";
	scratch_init(&d);
	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
	CHECK_INT(run_store_put_instance(s, &in, &err), 0);
	CHECK_INT(run_store_put_workload(s, &pod, &err), 0);
	CHECK_INT(run_store_put_workload(s, &cell, &err), 0);
	s = run_store_close(s);
	CHECK(str_printf(path, sizeof(path), "%s/run.db", d.path) > 0);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, undo, NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_close(db), SQLITE_OK);

	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
	CHECK_INT(run_store_each_instance(s, see_cell, &seen, &err), 0);
	CHECK_INT(run_store_each_workload(s, see_pod, &seen, &err), 0);
	CHECK_INT(seen, 3);
	s = run_store_close(s);
	scratch_done(&d);
}

/* What the schema lets in and a member cannot hold. */
static void refuses_numbers_that_are_none(void)
{
	static const char *const changes[] = {
		"UPDATE workload SET auto_remove = 2",
		"UPDATE workload SET state = 4294967296",
		"UPDATE workload SET restart_count = -1",
		"UPDATE workload SET created_at = 'soon'",
	};
	struct run_workload pod = workload("p", 1);
	struct scratch d;
	char path[96];

	scratch_init(&d);
	CHECK(str_printf(path, sizeof(path), "%s/run.db", d.path) > 0);
	for (size_t i = 0; i < ARRAY_SIZE(changes); i++) {
		struct run_store *s = NULL;
		struct error err = ERROR_INIT;
		unsigned seen = 0;
		sqlite3 *db = NULL;

		CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
		CHECK_INT(run_store_put_workload(s, &pod, &err), 0);
		s = run_store_close(s);
		CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
		CHECK_INT(sqlite3_exec(db, changes[i], NULL, NULL, NULL), SQLITE_OK);
		CHECK_INT(sqlite3_close(db), SQLITE_OK);
		CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
		CHECK_INT(run_store_each_workload(s, see_pod, &seen, &err), -EBADMSG);
		CHECK(strstr(err.text, "read workload.") != NULL);
		CHECK_INT(seen, 0);
		s = run_store_close(s);
	}
	scratch_done(&d);
}

static void keeps_a_workload_as_text(void)
{
	struct run_container c[] = { container("1", "w", 0), container("2", "w", 1) };
	struct run_kept kept = { .workload = workload("w", 7),
				 .containers = c,
				 .n_containers = 2,
				 .wish = { .id = "w", .text = "0a0b" } };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct arena a = ARENA_INIT;
	struct error err = ERROR_INIT;
	struct run_kept read;
	char *text;

	c[1].reason = "a b=c\n\303\244";
	CHECK_INT(run_kept_write(&b, &kept), 0);
	text = buf_take_str(&b);
	CHECK_INT(run_kept_read(&a, text, &read, &err), 0);
	CHECK_STR(read.workload.path, "w");
	CHECK_INT(read.workload.created_at, 7);
	CHECK(read.workload.auto_remove && !read.workload.lasts);
	CHECK_STR(read.workload.restart, "");
	CHECK_INT(read.n_containers, 2);
	CHECK_INT(read.containers[1].exit_code, -1);
	CHECK_STR(read.containers[1].reason, c[1].reason);
	CHECK_STR(read.wish.text, "0a0b");
	text[strlen(text) - 2] = 'x';
	CHECK_INT(run_kept_read(&a, text, &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "workload later=1\n", &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "machine id=31\n", &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "workload id=3\n", &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "workload state=1x\n", &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "workload state=4294967296\n", &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "workload auto_remove=2\n", &read, &err), -EBADMSG);
	CHECK_INT(run_kept_read(&a, "", &read, &err), -EBADMSG);
	free(text);
	arena_done(&a);
}

static void refuses_newer_schema(void)
{
	struct run_store *s = NULL;
	struct error err = ERROR_INIT;
	struct scratch d;
	sqlite3 *db = NULL;
	char path[96];

	scratch_init(&d);
	CHECK(str_printf(path, sizeof(path), "%s/run.db", d.path) > 0);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "PRAGMA user_version=99", NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(sqlite3_close(db), SQLITE_OK);
	CHECK(run_store_open(&s, d.fd, "run.db", &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
	CHECK(strstr(err.text, "99") != NULL);
	scratch_done(&d);
}

static void says_who_is_busy(void)
{
	struct run_workload w = workload("w", 1);
	struct run_store *s = NULL;
	struct error err = ERROR_INIT;
	struct scratch d;
	sqlite3 *db = NULL;
	char path[96];

	scratch_init(&d);
	CHECK_INT(run_store_open(&s, d.fd, "run.db", &err), 0);
	CHECK(str_printf(path, sizeof(path), "%s/run.db", d.path) > 0);
	CHECK_INT(sqlite3_open(path, &db), SQLITE_OK);
	CHECK_INT(sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(run_store_put_workload(s, &w, &err), -EBUSY);
	CHECK_INT(sqlite3_exec(db, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	CHECK_INT(run_store_put_workload(s, &w, &err), 0);
	CHECK_INT(sqlite3_close(db), SQLITE_OK);
	s = run_store_close(s);
	scratch_done(&d);
}

/* Whatever the umask, from the first instant; also a file that an older release has made. */
static void files_are_the_owners_alone(void)
{
	static const char *const names[] = { "run.db", "run.db-wal", "run.db-shm" };
	mode_t mask = umask(0);
	struct run_workload w = workload("a", 1);
	struct run_store *s = NULL;
	struct error err = ERROR_INIT;
	struct scratch dir;
	struct stat st;

	scratch_init(&dir);
	for (int again = 0; again < 2; again++) {
		CHECK_INT(run_store_open(&s, dir.fd, "run.db", &err), 0);
		CHECK_INT(run_store_put_workload(s, &w, &err), 0);
		for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
			CHECK_INT(fstatat(dir.fd, names[i], &st, 0), 0);
			CHECK_INT(st.st_mode & 07777, 0600);
		}
		s = run_store_close(s);
		CHECK_INT(fchmodat(dir.fd, "run.db", 0644, 0), 0);
	}
	(void)umask(mask);
	scratch_done(&dir);
}

UNIT_MAIN({ "files are the owner's alone", files_are_the_owners_alone },
	  { "keeps_records", keeps_records }, { "reports_damage", reports_damage },
	  { "brings_records_of_cells_along", brings_records_of_cells_along },
	  { "refuses_numbers_that_are_none", refuses_numbers_that_are_none },
	  { "keeps_a_workload_as_text", keeps_a_workload_as_text },
	  { "refuses_newer_schema", refuses_newer_schema },
	  { "says_who_is_busy", says_who_is_busy })
