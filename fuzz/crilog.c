/* SPDX-License-Identifier: Apache-2.0 */

/* Lines of logs. The input is read as a file; and it is written as a container's output, which must
 * come back. */

#include "base/memory/buf.h"
#include "fuzz.h"
#include "wire/format/crilog.h"

/* The output that the whole lines of a file stand for; the number of lines that are none. */
static unsigned read_file(struct fuzz_input file, struct buf *to)
{
	struct crilog_record record;
	unsigned n_bad = 0;

	while (file.len > 0 && memchr(file.at, '\n', file.len)) {
		const uint8_t *line = file.at;
		size_t len = fuzz_until(&file, '\n').len + 1;

		if (crilog_parse(&record, line, len) < 0) {
			n_bad++;
			continue;
		}
		fuzz_need(record.mark == CRILOG_NO_MARK || record.len == 0);
		if (record.len == 0)
			continue;
		fuzz_need(record.data > line && record.data + record.len <= line + len);
		fuzz_need(buf_add(to, record.data, record.len) == 0);
	}
	return n_bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct buf seen = BUF_INIT, lines = BUF_INIT, back = BUF_INIT;
	uint64_t n;

	(void)read_file(in, &seen);
	n = crilog_count(in.at, in.len);
	fuzz_need(n >= seen.len || memmem(in.at, in.len, "P:lost=", 7) != NULL);
	buf_done(&seen);
	fuzz_need(crilog_encode(&lines, 5, CRILOG_STDERR, in.at, in.len) == 0);
	in = (struct fuzz_input){ buf_data(&lines), lines.len };
	fuzz_need(crilog_count(in.at, in.len) == size);
	fuzz_need(read_file(in, &back) == 0 && back.len == size);
	fuzz_need(size == 0 || memcmp(buf_data(&back), data, size) == 0);
	buf_done(&lines);
	buf_done(&back);
	return 0;
}
