/* SPDX-License-Identifier: Apache-2.0 */

/* A peer of this file has a log; the files are real. */

#include "pod/log/log_pull.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "instance/peer.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"
#include "wire/format/crilog.h"

#define HEAD "2026-11-22T13:00:00.000000000Z stdout F "
#define LINE(text) HEAD text "\n"
#define MARK(tag) "2026-11-22T13:00:00.000000000Z stdout P" tag " \n"
#define BIG 60000

struct peer_log {
	const struct peer_log_ops *ops; /* NULL: nobody reads */
	void *userdata;
	bool paused;
};

static struct {
	char path[64];
	int fd, logs_fd;
	struct loop *loop;
	struct pool *pool;
	struct log_pull *pull;
	struct peer peer;
	struct peer_log log;
	uint64_t from, taken;
	uint64_t n_lost;
	unsigned n_opened, n_ends;
	struct error err;
} s;

/* ---- the peer ---- */

static int log_open(struct peer *p, const char *id, uint64_t from, const struct peer_log_ops *ops,
		    void *userdata, struct peer_log **ret)
{
	CHECK_STR(id, "0123456789abcdef");
	s.log = (struct peer_log){ .ops = ops, .userdata = userdata };
	s.from = from;
	s.n_opened++;
	*ret = &s.log;
	return 0;
}

static int log_take(struct peer_log *log, uint64_t at)
{
	s.taken = at;
	return 0;
}

static void log_pause(struct peer_log *log, bool paused)
{
	log->paused = paused;
}

static void log_close(struct peer_log *log)
{
	log->ops = NULL;
}

static const struct peer_ops peer_ops = {
	.log_open = log_open, .log_take = log_take, .log_pause = log_pause, .log_close = log_close
};

static void tell(uint64_t at, const char *lines)
{
	LOOP_WAIT(s.loop, s.log.ops && !s.log.paused);
	if (s.log.ops)
		s.log.ops->on_lines(s.log.userdata, at, (const uint8_t *)lines, strlen(lines));
}

static void tell_end(uint64_t at)
{
	const struct peer_log_ops *ops = s.log.ops;

	if (!ops)
		return;
	ops->on_eof(s.log.userdata, at);
	s.log.ops = NULL;
	ops->on_end(s.log.userdata, NULL);
}

static void lose(enum error_kind kind)
{
	const struct peer_log_ops *ops = s.log.ops;
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, kind, "lost");
	s.log.ops = NULL;
	if (ops)
		ops->on_end(s.log.userdata, &err);
}

static void on_lost(void *userdata, uint64_t n)
{
	s.n_lost += n;
}

static void on_end(void *userdata, const struct error *err)
{
	s.n_ends++;
	s.err = err ? *err : (struct error)ERROR_INIT;
}

/* ---- the world ---- */

static void pull_into(int own_fd, bool fresh, uint64_t max_bytes, bool drop)
{
	struct log_pull_config config = {
		.own_fd = own_fd,
		.fresh = fresh,
		.loop = s.loop,
		.pool = s.pool,
		.peer = &s.peer,
		.logs_fd = s.logs_fd,
		.dir = "w",
		.id = "0123456789abcdef",
		.name = "main",
		.log = { .max_bytes = max_bytes,
			 .max_files = 3,
			 .drop = drop,
			 .block_for = drop ? 0 : NSEC_NEVER },
		.on_end = on_end,
		.on_lost = on_lost,
	};

	CHECK_INT(log_pull_new(&s.pull, &config), 0);
	LOOP_WAIT(s.loop, s.log.ops != NULL || s.n_ends > 0);
}

static void pull(uint64_t max_bytes, bool drop)
{
	pull_into(-1, false, max_bytes, drop);
}

static void begin(void)
{
	memset(&s, 0, sizeof(s));
	s.peer.ops = &peer_ops;
	(void)str_copy(s.path, sizeof(s.path), "/tmp/nacre-log-pull-XXXXXX");
	CHECK(mkdtemp(s.path) != NULL);
	s.fd = s.logs_fd = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(s.fd, "w", 0700) == 0);
	CHECK_INT(loop_new(&s.loop), 0);
	CHECK_INT(pool_new(&s.pool, s.loop, 1), 0);
}

static void end(void)
{
	s.pull = log_pull_free(s.pull);
	s.pool = pool_free(s.pool);
	s.loop = loop_free(s.loop);
	s.fd = fd_close(s.fd);
	CHECK_INT(scratch_remove(s.path), 0);
}

