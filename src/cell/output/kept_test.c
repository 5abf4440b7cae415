/* SPDX-License-Identifier: Apache-2.0 */

/* Logs that are kept until they are taken, of real containers. */

#include "cell/output/kept.h"

#include <errno.h>
#include <string.h>

#include "base/memory/buf.h"
#include "base/process/handover.h"
#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "wire/format/crilog.h"

/* More than is kept. */
#define FLOOD "i=0; while [ $i -lt 400 ]; do printf %04096d $i; echo; i=$((i+1)); done"
#define FLOOD_BYTES (400ULL * 4097)

static struct bed bed;

/* ---- the reader ---- */

static struct {
	struct keeper_log *log;
	struct buf text; /* of stdout and stderr together */
	uint64_t next;   /* place of what is told next */
	uint64_t eof, lost;
	unsigned n_lines, n_eofs, n_ends, n_gaps;
	bool takes; /* at once */
	struct error err;
} reader;

static void on_lines(void *userdata, uint64_t at, const void *lines, size_t len)
{
	const uint8_t *p = lines, *end = p + len;
	struct crilog_record record;

	CHECK(len > 0 && len <= KEEPER_LOG_MAX && end[-1] == '\n');
	reader.n_gaps += at != reader.next;
	reader.next = at + crilog_count(lines, len);
	reader.n_lines++;
	while (p < end) {
		const uint8_t *feed = memchr(p, '\n', (size_t)(end - p));

		CHECK_INT(crilog_parse(&record, p, (size_t)(feed - p) + 1), 0);
		CHECK_INT(buf_add(&reader.text, record.data, record.len), 0);
		reader.lost += record.mark == CRILOG_MARK_LOST ? record.number : 0;
		p = feed + 1;
	}
	if (reader.takes)
		CHECK_INT(kept_take(reader.log, reader.next, NULL), 0);
}

static void on_eof(void *userdata, uint64_t at)
{
	reader.n_eofs++;
	reader.eof = at;
}

static void on_end(void *userdata, const struct error *err)
{
	reader.n_ends++;
	reader.log = NULL;
	reader.err = err ? *err : (struct error)ERROR_INIT;
}

static const struct keeper_log_ops ops = {
	.on_lines = on_lines,
	.on_eof = on_eof,
	.on_end = on_end,
};

static int read_log(int n, uint64_t from, struct error *err)
{
	buf_done(&reader.text);
	memset(&reader, 0, sizeof(reader));
	reader.next = from;
	return keeper_log_open(bed.keeper, bed_id(n), from, &ops, NULL, &reader.log, err);
}

static bool text_is(const char *text)
{
	return reader.text.len == strlen(text) &&
	       (reader.text.len == 0 || memcmp(buf_data(&reader.text), text, reader.text.len) == 0);
}

static int start(const char *script)
{
	struct error err = ERROR_INIT;
	int n = bed_start(&bed, &(struct bed_start){ .script = script, .keep_log = true }, &err);

	CHECK(n >= 0);
	return n;
}

static enum container_state state_of(int n)
{
	return bed.last[n].state;
}

static void turns(int n)
{
	while (n-- > 0)
		bed_turn(&bed);
}

static void end(void)
{
	bed_close(&bed);
	buf_done(&reader.text);
}

/* ---- the tests ---- */

static void the_end_waits_until_all_is_taken(void)
{
	int n;

	bed_open(&bed);
	n = start("echo one; echo two >&2; printf three");
	if (n >= 0) {
		BED_UNTIL(&bed, state_of(n) == CONTAINER_DRAINING);
		turns(20);
		CHECK_INT(state_of(n), CONTAINER_DRAINING);
		CHECK_INT(read_log(n, 0, NULL), 0);
		BED_UNTIL(&bed, reader.n_eofs == 1);
		CHECK(reader.text.len == 13 && reader.next == 13 && reader.eof == 13);
		turns(20);
		CHECK_INT(state_of(n), CONTAINER_DRAINING);
		CHECK_INT(keeper_remove(bed.keeper, bed_id(n), NULL) < 0, 1);
		CHECK(kept_take(reader.log, 14, NULL) == -EINVAL);
		CHECK(kept_take(reader.log, 2, NULL) == -EINVAL);
		CHECK_INT(kept_take(reader.log, 13, NULL), 0);
		BED_UNTIL(&bed, reader.n_ends == 1);
		CHECK_INT(reader.err.code, 0);
		CHECK_INT(bed_wait(&bed, n)->log_lost, 0);
		CHECK_INT(state_of(n), CONTAINER_EXITED);
	}
	end();
}

static void what_is_not_taken_stays(void)
{
	int n;

	bed_open(&bed);
	n = start("echo one; read x; echo two; sleep 100");
	if (n >= 0) {
		CHECK_INT(read_log(n, 0, NULL), 0);
		BED_UNTIL(&bed, reader.text.len == 8);
		CHECK(text_is("one\ntwo\n"));
		/* A later reader ends the earlier one, which had taken nothing. */
		CHECK_INT(read_log(n, 0, NULL), 0);
		CHECK(reader.n_ends == 1 && reader.err.kind == ERROR_ABORTED);
		BED_UNTIL(&bed, reader.text.len == 8);
		CHECK_INT(kept_take(reader.log, 4, NULL), 0);
		kept_close(reader.log);
		CHECK_INT(read_log(n, 0, NULL), 0);
		BED_UNTIL(&bed, reader.text.len == 4);
		CHECK(text_is("two\n") && reader.n_gaps == 1);
		kept_close(reader.log);
		CHECK_INT(read_log(n, 8, NULL), 0);
		turns(5);
		CHECK(reader.text.len == 0);
		CHECK_INT(read_log(n, 9, NULL), -EINVAL);
		CHECK_INT(read_log(n, 8, NULL), 0);
	}
	end();
}

