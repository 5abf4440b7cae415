/* SPDX-License-Identifier: Apache-2.0 */
#include "base/process/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "unit.h"

struct thing {
	int8_t small;
	int64_t big;
	uint16_t port;
	bool on;
	char name[8];
	uint8_t raw[4];
	char *text;
	char **words;
	struct buf rest;
	int fd;
	int n_below;
	int below[4];
};

static const struct handover_field fields[] = {
	HANDOVER(1, HANDOVER_INT, struct thing, small),
	HANDOVER(2, HANDOVER_INT, struct thing, big),
	HANDOVER(3, HANDOVER_UINT, struct thing, port, .max = 4096),
	HANDOVER_BOOL(4, struct thing, on),
	HANDOVER(5, HANDOVER_TEXT, struct thing, name),
	HANDOVER(6, HANDOVER_BYTES, struct thing, raw),
	HANDOVER(7, HANDOVER_STR, struct thing, text),
	HANDOVER(8, HANDOVER_STRV, struct thing, words),
	HANDOVER(9, HANDOVER_BUF, struct thing, rest),
	HANDOVER(10, HANDOVER_FD, struct thing, fd),
};

/* What only a newer program knows. */
static const struct handover_field newer[] = {
	HANDOVER(11, HANDOVER_INT, struct thing, n_below),
};

#define THING_INIT                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}

static void thing_done(struct thing *t)
{
	free(t->text);
	strv_free(t->words);
	buf_done(&t->rest);
	t->fd = fd_close(t->fd);
}

static int read_below(void *userdata, uint32_t tag, struct handover_reader *r, struct error *err)
{
	static const struct handover_field one[] = {
		{ .tag = 1, .kind = HANDOVER_INT, .size = sizeof(int), .name = "below" }
	};
	struct thing *t = userdata;

	if (tag != HANDOVER_NESTED || t->n_below == 4)
		return -ENOENT;
	return handover_read(r, "below", one, 1, &t->below[t->n_below++], NULL, NULL, err);
}

static int read_thing(const struct handover_writer *w, bool trial, struct thing *t,
		      struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = handover_seal(w, err);
	struct handover_reader r;
	int ret;

	ret = fd < 0 ? fd : handover_open(fd, trial, &b, &r, err);
	if (ret < 0)
		return ret;
	return handover_read(&r, "thing", fields, ARRAY_SIZE(fields), t, read_below, t, err);
}

/* One that stays open over an exec. */
static int open_kept(void)
{
	return open("/dev/null", O_RDONLY);
}

static void goes_over_whole(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	char *words[] = { (char[]){ "one" }, (char[]){ "" }, (char[]){ "three" }, NULL };
	char text[] = "a text";
	struct thing from = { .small = -3,
			      .big = INT64_MIN,
			      .port = 4096,
			      .on = true,
			      .name = "1234567",
			      .raw = { 1, 0, 255, 4 },
			      .text = text,
			      .words = words,
			      .fd = open_kept() };
	struct thing to = THING_INIT;
	struct error err = ERROR_INIT;
	size_t at;

	CHECK_INT(buf_add(&from.rest, "x\0y", 3), 0);
	CHECK_INT(handover_write(&w, fields, ARRAY_SIZE(fields), &from), 0);
	for (int i = 1; i <= 2; i++) {
		static const struct handover_field one[] = {
			{ .tag = 1, .kind = HANDOVER_INT, .size = sizeof(int), .name = "below" }
		};

		CHECK_INT(handover_begin(&w, HANDOVER_NESTED, &at), 0);
		CHECK_INT(handover_write(&w, one, 1, &i), 0);
		handover_end(&w, at);
	}
	CHECK_INT(w.n_fds, 1);
	CHECK_INT(read_thing(&w, false, &to, &err), 0);
	CHECK_STR(err.text, "");
	CHECK(to.small == -3 && to.big == INT64_MIN && to.port == 4096 && to.on);
	CHECK_STR(to.name, "1234567");
	CHECK(memcmp(to.raw, from.raw, 4) == 0);
	CHECK_STR(to.text, "a text");
	CHECK_INT(strv_len(to.words), 3);
	CHECK_STR(to.words[2], "three");
	CHECK(to.rest.len == 3 && memcmp(buf_data(&to.rest), "x\0y", 3) == 0);
	CHECK_INT(to.fd, from.fd);
	CHECK_INT(fcntl(to.fd, F_GETFD), FD_CLOEXEC);
	CHECK_INT(to.n_below, 2);
	CHECK_INT(to.below[1], 2);
	thing_done(&to);
	buf_done(&from.rest);
}

