/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"

/* A driver whose machines say and end as they are told. */
struct fake {
	struct vm vm;
	const struct vm_events *events;
	void *owner;
	struct loop_defer defer;
	int console_fd;
	struct vm_end end;
};

static struct fake fake;
static const char *fake_says;
static enum vm_end_cause fake_ends;

static const struct vm_driver fake_driver;

static void fake_turn(struct loop_defer *d)
{
	fake.events->on_end(&fake.vm, &fake.end, fake.owner);
}

static void fake_end(enum vm_end_cause cause)
{
	fake.end = (struct vm_end){ .cause = cause };
	(void)str_copy(fake.end.text, sizeof(fake.end.text), vm_end_sentence(cause));
	loop_defer_schedule(&fake.defer);
}

static int fake_start(struct vm **ret, struct loop *l, const struct vm_spec *spec,
		      const struct vm_events *events, void *owner, struct error *err)
{
	fake = (struct fake){ .vm.driver = &fake_driver, .events = events, .owner = owner };
	loop_defer_init(&fake.defer, l, fake_turn);
	fake.console_fd = fd_copy(spec->console_fd);
	if (fake_says)
		CHECK(write(fake.console_fd, fake_says, strlen(fake_says)) > 0);
	if (fake_ends != VM_END_ASKED)
		fake_end(fake_ends);
	*ret = &fake.vm;
	return 0;
}

static void fake_kill(struct vm *vm)
{
	fake_end(VM_END_ASKED);
}

static pid_t fake_pid(const struct vm *vm)
{
	return 0;
}

static struct vm *fake_free(struct vm *vm)
{
	loop_defer_done(&fake.defer);
	fake.console_fd = fd_close(fake.console_fd);
	return NULL;
}

static const struct vm_driver fake_driver = {
	.start = fake_start, .kill = fake_kill, .pid = fake_pid, .free = fake_free
};

static struct probe_record seen;
static bool ended;

static void on_probe(struct probe *p, const struct probe_record *record, void *owner)
{
	seen = *record;
	ended = true;
}

static void tries(const char *says, enum vm_end_cause ends)
{
	struct vm_spec spec;
	const struct probe_trial trial = { .driver = &fake_driver,
					   .machine = &spec,
					   .marker = "@up" };
	struct probe *p = NULL;
	struct loop *l = NULL;

	fake_says = says;
	fake_ends = ends;
	ended = false;
	seen = (struct probe_record){ 0 };
	vm_spec_init(&spec);
	if (loop_new(&l) < 0)
		return;
	if (probe_start(&p, l, &trial, on_probe, NULL, NULL) == 0)
		LOOP_WAIT(l, ended);
	else
		CHECK(false);
	(void)probe_free(p);
	(void)loop_free(l);
}

static void knows_a_guest_by_its_word(void)
{
	tries("quiet\n@up\n", VM_END_ASKED);
	CHECK_INT(seen.verdict, PROBE_WORKS);
	CHECK(str_has_prefix(seen.text, "a guest came up within "));
	tries(NULL, VM_END_POWERED_OFF);
	CHECK_INT(seen.verdict, PROBE_WORKS);
}

static void says_why_none_came_up(void)
{
	tries("PCI: Fatal\n", VM_END_CRASHED);
	CHECK_INT(seen.verdict, PROBE_NO_GUEST);
	CHECK_STR(seen.text, "KVM opens but no guest comes up: the machine's monitor died");
	tries(NULL, VM_END_PANIC);
	CHECK_INT(seen.verdict, PROBE_NO_GUEST);
}

static void ends_in_the_middle(void)
{
	struct vm_spec spec;
	const struct probe_trial trial = { .driver = &fake_driver, .machine = &spec };
	struct probe *p = NULL;
	struct loop *l = NULL;

	fake_says = NULL;
	fake_ends = VM_END_ASKED;
	ended = false;
	vm_spec_init(&spec);
	if (loop_new(&l) < 0)
		return;
	CHECK(probe_start(&p, l, &trial, on_probe, NULL, NULL) == 0);
	(void)probe_free(p);
	loop_turn(l, false);
	CHECK(!ended);
	(void)loop_free(l);
}

static void keeps_a_record_for_this_host(void)
{
	char dir[] = "/tmp/nacre-probe-XXXXXX";
	struct probe_record r = { .verdict = PROBE_NO_GUEST, .text = "a sentence" }, back;
	_cleanup_fd_ int fd = -1, file_fd = -1;
	struct error err = ERROR_INIT;

	CHECK(mkdtemp(dir) != NULL);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	probe_look(&back);
	CHECK(back.verdict == PROBE_UNTRIED || back.verdict == PROBE_NO_DEVICE);
	CHECK(back.text[0]);
	if (back.verdict == PROBE_NO_DEVICE || probe_write(&r, fd, "a guest", &err) < 0) {
		CHECK(back.verdict == PROBE_NO_DEVICE || err.code == -ENOENT);
		(void)scratch_remove(dir);
		SKIP("neither KVM nor QEMU is here");
	}
	probe_read(&back, fd, "another guest");
	CHECK_INT(back.verdict, PROBE_UNTRIED);
	probe_read(&back, fd, NULL);
	CHECK_INT(back.verdict, PROBE_NO_GUEST);
	probe_read(&back, fd, "a guest");
	CHECK_INT(back.verdict, PROBE_NO_GUEST);
	CHECK_STR(back.text, "a sentence");
	/* Of another kernel. */
	file_fd = openat(fd, "virtualization", O_WRONLY | O_CLOEXEC);
	CHECK(file_fd >= 0 && write(file_fd, "x", 1) == 1);
	probe_read(&back, fd, "a guest");
	CHECK_INT(back.verdict, PROBE_UNTRIED);
	CHECK(ftruncate(file_fd, 3) == 0);
	probe_read(&back, fd, "a guest");
	CHECK_INT(back.verdict, PROBE_UNTRIED);
	CHECK(scratch_remove(dir) == 0);
}

UNIT_MAIN({ "knows a guest by its word", knows_a_guest_by_its_word },
	  { "says why none came up", says_why_none_came_up },
	  { "ends in the middle", ends_in_the_middle },
	  { "keeps a record for this host", keeps_a_record_for_this_host })