static bool holds(const char *name, const char *text)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[64];

	(void)str_printf(path, sizeof(path), "w/%s", name);
	if (fd_read_file(s.fd, path, (size_t)1 << 20, &b) < 0)
		return false;
	return b.len == strlen(text) && (b.len == 0 || memcmp(buf_data(&b), text, b.len) == 0);
}

static void put(const char *name, const char *text)
{
	_cleanup_fd_ int fd = -1;
	char path[64];

	(void)str_printf(path, sizeof(path), "w/%s", name);
	fd = openat(s.fd, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0640);
	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
}

static int own_file(const char *name)
{
	char path[64];
	int fd;

	(void)str_printf(path, sizeof(path), "w/%s", name);
	fd = openat(s.fd, path, O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	CHECK(fd >= 0);
	return fd;
}

static void on_changed(void *userdata, const struct error *err)
{
	*(int *)userdata = err ? -1 : 1;
}

/* ---- the tests ---- */

static void lines_are_taken_when_they_are_written(void)
{
	begin();
	pull(0, false);
	CHECK_INT(s.from, 0);
	tell(0, LINE("one") LINE("two"));
	CHECK(s.taken == 0 && s.log.paused);
	LOOP_WAIT(s.loop, s.taken == 8);
	CHECK(holds("main.log", LINE("one") LINE("two")));
	tell(8, LINE("three"));
	LOOP_WAIT(s.loop, s.taken == 14);
	tell_end(14);
	LOOP_WAIT(s.loop, s.n_ends == 1);
	CHECK_INT(s.err.code, 0);
	CHECK(holds("main.log", LINE("one") LINE("two") LINE("three")));
	end();
}

static void a_later_one_goes_on_where_the_files_stand(void)
{
	begin();
	put("main.log", HEAD "x\n" HEAD "torn by a cra");
	pull(0, false);
	CHECK_INT(s.from, 2);
	tell(2, LINE("torn"));
	LOOP_WAIT(s.loop, s.taken == 7);
	CHECK(holds("main.log", HEAD "x\n" LINE("torn")));
	end();
	begin();
	put("main.log", MARK(":file=7:at=1000") LINE("abc"));
	put("main.log.new", "rest");
	pull(0, false);
	CHECK_INT(s.from, 1004);
	end();
}

static void names_that_were_being_changed_are(void)
{
	begin();
	put("main.log.1", LINE("abc"));
	put("main.log.new", MARK(":file=1:at=4"));
	pull(0, false);
	CHECK_INT(s.from, 4);
	CHECK(holds("main.log.1", LINE("abc")) && holds("main.log", MARK(":file=1:at=4")));
	end();
	begin();
	put("main.log.1", LINE("abc"));
	pull(0, false);
	CHECK_INT(s.from, 4);
	CHECK(holds("main.log", LINE("abc")) && !holds("main.log.1", LINE("abc")));
	end();
}

static void files_are_rotated(void)
{
	char line[4200];
	uint64_t at = 0;

	begin();
	memset(line, 'y', sizeof(line));
	memcpy(line, HEAD, strlen(HEAD));
	line[sizeof(line) - 2] = '\n';
	line[sizeof(line) - 1] = '\0';
	pull(65536, false);
	for (int i = 0; i < 20; i++) {
		tell(at, line);
		at += strlen(line) - strlen(HEAD);
		LOOP_WAIT(s.loop, s.taken == at);
	}
	s.pull = log_pull_free(s.pull);
	CHECK(faccessat(s.fd, "w/main.log.1", F_OK, 0) == 0);
	s.log.ops = NULL;
	pull(65536, false);
	CHECK(s.from == at);
	end();
}

static void a_lost_connection_is_waited_for(void)
{
	begin();
	pull(0, false);
	tell(0, LINE("one"));
	lose(ERROR_UNAVAILABLE);
	LOOP_WAIT(s.loop, s.n_opened == 2);
	CHECK_INT(s.from, 4);
	lose(ERROR_NOT_FOUND);
	LOOP_WAIT(s.loop, s.n_ends == 1);
	CHECK_INT(s.err.kind, ERROR_NOT_FOUND);
	end();
}

static void what_is_missing_is_marked(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;

	begin();
	pull(0, false);
	tell(100, LINE("one"));
	LOOP_WAIT(s.loop, s.taken == 104);
	CHECK(fd_read_file(s.fd, "w/main.log", 4096, &b) >= 0 && buf_add(&b, "", 1) == 0);
	CHECK(b.len > 0 && strstr((const char *)buf_data(&b), "P:lost=100 \n" LINE("one")) != NULL);
	end();
}

static void what_is_no_log_ends_it(void)
{
	static const struct {
		uint64_t at;
		const char *lines;
	} rows[] = { { 4, "no line\n" },
		     { 4, HEAD "not whole" },
		     { 3, LINE("back") },
		     { UINT64_MAX, LINE("far") },
		     { 4, MARK(":file=3:at=4") },
		     { 4, MARK("") },
		     { 4, MARK(":lost=18446744073709551615") } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		begin();
		put("main.log", LINE("abc"));
		pull(0, false);
		tell(rows[i].at, rows[i].lines);
		LOOP_WAIT(s.loop, s.n_ends == 1);
		CHECK_INT(s.err.kind, ERROR_FAULT);
		CHECK(holds("main.log", LINE("abc")));
		end();
	}
}

static void a_full_disk_is_the_policys_affair(void)
{
	static char big[BIG + 1];
	uint64_t at = 0;

	begin();
	memset(big, 'z', BIG);
	memcpy(big, HEAD, strlen(HEAD));
	big[BIG - 1] = '\n';
	if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", s.path, "tmpfs", 0, "size=64k") < 0) {
		end();
		SKIP("needs root");
	}
	s.logs_fd = open(s.path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(mkdirat(s.logs_fd, "w", 0700) == 0);
	pull(0, true);
	for (int i = 0; i < 3; i++) {
		tell(at, big);
		at += BIG - strlen(HEAD);
		/* Also what was dropped is taken. */
		LOOP_WAIT(s.loop, s.taken == at);
	}
	CHECK_INT(s.n_ends, 0);
	/* What does not fit is counted, and only that. */
	CHECK(s.n_lost > 0 && s.n_lost < at && s.n_lost % (BIG - strlen(HEAD)) == 0);
	s.pull = log_pull_free(s.pull);
	s.pool = pool_free(s.pool);
	s.logs_fd = fd_close(s.logs_fd);
	CHECK(umount2(s.path, MNT_DETACH) == 0);
	end();
}

/* Where it stands is found again in whichever file it was given last. */
static void somebody_elses_files(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int changed = 0;

	begin();
	pull_into(own_file("a"), true, 1, false);
	CHECK_INT(s.from, 0);
	tell(0, LINE("one"));
	LOOP_WAIT(s.loop, s.taken == 4);
	CHECK(holds("a", LINE("one")));
	tell(4, LINE("two"));
	CHECK_INT(log_pull_change(s.pull, own_file("b"), on_changed, &changed), 0);
	CHECK_INT(log_pull_change(s.pull, -1, on_changed, &changed), -EBUSY);
	LOOP_WAIT(s.loop, s.taken == 8 && changed);
	CHECK_INT(changed, 1);
	CHECK(holds("a", LINE("one") LINE("two")));
	tell(8, LINE("three"));
	LOOP_WAIT(s.loop, s.taken == 14);
	CHECK(fd_read_file(s.fd, "w/b", 1 << 20, &b) >= 0 && buf_add(&b, "", 1) == 0);
	CHECK(strstr((const char *)buf_data(&b), ":file=1:at=8 \n" LINE("three")) != NULL);
	s.pull = log_pull_free(s.pull);
	pull_into(own_file("b"), false, 1, false);
	CHECK_INT(s.from, 14);
	tell_end(14);
	LOOP_WAIT(s.loop, s.n_ends == 1);
	s.pull = log_pull_free(s.pull);
	s.n_ends = 0;
	/* What was in there before is not counted. */
	put("c", LINE("of another"));
	s.taken = 0;
	pull_into(own_file("c"), true, 1, false);
	CHECK_INT(s.from, 0);
	tell(0, LINE("one"));
	LOOP_WAIT(s.loop, s.taken == 4);
	s.pull = log_pull_free(s.pull);
	pull_into(own_file("c"), false, 1, false);
	CHECK_INT(s.from, 4);
	end();
}

UNIT_MAIN({ "lines are taken when they are written", lines_are_taken_when_they_are_written },
	  { "a later one goes on where the files stand",
	    a_later_one_goes_on_where_the_files_stand },
	  { "names that were being changed are", names_that_were_being_changed_are },
	  { "files are rotated", files_are_rotated },
	  { "a lost connection is waited for", a_lost_connection_is_waited_for },
	  { "what is missing is marked", what_is_missing_is_marked },
	  { "what is no log ends it", what_is_no_log_ends_it },
	  { "somebody else's files", somebody_elses_files },
	  { "a full disk is the policy's affair", a_full_disk_is_the_policys_affair })
