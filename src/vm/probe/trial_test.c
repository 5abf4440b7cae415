/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/probe/trial.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"
#include "vm/guest/guest_set.h"
#include "wire/message/bootmsg.h"

/*
 * On a driver whose machines end as they are told, with a set and a record that are here and not on
 * a disk. What probe.c makes of a machine's end is in probe_test.c.
 */

static struct {
	struct loop *loop;
	char dir[32];
	int dir_fd;
	struct trial *trial;
	/* How the host is. */
	enum probe_verdict device;
	bool no_set, no_qemu, fails_to_start;
	off_t set_size;
	/* What was done. */
	unsigned n_started, n_killed, n_written;
	struct vm_spec spec;
	char port[VM_NAME_MAX + 1];
	enum bootmsg_type hello;
	/* The record. */
	struct probe_record record;
	char of[PROBE_OF_MAX + 1];
} bed;

static struct {
	struct vm vm;
	const struct vm_events *events;
	void *owner;
	struct loop_defer defer;
	struct vm_end end;
} fake;

/* ---- what stands in for the others ---- */

void probe_look(struct probe_record *ret)
{
	*ret = (struct probe_record){ .verdict = bed.device };
	(void)str_copy(ret->text, sizeof(ret->text), "looked at");
}

void probe_read(struct probe_record *ret, int root_fd, const char *of)
{
	if (bed.n_written && str_eq(of, bed.of))
		*ret = bed.record;
}

int probe_write(const struct probe_record *record, int root_fd, const char *of, struct error *err)
{
	bed.n_written++;
	bed.record = *record;
	return str_copy(bed.of, sizeof(bed.of), of);
}

int guest_set_open(struct guest_set *ret, int root_fd, const char *name, struct error *err)
{
	CHECK_STR(name, "small");
	if (bed.no_set)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no guest set \"small\"");
	*ret = (struct guest_set){ .kernel_fd = memfd_create("kernel", MFD_CLOEXEC),
				   .initrd_fd = memfd_create("initrd", MFD_CLOEXEC),
				   .info = { .name = "small",
					     .desc = { .memory_mib = 96, .words = "quiet a=b" } } };
	CHECK_INT(ftruncate(ret->kernel_fd, bed.set_size), 0);
	return 0;
}

void guest_set_done(struct guest_set *s)
{
	s->kernel_fd = fd_close(s->kernel_fd);
	s->initrd_fd = fd_close(s->initrd_fd);
}

static const struct vm_driver fake_driver;

static void fake_turn(struct loop_defer *d)
{
	fake.events->on_end(&fake.vm, &fake.end, fake.owner);
}

static void fake_ends(enum vm_end_cause cause)
{
	fake.end = (struct vm_end){ .cause = cause };
	(void)str_copy(fake.end.text, sizeof(fake.end.text), vm_end_sentence(cause));
	loop_defer_schedule(&fake.defer);
}

static int fake_check(struct error *err)
{
	return bed.no_qemu ? error_refuse(err, ERROR_PRECONDITION, "there is no QEMU") : 0;
}

static int fake_start(struct vm **ret, struct loop *l, const struct vm_spec *spec,
		      const struct vm_events *events, void *owner, struct error *err)
{
	uint8_t frame[64];
	struct bootmsg m;
	ssize_t n;

	CHECK_INT(vm_spec_check(spec, err), 0);
	if (bed.fails_to_start)
		return error_set(err, -ENOMEM, "start a machine");
	bed.n_started++;
	bed.spec = *spec;
	CHECK_STR(spec->words[1], "a=b");
	(void)str_copy(bed.port, sizeof(bed.port), spec->ports[0].name);
	n = read(spec->ports[0].fd, frame, sizeof(frame));
	CHECK(n > 0 && bootmsg_next(&m, frame, (size_t)n, err) == n);
	bed.hello = m.type;
	fake.vm.driver = &fake_driver;
	fake.events = events;
	fake.owner = owner;
	loop_defer_init(&fake.defer, l, fake_turn);
	*ret = &fake.vm;
	return 0;
}

static void fake_kill(struct vm *vm)
{
	bed.n_killed++;
}

static pid_t fake_pid(const struct vm *vm)
{
	return 0;
}

static struct vm *fake_free(struct vm *vm)
{
	loop_defer_done(&fake.defer);
	return NULL;
}

static const struct vm_driver fake_driver = { .check = fake_check,
					      .start = fake_start,
					      .kill = fake_kill,
					      .pid = fake_pid,
					      .free = fake_free };

/* ---- the bed ---- */