static void a_full_log_holds_the_program_up(void)
{
	int n;

	bed_open(&bed);
	n = start(FLOOD);
	if (n >= 0) {
		turns(300);
		CHECK_INT(state_of(n), CONTAINER_RUNNING);
		CHECK_INT(read_log(n, 0, NULL), 0);
		reader.takes = true;
		BED_UNTIL(&bed, reader.n_ends == 1);
		CHECK(reader.eof == FLOOD_BYTES && reader.text.len == FLOOD_BYTES);
		CHECK(reader.n_gaps == 0 && reader.lost == 0);
		CHECK_INT(bed_wait(&bed, n)->log_lost, 0);
	}
	end();
}

static void a_policy_may_drop(nsec_t block_for, bool drop)
{
	struct error err = ERROR_INIT;
	uint64_t lost;
	int n;

	bed_open(&bed);
	n = bed_start(&bed,
		      &(struct bed_start){ .script = FLOOD,
					   .keep_log = true,
					   .log = { .drop = drop, .block_for = block_for } },
		      &err);
	if (n >= 0) {
		BED_UNTIL(&bed, state_of(n) == CONTAINER_DRAINING);
		BED_UNTIL(&bed, bed.last[n].log_lost > 0);
		CHECK_INT(read_log(n, 0, NULL), 0);
		reader.takes = true;
		BED_UNTIL(&bed, reader.n_ends == 1);
		lost = bed_wait(&bed, n)->log_lost;
		CHECK(lost > 0 && reader.lost == lost && reader.n_gaps == 0);
		CHECK(reader.eof == FLOOD_BYTES && reader.text.len + lost == FLOOD_BYTES);
		CHECK(strstr(bed.last[n].reason, "are lost") != NULL);
	}
	end();
}

static void a_policy_may_drop_at_once(void)
{
	a_policy_may_drop(0, true);
}

static void a_policy_may_drop_after_a_time(void)
{
	a_policy_may_drop(100 * NSEC_PER_MSEC, false);
}

static void removed(void *userdata)
{
	*(bool *)userdata = true;
}

static void a_removal_waits_for_no_reader(void)
{
	bool gone = false;
	int n;

	bed_open(&bed);
	n = start("echo lost; sleep 100");
	if (n >= 0) {
		bed_wait_running(&bed, n);
		keeper_remove_cell(bed.keeper, "c", removed, &gone);
		BED_UNTIL(&bed, gone);
		CHECK(gone);
	}
	end();
}

static void a_removal_waits_for_a_reader_for_a_moment(void)
{
	bool gone = false;
	int n;

	bed_open(&bed);
	n = start("echo kept; sleep 100");
	if (n >= 0) {
		CHECK_INT(read_log(n, 0, NULL), 0);
		BED_UNTIL(&bed, reader.n_lines == 1);
		keeper_remove_cell(bed.keeper, "c", removed, &gone);
		BED_UNTIL(&bed, reader.n_eofs == 1);
		CHECK(!gone && text_is("kept\n"));
		CHECK_INT(kept_take(reader.log, 5, NULL), 0);
		BED_UNTIL(&bed, gone);
		CHECK(gone && reader.n_ends == 1);
		CHECK_INT(bed.last[n].log_lost, 0);
	}
	end();
}

static void other_logs_are_not_kept(void)
{
	struct error err = ERROR_INIT;
	int n;

	bed_open(&bed);
	n = bed_start(&bed, &(struct bed_start){ .script = "echo x" }, &err);
	if (n >= 0) {
		(void)bed_wait(&bed, n);
		CHECK(read_log(n, 0, &err) < 0 && err.kind == ERROR_PRECONDITION);
		CHECK_INT(read_log(99, 0, &err) < 0, 1);
		CHECK_INT(err.kind, ERROR_NOT_FOUND);
	}
	end();
}

static void an_ended_one_has_its_end_alone(void)
{
	int n;

	bed_open(&bed);
	n = start("echo x");
	if (n >= 0) {
		CHECK_INT(read_log(n, 0, NULL), 0);
		reader.takes = true;
		(void)bed_wait(&bed, n);
		BED_UNTIL(&bed, reader.n_ends == 1);
		CHECK_INT(read_log(n, 2, NULL), 0);
		BED_UNTIL(&bed, reader.n_ends == 1);
		CHECK(reader.eof == 2 && reader.n_lines == 0 && reader.err.code == 0);
	}
	end();
}

BED_MAIN({ "the end waits until all is taken", the_end_waits_until_all_is_taken },
	 { "what is not taken stays", what_is_not_taken_stays },
	 { "a full log holds the program up", a_full_log_holds_the_program_up },
	 { "a policy may drop at once", a_policy_may_drop_at_once },
	 { "a policy may drop after a time", a_policy_may_drop_after_a_time },
	 { "a removal waits for no reader", a_removal_waits_for_no_reader },
	 { "a removal waits for a reader for a moment", a_removal_waits_for_a_reader_for_a_moment },
	 { "other logs are not kept", other_logs_are_not_kept },
	 { "an ended one has its end alone", an_ended_one_has_its_end_alone })