static void leaves_out_what_is_nothing(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct thing from = THING_INIT, to = THING_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(handover_write(&w, fields, 5, &from), 0);
	CHECK_INT(handover_write(&w, fields + 6, 4, &from), 0);
	CHECK_INT(handover_write(&w, newer, 1, &from), 0);
	CHECK_INT(w.data.len, 0);
	CHECK_INT(read_thing(&w, false, &to, &err), 0);
	CHECK_INT(to.fd, -1);
	CHECK(!to.text && !to.words);
}

static void refuses_what_is_newer(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct thing from = { .fd = -1, .n_below = 7 }, to = THING_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(handover_write(&w, newer, 1, &from), 0);
	CHECK(read_thing(&w, false, &to, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
	CHECK_STR(error_text(&err),
		  "state: thing has a field with number 11, which this program does not know");
}

static void refuse_number(uint32_t tag, uint64_t n)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct {
		uint64_t n;
	} from = { n };
	struct handover_field f = { .tag = tag, .kind = HANDOVER_UINT, .size = 8, .name = "n" };
	struct thing to = THING_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(handover_write(&w, &f, 1, &from), 0);
	CHECK(read_thing(&w, false, &to, &err) < 0);
	CHECK(err.text[0] != '\0');
	thing_done(&to);
}

static void refuses_what_is_out_of_range(void)
{
	int own = open("/dev/null", O_RDONLY | O_CLOEXEC);

	refuse_number(1, 128);
	refuse_number(3, 4097);
	refuse_number(3, 65536);
	refuse_number(4, 2);
	/* stdio, one that is closed, one that this program has opened itself, none at all. */
	refuse_number(10, 2);
	refuse_number(10, 1000000);
	refuse_number(10, (uint64_t)own);
	refuse_number(10, UINT64_MAX);
	/* Not a number. */
	refuse_number(6, 1);
	refuse_number(8, UINT64_MAX);
	(void)fd_close(own);
}

static void refuses_a_field_twice(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct thing from = { .on = true, .fd = -1 }, to = THING_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(handover_write(&w, fields + 3, 1, &from), 0);
	CHECK_INT(handover_write(&w, fields + 3, 1, &from), 0);
	CHECK(read_thing(&w, false, &to, &err) < 0);
	CHECK_STR(error_text(&err), "state: thing has two of on");
}

/* A descriptor that is named twice would be closed twice. */
static void refuses_a_descriptor_twice(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct handover_field other = HANDOVER(11, HANDOVER_FD, struct thing, n_below);
	const struct handover_field both[] = { fields[9], other };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct thing from = { .fd = open_kept() }, to = { .fd = -1, .n_below = -1 };
	struct error err = ERROR_INIT;
	struct handover_reader r;
	int fd;

	from.n_below = from.fd;
	CHECK_INT(handover_write(&w, both, 2, &from), 0);
	fd = handover_seal(&w, &err);
	CHECK_INT(handover_open(fd, false, &b, &r, &err), 0);
	CHECK(handover_read(&r, "thing", both, 2, &to, NULL, NULL, &err) < 0);
	CHECK_INT(to.n_below, -1);
	thing_done(&to);
	(void)fd_close(fd);
}

static void a_trial_touches_no_descriptor(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct thing from = { .fd = 900 }, to = THING_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(handover_write(&w, fields + 9, 1, &from), 0);
	CHECK_INT(read_thing(&w, true, &to, &err), 0);
	CHECK_INT(to.fd, -1);
}

/* Cut at every byte, and every byte another one: an answer, and nothing that a sanitizer sees. */
static void survives_any_bytes(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	char *words[] = { (char[]){ "one" }, (char[]){ "two" }, NULL };
	struct thing from = { .small = 1, .name = "abc", .words = words, .fd = -1 };
	size_t at;

	CHECK_INT(handover_begin(&w, HANDOVER_NESTED, &at), 0);
	CHECK_INT(handover_write(&w, fields, 1, &from), 0);
	handover_end(&w, at);
	CHECK_INT(handover_write(&w, fields, ARRAY_SIZE(fields), &from), 0);
	for (size_t i = 0; i < w.data.len; i++) {
		for (int change = 0; change < 256; change += 5) {
			struct handover_reader r = { .len = change ? w.data.len : i,
						     .trial = true };
			uint8_t *copy = malloc(w.data.len);
			struct error err = ERROR_INIT;
			struct thing to = THING_INIT;

			memcpy(copy, buf_data(&w.data), w.data.len);
			copy[i] ^= (uint8_t)change;
			r.data = copy;
			(void)handover_read(&r, "thing", fields, ARRAY_SIZE(fields), &to,
					    read_below, &to, &err);
			thing_done(&to);
			free(copy);
		}
	}
}

static void wants_a_sealed_memfd_of_its_form(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_(buf_done) struct buf again = BUF_INIT;
	_cleanup_fd_ int pipe_like = open("/dev/null", O_RDWR | O_CLOEXEC);
	struct error err = ERROR_INIT;
	struct handover_reader r;
	_cleanup_fd_ int fd = handover_seal(&w, &err);

	CHECK(handover_open(pipe_like, false, &b, &r, &err) < 0);
	CHECK_INT(handover_open(fd, false, &again, &r, &err), 0);
	CHECK_INT(r.len, 0);
	CHECK(pwrite(fd, "x", 1, 0) < 0 && errno == EPERM);
	CHECK(ftruncate(fd, 1) < 0 && errno == EPERM);
}

static int read_full(const struct handover_writer *w, const struct handover_field *table,
		     int *numbers, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_fd_ int fd = handover_seal(w, err);
	struct handover_reader r;

	if (fd < 0)
		return fd;
	return handover_open(fd, false, &b, &r, err) < 0
		       ? -1
		       : handover_read(&r, "a full table", table, HANDOVER_FIELDS_MAX, numbers,
				       NULL, NULL, err);
}

static void has_room_for_each_tag(void)
{
	_cleanup_(handover_writer_done) struct handover_writer w = HANDOVER_WRITER_INIT;
	struct handover_field table[HANDOVER_FIELDS_MAX];
	int from[HANDOVER_FIELDS_MAX], to[HANDOVER_FIELDS_MAX] = { 0 };
	struct error err = ERROR_INIT;

	for (unsigned i = 0; i < HANDOVER_FIELDS_MAX; i++) {
		from[i] = (int)i + 1;
		table[i] = (struct handover_field){ .tag = i + 1,
						    .kind = HANDOVER_INT,
						    .offset = i * sizeof(int),
						    .size = sizeof(int),
						    .name = "number" };
	}
	CHECK_INT(handover_write(&w, table, HANDOVER_FIELDS_MAX, from), 0);
	CHECK_INT(read_full(&w, table, to, &err), 0);
	CHECK(memcmp(from, to, sizeof(from)) == 0);
	CHECK_INT(handover_write(&w, &table[HANDOVER_FIELDS_MAX - 1], 1, from), 0);
	CHECK(read_full(&w, table, to, &err) < 0);
	CHECK_STR(err.text, "state: a full table has two of number");
}

UNIT_MAIN({ "goes over whole", goes_over_whole },
	  { "has room for each tag", has_room_for_each_tag },
	  { "leaves out what is nothing", leaves_out_what_is_nothing },
	  { "refuses what is newer", refuses_what_is_newer },
	  { "refuses what is out of range", refuses_what_is_out_of_range },
	  { "refuses a field twice", refuses_a_field_twice },
	  { "refuses a descriptor twice", refuses_a_descriptor_twice },
	  { "a trial touches no descriptor", a_trial_touches_no_descriptor },
	  { "survives any bytes", survives_any_bytes },
	  { "wants a sealed memfd of its form", wants_a_sealed_memfd_of_its_form })
