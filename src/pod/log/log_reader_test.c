/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cell/output/log_file.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "scratch.h"
#include "unit.h"

#define WORKLOAD "0123456789abcdef"
#define MIB ((size_t)1 << 20)

/* One log, written as a keeper writes it, and one reader of it. */
static struct bed {
	struct loop *loop;
	struct pool *pool;
	struct log_readers *all;
	struct log_reader *reader;
	struct log_file file;
	uint64_t written;
	nsec_t now;
	struct buf out[2];
	uint64_t skipped, last_time;
	unsigned n_data;
	int ended; /* 1, or the negative errno */
	bool pause_on_data, free_on_data;
	int dir_fd, sub_fd;
	char dir[64];
} b;

static void on_data(void *userdata, int stream, uint64_t time, const void *data, size_t len)
{
	CHECK(time > 0);
	b.last_time = time;
	b.n_data++;
	CHECK_INT(buf_add(&b.out[stream - 1], data, len), 0);
	if (b.pause_on_data)
		log_reader_pause(b.reader, true);
	if (b.free_on_data)
		b.reader = log_reader_free(b.reader);
}

static void on_skipped(void *userdata, uint64_t n)
{
	b.skipped += n;
}

static void on_end(void *userdata, const struct error *err)
{
	b.ended = err ? err->code : 1;
}

static const struct log_reader_ops ops = { .on_data = on_data,
					   .on_skipped = on_skipped,
					   .on_end = on_end };

