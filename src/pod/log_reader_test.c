/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/log_reader.h"

#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "unit.h"
#include "wire/crilog.h"

struct bed {
	struct loop *loop;
	struct pool *pool;
	struct buf out[2];
	struct log_reader *reader;
	int write_fd;
	bool ended, pause_on_data;
	unsigned n_data;
	char path[64];
};

static void on_data(void *userdata, int stream, uint64_t time, const void *data, size_t len)
{
	struct bed *b = userdata;

	CHECK(time > 0);
	b->n_data++;
	CHECK_INT(buf_add(&b->out[stream - 1], data, len), 0);
	if (b->pause_on_data)
		log_reader_pause(b->reader, true);
}

static void on_end(void *userdata, const struct error *err)
{
	struct bed *b = userdata;

	CHECK(err == NULL);
	b->ended = true;
}

static const struct log_reader_ops ops = { .on_data = on_data, .on_end = on_end };

static void bed_open(struct bed *b, bool follow)
{
	int fd;

	*b = (struct bed){ .write_fd = -1 };
	(void)snprintf(b->path, sizeof(b->path), "/tmp/nacre-log-test-XXXXXX");
	b->write_fd = mkstemp(b->path);
	CHECK(b->write_fd >= 0);
	CHECK_INT(loop_new(&b->loop), 0);
	CHECK_INT(pool_new(&b->pool, b->loop, 2), 0);
	fd = open(b->path, O_RDONLY | O_CLOEXEC);
	CHECK_INT(log_reader_new(&b->reader, b->loop, b->pool, fd, follow, &ops, b), 0);
	CHECK_INT(b->n_data, 0);
}

static void bed_close(struct bed *b)
{
	b->reader = log_reader_free(b->reader);
	b->pool = pool_free(b->pool);
	b->loop = loop_free(b->loop);
	(void)unlink(b->path);
	b->write_fd = fd_close(b->write_fd);
	buf_done(&b->out[0]);
	buf_done(&b->out[1]);
}

static void bed_write(struct bed *b, enum crilog_stream stream, const char *data, size_t len)
{
	struct buf line = BUF_INIT;

	CHECK_INT(crilog_encode(&line, clock_real(), stream, data, len), 0);
	CHECK_INT(fd_write_full(b->write_fd, buf_data(&line), line.len), 0);
	buf_done(&line);
}

static bool bed_has(const struct bed *b, int stream, const char *text, size_t len)
{
	return b->out[stream].len == len &&
	       (len == 0 || memcmp(buf_data(&b->out[stream]), text, len) == 0);
}

static void gives_back_every_byte(void)
{
	static const char odd[] = "a\0b\xff\n\n no line feed";
	struct bed b;

	bed_open(&b, false);
	bed_write(&b, CRILOG_STDOUT, odd, sizeof(odd) - 1);
	bed_write(&b, CRILOG_STDERR, "oops\n", 5);
	while (!b.ended)
		loop_turn(b.loop, true);
	CHECK(bed_has(&b, 0, odd, sizeof(odd) - 1));
	CHECK(bed_has(&b, 1, "oops\n", 5));
	bed_close(&b);
}

static void follows_until_it_is_finished(void)
{
	struct bed b;

	bed_open(&b, true);
	bed_write(&b, CRILOG_STDOUT, "one\n", 4);
	while (b.out[0].len < 4)
		loop_turn(b.loop, true);
	bed_write(&b, CRILOG_STDOUT, "two\n", 4);
	while (b.out[0].len < 8)
		loop_turn(b.loop, true);
	CHECK(!b.ended);
	bed_write(&b, CRILOG_STDOUT, "three\n", 6);
	log_reader_finish(b.reader);
	while (!b.ended)
		loop_turn(b.loop, true);
	CHECK(bed_has(&b, 0, "one\ntwo\nthree\n", 14));
	bed_close(&b);
}

static void reads_nothing_more_while_paused(void)
{
	static char block[100 * 1000];
	struct bed b;
	unsigned n;

	memset(block, 'x', sizeof(block));
	bed_open(&b, false);
	b.pause_on_data = true;
	for (int i = 0; i < 10; i++)
		bed_write(&b, CRILOG_STDOUT, block, sizeof(block));
	while (b.n_data == 0)
		loop_turn(b.loop, true);
	/* What was in hand is given; the next piece is not read. */
	n = b.n_data;
	for (int i = 0; i < 20; i++) {
		(void)usleep(1000);
		loop_turn(b.loop, false);
	}
	CHECK_INT(b.n_data, n);
	CHECK(b.out[0].len < 2 * 128 * 1024);
	b.pause_on_data = false;
	log_reader_pause(b.reader, false);
	while (!b.ended)
		loop_turn(b.loop, true);
	CHECK_INT(b.out[0].len, 10 * sizeof(block));
	bed_close(&b);
}

static void can_be_freed_at_any_time(void)
{
	struct bed b;

	bed_open(&b, true);
	bed_write(&b, CRILOG_STDOUT, "one\n", 4);
	loop_turn(b.loop, false);
	b.reader = log_reader_free(b.reader);
	for (int i = 0; i < 20; i++) {
		(void)usleep(1000);
		loop_turn(b.loop, false);
	}
	CHECK_INT(b.n_data, 0);
	bed_close(&b);
}

UNIT_MAIN({ "gives back every byte", gives_back_every_byte },
	  { "follows until it is finished", follows_until_it_is_finished },
	  { "reads nothing more while paused", reads_nothing_more_while_paused },
	  { "can be freed at any time", can_be_freed_at_any_time })