static bool begin(bool never)
{
	struct trial_config config = { .driver = &fake_driver, .guest = "small", .never = never };
	struct error err = ERROR_INIT;

	memset(&bed, 0, sizeof(bed));
	(void)str_copy(bed.dir, sizeof(bed.dir), "/tmp/nacre-trial-XXXXXX");
	CHECK(mkdtemp(bed.dir) != NULL);
	bed.dir_fd = open(bed.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	bed.set_size = 4096;
	config.uid = config.gid = 77;
	config.root_fd = config.run_fd = bed.dir_fd;
	if (loop_new(&bed.loop) < 0)
		return false;
	config.loop = bed.loop;
	return trial_new(&bed.trial, &config, &err) == 0;
}

static void end(void)
{
	bed.trial = trial_free(bed.trial);
	bed.loop = loop_free(bed.loop);
	CHECK(faccessat(bed.dir_fd, "trial", F_OK, 0) < 0);
	bed.dir_fd = fd_close(bed.dir_fd);
	CHECK_INT(scratch_remove(bed.dir), 0);
}

/* The daemon after this one. */
static bool again(void)
{
	struct trial_config config = { .loop = bed.loop,
				       .driver = &fake_driver,
				       .guest = "small",
				       .uid = 77,
				       .gid = 77,
				       .root_fd = bed.dir_fd,
				       .run_fd = bed.dir_fd };

	bed.trial = trial_free(bed.trial);
	return trial_new(&bed.trial, &config, NULL) == 0;
}

static bool asked(enum probe_verdict verdict, const char *text)
{
	const struct probe_record *known = trial_ask(bed.trial);

	CHECK_INT(known->verdict, verdict);
	CHECK_STR(known->text, text);
	return known->verdict == verdict;
}

#define TRYING "KVM opens; whether a guest comes up is being tried"

/* Where memory fails nothing was started, and the next one asks again. */
static bool tries(enum vm_end_cause cause)
{
	unsigned n = bed.n_written;

	if (!str_eq(trial_ask(bed.trial)->text, TRYING))
		return false;
	fake_ends(cause);
	LOOP_WAIT(bed.loop, bed.n_written > n);
	return true;
}

static void a_guest_that_comes_up_is_remembered(void)
{
	if (begin(false) && tries(VM_END_POWERED_OFF)) {
		CHECK(trial_ask(bed.trial)->verdict == PROBE_WORKS);
		CHECK_INT(bed.n_started, 1);
		CHECK_INT(bed.spec.accel, VM_ACCEL_HARDWARE);
		CHECK_INT(bed.spec.memory_mib, 128);
		CHECK_INT(bed.spec.uid, 77);
		CHECK(bed.spec.fleeting);
		CHECK_STR(bed.port, BOOTMSG_PORT);
		CHECK_INT(bed.hello, BOOTMSG_STOP);
		if (again())
			CHECK(trial_ask(bed.trial)->verdict == PROBE_WORKS);
		CHECK_INT(bed.n_started, 1);
	}
	end();
}

static void one_that_does_not_is_remembered_with_the_cause(void)
{
	if (begin(false) && tries(VM_END_CRASHED)) {
		(void)asked(PROBE_NO_GUEST,
			    "KVM opens but no guest comes up: the machine's monitor died");
		if (again())
			(void)asked(PROBE_NO_GUEST,
				    "KVM opens but no guest comes up: the machine's monitor died");
		CHECK_INT(bed.n_started, 1);
	}
	end();
}

static void another_set_is_tried_again(void)
{
	if (begin(false) && tries(VM_END_CRASHED)) {
		bed.set_size = 8192;
		if (again() && tries(VM_END_POWERED_OFF))
			CHECK_INT(trial_ask(bed.trial)->verdict, PROBE_WORKS);
		CHECK(bed.n_started <= 2);
	}
	end();
}

static void says_what_lacks_for_a_trial(void)
{
	if (begin(false)) {
		bed.device = PROBE_NO_DEVICE;
		(void)asked(PROBE_NO_DEVICE, "looked at");
		bed.device = PROBE_UNTRIED;
		bed.no_set = true;
		/* Whoever asks again at once is told the same. */
		(void)asked(PROBE_NO_DEVICE, "looked at");
		if (again())
			(void)asked(PROBE_UNTRIED, "KVM opens; no guest can be tried: there is no "
						   "guest set \"small\"");
		bed.no_set = false;
		bed.no_qemu = true;
		if (again())
			CHECK(str_has_prefix(
				trial_ask(bed.trial)->text,
				"KVM opens; whether a guest comes up cannot be tried: "));
		bed.no_qemu = false;
		bed.fails_to_start = true;
		if (again())
			CHECK(str_has_prefix(
				trial_ask(bed.trial)->text,
				"KVM opens; whether a guest comes up cannot be tried: "));
		CHECK_INT(bed.n_started, 0);
		CHECK_INT(bed.n_written, 0);
	}
	end();
}

static void nothing_is_tried_where_the_configuration_does_without(void)
{
	if (begin(true)) {
		(void)asked(PROBE_UNTRIED, "the configuration does without (vm.hardware)");
		CHECK_INT(bed.n_started, 0);
	}
	end();
}

static void one_under_way_ends_with_the_daemon(void)
{
	if (begin(false) && str_eq(trial_ask(bed.trial)->text, TRYING)) {
		(void)asked(PROBE_UNTRIED, TRYING);
		CHECK(faccessat(bed.dir_fd, "trial", F_OK, 0) == 0);
		bed.trial = trial_free(bed.trial);
		CHECK_INT(bed.n_killed, 1);
		CHECK_INT(bed.n_written, 0);
		/* And what one has left that was killed is taken away. */
		CHECK_INT(mkdirat(bed.dir_fd, "trial", 0700), 0);
		fd_close(
			openat(bed.dir_fd, "trial/qmp.sock", O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
		(void)again();
	}
	end();
}

UNIT_MAIN({ "a guest that comes up is remembered", a_guest_that_comes_up_is_remembered },
	  { "one that does not is remembered with the cause",
	    one_that_does_not_is_remembered_with_the_cause },
	  { "another set is tried again", another_set_is_tried_again },
	  { "says what lacks for a trial", says_what_lacks_for_a_trial },
	  { "nothing is tried where the configuration does without",
	    nothing_is_tried_where_the_configuration_does_without },
	  { "one under way ends with the daemon", one_under_way_ends_with_the_daemon })