static void bed_open(uint64_t max_bytes, uint32_t max_files)
{
	struct log_policy policy = { .max_bytes = max_bytes, .max_files = max_files };

	b = (struct bed){ .now = NSEC_PER_SEC, .dir = "/tmp/nacre-log-test-XXXXXX" };
	CHECK(mkdtemp(b.dir) != NULL);
	b.dir_fd = open(b.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(mkdirat(b.dir_fd, WORKLOAD, 0700), 0);
	b.sub_fd = openat(b.dir_fd, WORKLOAD, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	log_file_init(&b.file,
		      openat(b.sub_fd, "main.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640),
		      fd_copy(b.sub_fd), "main", &policy);
	CHECK_INT(loop_new(&b.loop), 0);
	CHECK_INT(pool_new(&b.pool, b.loop, 2), 0);
	CHECK_INT(log_readers_new(&b.all, b.loop, b.pool, b.dir_fd), 0);
}

static void bed_close(void)
{
	b.reader = log_reader_free(b.reader);
	b.pool = pool_free(b.pool);
	b.all = log_readers_free(b.all);
	b.loop = loop_free(b.loop);
	log_file_done(&b.file);
	(void)fd_close(b.sub_fd);
	(void)fd_close(b.dir_fd);
	CHECK_INT(scratch_remove(b.dir), 0);
	buf_done(&b.out[0]);
	buf_done(&b.out[1]);
}

static void bed_read(const struct log_wish *wish)
{
	b.reader = log_reader_free(b.reader);
	buf_clear(&b.out[0]);
	buf_clear(&b.out[1]);
	b.ended = 0;
	b.skipped = 0;
	b.n_data = 0;
	CHECK_INT(log_reader_new(&b.reader, b.all, WORKLOAD, "main", wish, &ops, NULL), 0);
	CHECK_INT(b.n_data, 0);
}

static void bed_raw(const void *lines, size_t len)
{
	size_t n;

	CHECK_INT(log_file_write(&b.file, lines, len, b.written, &n), 0);
	CHECK_INT(n, len);
}

/* A second passes with each chunk. */
static void bed_write_to(enum crilog_stream stream, const void *data, size_t len)
{
	struct buf lines = BUF_INIT;

	b.now += NSEC_PER_SEC;
	CHECK_INT(crilog_encode(&lines, b.now, stream, data, len), 0);
	b.written += len;
	bed_raw(buf_data(&lines), lines.len);
	buf_done(&lines);
}

static void bed_write(const char *text)
{
	bed_write_to(CRILOG_STDOUT, text, strlen(text));
}

static void bed_until_end(void)
{
	while (!b.ended)
		loop_turn(b.loop, true);
}

static void bed_until_data(void)
{
	while (b.n_data == 0 && !b.ended)
		loop_turn(b.loop, true);
	CHECK(b.n_data > 0);
}

static bool bed_has(int stream, const void *data, size_t len)
{
	return b.out[stream].len == len &&
	       (len == 0 || memcmp(buf_data(&b.out[stream]), data, len) == 0);
}

static void bed_expect(const struct log_wish *wish, const char *out, const char *err)
{
	bed_read(wish);
	bed_until_end();
	CHECK_INT(b.ended, 1);
	CHECK(bed_has(0, out, strlen(out)));
	CHECK(bed_has(1, err, strlen(err)));
	if (!bed_has(0, out, strlen(out)))
		printf("# got %.*s\n", (int)b.out[0].len, (const char *)buf_data(&b.out[0]));
}

/* ---- tests ---- */

static void gives_back_every_byte(void)
{
	static const char odd[] = "a\0b\xff\n\n no line feed";

	bed_open(0, 0);
	bed_write_to(CRILOG_STDOUT, odd, sizeof(odd) - 1);
	bed_write_to(CRILOG_STDERR, "oops\n", 5);
	bed_read(&(struct log_wish){ .follow = false });
	bed_until_end();
	CHECK(bed_has(0, odd, sizeof(odd) - 1));
	CHECK(bed_has(1, "oops\n", 5));
	/* What was written at once comes at once. */
	CHECK_INT(b.n_data, 2);
	CHECK_INT(b.skipped, 0);
	bed_close();
}

static void tells_where_there_is_none(void)
{
	static const struct log_wish all = { .follow = false };

	bed_open(0, 0);
	CHECK_INT(unlinkat(b.sub_fd, "main.log", 0), 0);
	bed_read(&all);
	bed_until_end();
	CHECK_INT(b.ended, -ENOENT);
	bed_close();
}

static void follows_until_it_is_finished(void)
{
	bed_open(0, 0);
	bed_read(&(struct log_wish){ .follow = true });
	bed_write("one\n");
	while (b.out[0].len < 4 && !b.ended)
		loop_turn(b.loop, true);
	bed_write("two\n");
	while (b.out[0].len < 8 && !b.ended)
		loop_turn(b.loop, true);
	CHECK(!b.ended);
	bed_write("three\n");
	log_reader_finish(b.reader);
	bed_until_end();
	CHECK(bed_has(0, "one\ntwo\nthree\n", 14));
	bed_close();
}

/* A line that is half on the disk is not given out before it is whole. */
static void waits_for_the_end_of_a_line(void)
{
	bed_open(0, 0);
	bed_read(&(struct log_wish){ .follow = true });
	bed_write("one\n");
	while (b.out[0].len < 4 && !b.ended)
		loop_turn(b.loop, true);
	bed_raw("1970-01-01T00:01:00Z stdout F tw", 32);
	for (int i = 0; i < 50; i++) {
		(void)usleep(1000);
		loop_turn(b.loop, false);
	}
	CHECK(bed_has(0, "one\n", 4));
	bed_raw("o\n", 2);
	while (b.out[0].len < 8 && !b.ended)
		loop_turn(b.loop, true);
	CHECK(bed_has(0, "one\ntwo\n", 8));
	bed_close();
}

/* Rotation every 64 KiB, with a reader that keeps pace and is woken by inotify alone. */
static void follows_over_rotation(void)
{
	static char line[1000];
	size_t want = 0;

	bed_open(LOG_BYTES_MIN, 3);
	bed_read(&(struct log_wish){ .follow = true });
	for (int i = 0; i < 600; i++) {
		(void)str_printf(line, sizeof(line), "%0900d\n", i);
		bed_write(line);
		want += strlen(line);
		while (b.out[0].len < want && !b.ended)
			loop_turn(b.loop, true);
	}
	CHECK(b.file.number > 6);
	CHECK_INT(b.out[0].len, want);
	for (int i = 0; i < 600 && b.out[0].len == want; i++) {
		(void)str_printf(line, sizeof(line), "%0900d\n", i);
		CHECK(memcmp(buf_data(&b.out[0]) + (size_t)i * strlen(line), line, strlen(line)) ==
		      0);
	}
	CHECK_INT(b.skipped, 0);
	log_reader_finish(b.reader);
	bed_until_end();
	CHECK_INT(b.ended, 1);
	bed_close();
}

/* One that stands still while files go away is told how much is missing, to the byte. */
static void counts_what_was_rotated_away(void)
{
	static char line[16384];

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	for (int from_tail = 0; from_tail < 2; from_tail++) {
		bed_open(LOG_BYTES_MIN, 3);
		bed_write("first\n");
		bed_write("second\n");
		bed_read(&(struct log_wish){ .follow = true, .has_tail = from_tail, .tail = 1 });
		b.pause_on_data = true;
		bed_until_data();
		for (int i = 0; i < 40; i++)
			bed_write_to(CRILOG_STDOUT, line, sizeof(line));
		b.pause_on_data = false;
		log_reader_finish(b.reader);
		log_reader_pause(b.reader, false);
		bed_until_end();
		CHECK(b.skipped > 0);
		CHECK_INT(b.out[0].len + b.skipped, b.written - (from_tail ? 6 : 0));
		/* From the beginning, of which some is gone. */
		bed_read(&(struct log_wish){ .follow = false });
		bed_until_end();
		CHECK(b.skipped > 0);
		CHECK_INT(b.out[0].len + b.skipped, b.written);
		bed_close();
	}
}

static void tells_of_marks(void)
{
	char mark[CRILOG_MARK_MAX];

	bed_open(0, 0);
	bed_write("one\n");
	bed_raw(mark, crilog_mark_lost(mark, b.now, 1000));
	bed_write("two\n");
	bed_expect(&(struct log_wish){ .follow = false }, "one\ntwo\n", "");
	CHECK_INT(b.skipped, 1000);
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 1 }, "two\n", "");
	CHECK_INT(b.skipped, 0);
	bed_close();
}

static void begins_at_the_tail(void)
{
	bed_open(0, 0);
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 5 }, "", "");
	bed_write("one\ntwo\n");
	bed_write_to(CRILOG_STDERR, "bad\n", 4);
	bed_write("thr");
	bed_write_to(CRILOG_STDERR, "worse\n", 6);
	bed_write("ee\nfour");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 0 }, "", "");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 1 }, "four", "");
	/* A line in two pieces, another stream's between them. */
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 2 }, "three\nfour", "");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 3 }, "three\nfour", "worse\n");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 4 }, "three\nfour",
		   "bad\nworse\n");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 5 }, "two\nthree\nfour",
		   "bad\nworse\n");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = UINT64_MAX },
		   "one\ntwo\nthree\nfour", "bad\nworse\n");
	bed_close();
}

