/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/output/input.h"

#include <fcntl.h>
#include <unistd.h>

#include "unit.h"

static int n_done;
static struct error last;

static void done(void *userdata, const struct error *err)
{
	n_done++;
	last = err ? *err : (struct error)ERROR_INIT;
}

/* The reader is still there, but its container is not: somebody else may hold the pipe. */
static void ends_with_a_write_in_hand(void)
{
	static const char big[200000];
	struct loop *l = NULL;
	struct input in;
	int ends[2];

	n_done = 0;
	CHECK_INT(loop_new(&l), 0);
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	input_init(&in, l);
	CHECK_INT(input_start(&in, ends[1]), 0);
	CHECK_INT(input_write(&in, big, sizeof(big), false, done, NULL, NULL), 0);
	loop_turn(l, true);
	CHECK_INT(n_done, 0);
	input_end(&in);
	CHECK_INT(n_done, 1);
	CHECK_INT(last.kind, ERROR_PRECONDITION);
	CHECK(input_write(&in, "x", 1, false, done, NULL, NULL) < 0);
	input_end(&in);
	CHECK_INT(n_done, 1);
	input_done(&in);
	(void)close(ends[0]);
	loop_free(l);
}

static void empty_write_closes(void)
{
	struct loop *l = NULL;
	struct input in;
	int ends[2];
	char c;

	n_done = 0;
	CHECK_INT(loop_new(&l), 0);
	CHECK_INT(pipe2(ends, O_CLOEXEC), 0);
	input_init(&in, l);
	CHECK_INT(input_start(&in, ends[1]), 0);
	CHECK_INT(input_write(&in, NULL, 0, true, done, NULL, NULL), 0);
	CHECK_INT(n_done, 0);
	loop_turn(l, true);
	CHECK_INT(n_done, 1);
	CHECK_INT(last.code, 0);
	CHECK_INT(read(ends[0], &c, 1), 0);
	input_done(&in);
	(void)close(ends[0]);
	loop_free(l);
}

UNIT_MAIN({ "ends with a write in hand", ends_with_a_write_in_hand },
	  { "an empty write closes", empty_write_closes })
