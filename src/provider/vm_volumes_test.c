/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_volumes.h"

#include "provider/vm_bed_test.h"

static struct {
	unsigned n;
	char text[ERROR_TEXT_MAX];
} put;

static void on_put(void *userdata, const struct error *err)
{
	put.n++;
	(void)str_copy(put.text, sizeof(put.text), err ? err->text : "");
}

static int put_one(struct instance *i, bool read_only, struct error *err)
{
	return instance_put_volume(i, "v0", eventfd(0, EFD_CLOEXEC), read_only, on_put, NULL, err);
}

static void begin(void)
{
	bed_begin();
	memset(&put, 0, sizeof(put));
	bed.volumes = true;
}

static void share_ends(const char *why)
{
	struct error err = ERROR_INIT;

	if (why)
		(void)error_refuse(&err, ERROR_FAULT, "%s", why);
	bed.share.ops->on_end(bed.share.share, why ? &err : NULL);
}

static void share_answers(int r)
{
	struct error err = ERROR_INIT;

	if (r < 0)
		(void)error_set(&err, r, "the volume");
	bed.share.change->done(bed.share.change, r, r < 0 ? &err : NULL);
}

/* The machine's end, with that of its gate and of what serves its volumes. */
static void all_end(void)
{
	bed_machine_ends(VM_END_POWERED_OFF, "it was switched off");
	bed_gate_ends();
	share_ends(NULL);
}

static void a_machine_has_what_it_was_made_with(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;

	begin();
	i = bed_ready(&told);
	CHECK_INT(bed.spec.n_shares, 1);
	CHECK(fake_exists("base/inst.v/share"));
	CHECK_INT(put_one(i, true, &err), 0);
	CHECK_STR(bed.share.name, "v0");
	CHECK(bed.share.read_only);
	CHECK_INT(put.n, 0);
	share_answers(0);
	CHECK(put.n == 1 && !put.text[0]);
	CHECK_INT(put_one(i, false, &err), 0);
	CHECK(!bed.share.read_only);
	share_answers(-EMFILE);
	CHECK(put.n == 2 && strstr(put.text, "the volume"));
	/* Nobody waits until one has left, but the machine's own end. */
	instance_drop_volume(i, "v0");
	CHECK_STR(bed.share.name, "-v0");
	share_answers(1);
	CHECK_INT(put.n, 2);
	instance_stop(i, NULL, NULL);
	all_end();
	fake_turns();
	bed_end();
}

static void one_without_gets_none(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;

	begin();
	bed.volumes = false;
	i = bed_ready(&told);
	CHECK_INT(bed.spec.n_shares, 0);
	CHECK(!fake_exists("base/inst.v/share"));
	CHECK(put_one(i, true, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	bed_end();
}

static void its_end_is_the_machines(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	begin();
	i = bed_ready(&told);
	share_ends("virtiofsd was killed");
	CHECK_INT(bed.n_killed, 0);
	FAKE_UNTIL(bed.n_killed == 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "what serves its volumes has ended: virtiofsd was killed");
	bed_end();
}

/* The machine's end is the cause, and is told, in whatever order they come. */
static void the_machines_end_is_not_its(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	begin();
	i = bed_ready(&told);
	share_ends(NULL);
	bed_machine_ends(VM_END_CRASHED, "the machine crashed");
	bed_gate_ends();
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "the machine crashed");
	CHECK_INT(bed.n_killed, 0);
	bed_end();
}

/* A mount that is on its way is waited for, and told of, when all else is gone. */
static void a_late_answer_finds_who_asked(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;

	begin();
	i = bed_ready(&told);
	CHECK_INT(put_one(i, true, &err), 0);
	instance_stop(i, NULL, NULL);
	all_end();
	fake_turns();
	CHECK(!list_empty(&bed.vms->machines));
	share_answers(-ESRCH);
	CHECK_INT(put.n, 1);
	CHECK(list_empty(&bed.vms->machines));
	bed_end();
}

static void a_start_that_fails_leaves_nothing(void)
{
	struct bed_told told = { .n = 0 };

	begin();
	bed.fail_share = -ENOENT;
	(void)bed_boots(&told);
	CHECK(!bed.vm);
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "start virtiofsd") != NULL);
	bed_gate_ends();
	CHECK(list_empty(&bed.vms->machines));
	bed_end();
}

static void let_go_of_with_the_daemon(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;

	begin();
	CHECK_INT(put_one(bed_ready(&told), true, &err), 0);
	bed_end();
	bed.share = bed_last.share;
	CHECK(bed.share.gone);
	share_answers(0);
	CHECK_INT(put.n, 0);
}

UNIT_MAIN({ "a_machine_has_what_it_was_made_with", a_machine_has_what_it_was_made_with },
	  { "one_without_gets_none", one_without_gets_none },
	  { "its_end_is_the_machines", its_end_is_the_machines },
	  { "the_machines_end_is_not_its", the_machines_end_is_not_its },
	  { "a_late_answer_finds_who_asked", a_late_answer_finds_who_asked },
	  { "a_start_that_fails_leaves_nothing", a_start_that_fails_leaves_nothing },
	  { "let_go_of_with_the_daemon", let_go_of_with_the_daemon })