/* Over several files and many pieces, each number of lines right. */
static void begins_at_the_tail_of_many_files(void)
{
	static const int tails[] = { 1, 10, 999, 1500, 2000, 2500, 2999 };
	char line[300];

	bed_open(4 * LOG_BYTES_MIN, 10);
	for (int i = 0; i < 3000; i++) {
		(void)str_printf(line, sizeof(line), "%0250d\n", i);
		bed_write(line);
	}
	CHECK(b.file.number >= 2 && b.file.number < 10);
	for (size_t i = 0; i < ARRAY_SIZE(tails); i++) {
		bed_read(&(struct log_wish){ .has_tail = true, .tail = (uint64_t)tails[i] });
		bed_until_end();
		CHECK_INT(b.out[0].len, (size_t)tails[i] * 251);
		(void)str_printf(line, sizeof(line), "%0250d\n", 3000 - tails[i]);
		CHECK(b.out[0].len > 0 && memcmp(buf_data(&b.out[0]), line, 251) == 0);
	}
	bed_close();
}

/* A line of 1 MiB counts as one; a longer one is cut to about that. */
static void bounds_a_line_of_the_tail(void)
{
	static char data[16384];

	memset(data, 'x', sizeof(data));
	bed_open(LOG_BYTES_MIN, 100);
	bed_write("before\n");
	for (int i = 0; i < 63; i++)
		bed_write_to(CRILOG_STDOUT, data, sizeof(data));
	bed_write_to(CRILOG_STDOUT, data, sizeof(data) - 1);
	bed_write("\n");
	bed_read(&(struct log_wish){ .has_tail = true, .tail = 1 });
	bed_until_end();
	CHECK_INT(b.out[0].len, MIB);
	for (int i = 0; i < 100; i++)
		bed_write_to(CRILOG_STDOUT, data, sizeof(data));
	bed_read(&(struct log_wish){ .has_tail = true, .tail = 1 });
	bed_until_end();
	CHECK(b.out[0].len > MIB - 2 * sizeof(data) && b.out[0].len <= MIB);
	bed_read(&(struct log_wish){ .has_tail = true, .tail = 2 });
	bed_until_end();
	/* From the beginning of the first of the two all is given. */
	CHECK_INT(b.out[0].len, MIB + 100 * sizeof(data));
	bed_close();
}

