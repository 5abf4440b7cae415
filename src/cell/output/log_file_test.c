/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static char dir[] = "/tmp/nacre-log-file-XXXXXX";
static int dir_fd = -1;
static struct log_file f;
static uint64_t written; /* what the container wrote */

static void begin(uint64_t max_bytes, uint32_t max_files)
{
	struct log_policy policy = { .max_bytes = max_bytes, .max_files = max_files };
	int fd;

	(void)str_copy(dir, sizeof(dir), "/tmp/nacre-log-file-XXXXXX");
	CHECK(mkdtemp(dir) != NULL);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	fd = openat(dir_fd, "main.log", O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
	CHECK(fd >= 0);
	log_file_init(&f, fd, fd_copy(dir_fd), "main", &policy);
	written = 0;
}

static void end(void)
{
	log_file_done(&f);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(scratch_remove(dir), 0);
}

static int put(const void *data, size_t len)
{
	_cleanup_(buf_done) struct buf lines = BUF_INIT;
	size_t n;

	CHECK_INT(crilog_encode(&lines, NSEC_PER_SEC, CRILOG_STDOUT, data, len), 0);
	written += len;
	return log_file_write(&f, buf_data(&lines), lines.len, written, &n);
}

static off_t size_of(const char *name)
{
	struct stat st;

	return fstatat(dir_fd, name, &st, 0) == 0 ? st.st_size : -1;
}

/* What the file holds, without the mark at its head, which is checked. */
static void read_back(const char *name, uint64_t number, struct buf *ret, uint64_t *ret_at)
{
	_cleanup_(buf_done) struct buf raw = BUF_INIT;
	const uint8_t *p, *stop;

	*ret_at = 0;
	CHECK_INT(fd_read_file(dir_fd, name, (size_t)1 << 24, &raw), 0);
	for (p = buf_data(&raw), stop = p + raw.len; p < stop;) {
		const uint8_t *feed = memchr(p, '\n', (size_t)(stop - p));
		struct crilog_record record;

		CHECK(feed != NULL);
		CHECK_INT(crilog_parse(&record, p, (size_t)(feed - p) + 1), 0);
		if (record.mark == CRILOG_MARK_FILE) {
			CHECK(p == buf_data(&raw));
			CHECK_INT(record.file, number);
			*ret_at = record.number;
		}
		CHECK_INT(buf_add(ret, record.data, record.len), 0);
		p = feed + 1;
	}
}

static void rotates_at_a_line(void)
{
	static const char *const names[] = { "main.log.2", "main.log.1", "main.log" };
	_cleanup_(buf_done) struct buf back = BUF_INIT;
	uint64_t at, first = 0;
	char line[64];
	int n = 0;

	begin(65536, 3);
	/* A hundred lines to a write, so that a new file begins within one. */
	for (int i = 0; i < 150; i++) {
		_cleanup_(buf_done) struct buf text = BUF_INIT;

		for (int k = 0; k < 100; k++) {
			(void)str_printf(line, sizeof(line), "line %d\n", n++);
			CHECK_INT(buf_add_str(&text, line), 0);
		}
		CHECK_INT(put(buf_data(&text), text.len), 0);
	}
	CHECK(f.number >= 4);
	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		off_t size = size_of(names[i]);

		/* It is full to the line, but for the last. */
		CHECK(size <= 65536 && size > (i == 2 ? 0 : 65536 - 128));
		read_back(names[i], f.number - 2 + i, &back, &at);
		if (i == 0)
			first = at;
	}
	CHECK_INT(size_of("main.log.3"), -1);
	CHECK_INT(size_of("main.log.new"), -1);
	/* The three are the end of what was written, without a gap. */
	CHECK_INT(first + back.len, written);
	CHECK(memcmp(buf_data(&back) + back.len - strlen(line), line, strlen(line)) == 0);
	end();
}

static void keeps_one_file(void)
{
	static char line[16384];

	memset(line, 'x', sizeof(line));
	begin(65536, 1);
	for (int i = 0; i < 40; i++)
		CHECK_INT(put(line, sizeof(line)), 0);
	CHECK(size_of("main.log") > 0 && size_of("main.log") <= 65536);
	CHECK_INT(size_of("main.log.1"), -1);
	CHECK(f.number >= 10);
	end();
}

static void never_rotates_where_it_must_not(void)
{
	static char line[16384];

	memset(line, 'x', sizeof(line));
	begin(0, 0);
	for (int i = 0; i < 40; i++)
		CHECK_INT(put(line, sizeof(line)), 0);
	CHECK(size_of("main.log") > 40 * 16384);
	CHECK_INT(f.number, 0);
	end();
}

/* A new file that cannot be made, or names that cannot be changed: what was written stays, and the
 * next try goes on. A name that is in the way is no hindrance. */
static void goes_on_after_a_failure(void)
{
	static char line[16384];
	_cleanup_(buf_done) struct buf back = BUF_INIT;
	struct log_file broken;
	uint64_t at;
	int n_failed = 0;

	memset(line, 'x', sizeof(line));
	line[sizeof(line) - 1] = '\n';
	begin(65536, 4);
	for (int i = 0; i < 3; i++)
		CHECK_INT(put(line, sizeof(line)), 0);
	/* The directory is no directory. */
	broken = f;
	f.dir_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	CHECK_INT(put(line, sizeof(line)), -ENOTDIR);
	written -= sizeof(line);
	(void)fd_close(f.dir_fd);
	f.dir_fd = broken.dir_fd;
	/* A directory with a file in it has the name. */
	CHECK_INT(mkdirat(dir_fd, "main.log.1", 0700), 0);
	CHECK_INT(mkdirat(dir_fd, "main.log.1/x", 0700), 0);
	for (int i = 0; i < 2; i++) {
		n_failed += put(line, sizeof(line)) < 0;
		written -= sizeof(line);
	}
	CHECK_INT(n_failed, 2);
	CHECK_INT(size_of("main.log.new"), -1);
	CHECK_INT(rootfd_remove_tree(dir_fd, "main.log.1"), 0);
	CHECK_INT(close(openat(dir_fd, "main.log.new", O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
	CHECK_INT(put(line, sizeof(line)), 0);
	CHECK_INT(f.number, 1);
	read_back("main.log", 1, &back, &at);
	CHECK_INT(at, 3 * sizeof(line));
	CHECK_INT(back.len, sizeof(line));
	end();
}

UNIT_MAIN({ "rotates_at_a_line", rotates_at_a_line }, { "keeps_one_file", keeps_one_file },
	  { "never_rotates_where_it_must_not", never_rotates_where_it_must_not },
	  { "goes_on_after_a_failure", goes_on_after_a_failure })