static void begins_at_a_time(void)
{
	nsec_t at;

	bed_open(0, 0);
	bed_write("one\nbegin");
	at = b.now + 1;
	bed_write("ning\ntwo\n");
	bed_write("three\n");
	bed_expect(&(struct log_wish){ .since = 1 }, "one\nbeginning\ntwo\nthree\n", "");
	bed_expect(&(struct log_wish){ .since = at - 1 }, "one\nbeginning\ntwo\nthree\n", "");
	/* A line is as old as its beginning. */
	bed_expect(&(struct log_wish){ .since = at }, "two\nthree\n", "");
	bed_expect(&(struct log_wish){ .since = b.now }, "three\n", "");
	bed_expect(&(struct log_wish){ .since = b.now + 1 }, "", "");
	bed_expect(&(struct log_wish){ .since = b.now, .has_tail = true, .tail = 9 }, "three\n",
		   "");
	bed_expect(&(struct log_wish){ .since = at, .has_tail = true, .tail = 1 }, "three\n", "");
	bed_close();
}

static void begins_at_a_time_of_many_files(void)
{
	char line[300];
	nsec_t first;

	bed_open(LOG_BYTES_MIN, 10);
	first = b.now + NSEC_PER_SEC;
	for (int i = 0; i < 1500; i++) {
		(void)str_printf(line, sizeof(line), "%0250d\n", i);
		bed_write(line);
	}
	CHECK(b.file.number >= 5 && b.file.number < 10);
	for (unsigned i = 0; i < 1500; i += 77) {
		bed_read(&(struct log_wish){ .since = first + i * NSEC_PER_SEC });
		bed_until_end();
		CHECK_INT(b.out[0].len, (1500 - i) * 251);
	}
	bed_close();
}

/* Without following, a log that never stands still comes to an end. */
static void ends_where_the_log_ended(void)
{
	bed_open(LOG_BYTES_MIN, 5);
	bed_write("one\n");
	bed_read(&(struct log_wish){ .follow = false });
	b.pause_on_data = true;
	bed_until_data();
	for (int i = 0; i < 3000; i++)
		bed_write("more and more and more and more\n");
	b.pause_on_data = false;
	log_reader_pause(b.reader, false);
	bed_until_end();
	CHECK(bed_has(0, "one\n", 4));
	bed_close();
}

static void gives_nothing_more_while_paused(void)
{
	char text[32];

	bed_open(0, 0);
	for (int i = 0; i < 1000; i++) {
		(void)str_printf(text, sizeof(text), "%d\n", i);
		bed_write(text);
	}
	b.pause_on_data = true;
	bed_read(&(struct log_wish){ .follow = false });
	/* One call of on_data() at a time, whatever the piece holds, and nothing twice. */
	for (unsigned i = 1; i <= 1000; i++) {
		while (b.n_data < i && !b.ended)
			loop_turn(b.loop, true);
		CHECK_INT(b.n_data, i);
		log_reader_pause(b.reader, false);
	}
	bed_until_end();
	CHECK_INT(b.out[0].len, b.written);
	bed_close();
}

static void skips_what_is_no_line(void)
{
	static char junk[300000];

	memset(junk, 'j', sizeof(junk));
	bed_open(0, 0);
	bed_write("one\n");
	bed_raw("torn\n\n", 6);
	bed_raw(junk, sizeof(junk));
	bed_raw("\n", 1);
	bed_write("two\n");
	bed_expect(&(struct log_wish){ .follow = false }, "one\ntwo\n", "");
	bed_expect(&(struct log_wish){ .has_tail = true, .tail = 2 }, "one\ntwo\n", "");
	bed_close();
}

static void can_be_freed_at_any_time(void)
{
	static const struct log_wish follow = { .follow = true };
	struct log_reader *more[50];

	for (int turns = 0; turns < 6; turns++) {
		bed_open(0, 0);
		bed_write("text\n");
		b.free_on_data = turns == 5;
		bed_read(&follow);
		for (int i = 0; i < turns; i++) {
			loop_turn(b.loop, false);
			(void)usleep(1000);
		}
		b.reader = log_reader_free(b.reader);
		for (int i = 0; i < 3; i++)
			loop_turn(b.loop, false);
		bed_close();
	}
	/* With work that the pool has not begun, or not ended. */
	for (int turns = 0; turns < 3; turns++) {
		bed_open(0, 0);
		for (size_t i = 0; i < ARRAY_SIZE(more); i++)
			CHECK_INT(log_reader_new(&more[i], b.all, WORKLOAD, "main", &follow, &ops,
						 NULL),
				  0);
		for (int i = 0; i < turns; i++)
			loop_turn(b.loop, false);
		for (size_t i = 0; i < ARRAY_SIZE(more); i++)
			(void)log_reader_free(more[i]);
		bed_close();
	}
}

static int count_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 4096; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* A thousand followers: a file each, and one descriptor of inotify for all. */
static void shares_one_inotify(void)
{
	static struct log_reader *readers[1000];
	size_t n_before;

	bed_open(0, 0);
	bed_write("one\n");
	n_before = (size_t)count_fds();
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		CHECK_INT(log_reader_new(&readers[i], b.all, WORKLOAD, "main",
					 &(struct log_wish){ .follow = true }, &ops, NULL),
			  0);
	while (b.n_data < ARRAY_SIZE(readers) && !b.ended)
		loop_turn(b.loop, true);
	CHECK(count_fds() <= (int)(n_before + ARRAY_SIZE(readers) + 1));
	bed_write("two\n");
	while (b.n_data < 2 * ARRAY_SIZE(readers) && !b.ended)
		loop_turn(b.loop, true);
	CHECK_INT(b.out[0].len, 8 * ARRAY_SIZE(readers));
	for (size_t i = 0; i < ARRAY_SIZE(readers); i++)
		(void)log_reader_free(readers[i]);
	/* What a thread had in hand takes a turn. */
	while (count_fds() > (int)n_before + 1)
		loop_turn(b.loop, true);
	bed_close();
}

UNIT_MAIN({ "gives_back_every_byte", gives_back_every_byte },
	  { "tells_where_there_is_none", tells_where_there_is_none },
	  { "follows_until_it_is_finished", follows_until_it_is_finished },
	  { "waits_for_the_end_of_a_line", waits_for_the_end_of_a_line },
	  { "follows_over_rotation", follows_over_rotation },
	  { "counts_what_was_rotated_away", counts_what_was_rotated_away },
	  { "tells_of_marks", tells_of_marks }, { "begins_at_the_tail", begins_at_the_tail },
	  { "begins_at_the_tail_of_many_files", begins_at_the_tail_of_many_files },
	  { "bounds_a_line_of_the_tail", bounds_a_line_of_the_tail },
	  { "begins_at_a_time", begins_at_a_time },
	  { "begins_at_a_time_of_many_files", begins_at_a_time_of_many_files },
	  { "ends_where_the_log_ended", ends_where_the_log_ended },
	  { "gives_nothing_more_while_paused", gives_nothing_more_while_paused },
	  { "skips_what_is_no_line", skips_what_is_no_line },
	  { "can_be_freed_at_any_time", can_be_freed_at_any_time },
	  { "shares_one_inotify", shares_one_inotify })
