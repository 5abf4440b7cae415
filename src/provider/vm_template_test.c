/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_template.h"

#include "provider/vm_bed_test.h"

static struct instance *create(const char *name, bool cold, struct bed_told *told)
{
	const struct instance_spec spec = { .name = name,
					    .choice = { .kind = INSTANCE_VM, .cold = cold } };
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, NULL, &spec, bed_told, told, &i, &err), 0);
	bed_bundle_comes();
	bed_network_comes(0);
	return i;
}

static bool is_sealed(int fd)
{
	return fd >= 0 && write(fd, "x", 1) < 0 && errno == EPERM;
}

static void begin(struct bed_told *told)
{
	bed.templates = true;
	bed.programs = 1;
	bed_begin();
	(void)bed_ready(told);
	CHECK(bed.spec.memory_fd < 0 && bed.spec.state_fd < 0);
}

static void is_made_once_and_used_by_all_but_the_cold(void)
{
	struct bed_told told[4] = { { .n = 0 } };

	begin(&told[0]);
	bed_makes_a_template();
	(void)create("w", false, &told[1]);
	CHECK(is_sealed(bed.spec.memory_fd) && is_sealed(bed.spec.state_fd));
	CHECK(!bed.spec.fleeting);
	bed_machine_is_up();
	(void)create("x", true, &told[2]);
	CHECK(bed.spec.memory_fd < 0);
	bed.programs = 2;
	(void)create("y", false, &told[3]);
	CHECK(bed.spec.memory_fd < 0);
	bed_end();
}

static void a_machine_that_cannot_go_on_from_it_boots(void)
{
	struct bed_told told[3] = { { .n = 0 } };
	struct instance *i;
	pid_t was;

	begin(&told[0]);
	bed_makes_a_template();
	i = create("w", false, &told[1]);
	CHECK(bed.spec.state_fd >= 0);
	was = i->pid;
	bed_machine_ends(VM_END_NOT_STARTED, "load of migration failed");
	CHECK(bed.spec.memory_fd < 0 && bed.spec.state_fd < 0);
	CHECK_INT(i->state, INSTANCE_SPAWNING);
	CHECK(i->pid != was && i->pid == bed.vm->pid);
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	/* And another one is made. */
	bed_begins_a_template();
	bed_machine_ends(VM_END_CRASHED, "the machine's monitor died");
	bed.boot_fd = fd_close(bed.boot_fd);
	bed_end();
}

/* What its guest says instead of waiting, and how often that is borne. */
static void none_is_made_of_a_guest_that_fails(void)
{
	static const struct bootmsg failed = { .type = BOOTMSG_FAILED, .failed = { "no disk" } };
	struct bed_told told[TEMPLATE_TRIES + 1] = { { .n = 0 } };

	begin(&told[0]);
	for (unsigned n = 1; n <= TEMPLATE_TRIES; n++) {
		char name[] = "w0";

		bed_begins_a_template();
		bed_says(&failed);
		FAKE_UNTIL(bed.n_killed == n);
		bed_machine_ends(VM_END_ASKED, "the machine was ended");
		name[1] = (char)('0' + n);
		(void)create(name, false, &told[n]);
		CHECK(bed.spec.memory_fd < 0 && !bed.spec.fleeting);
		bed.network = NULL;
		bed_guest_says(
			&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	}
	bed_end();
}

UNIT_MAIN({ "is_made_once_and_used_by_all_but_the_cold",
	    is_made_once_and_used_by_all_but_the_cold },
	  { "a_machine_that_cannot_go_on_from_it_boots",
	    a_machine_that_cannot_go_on_from_it_boots },
	  { "none_is_made_of_a_guest_that_fails", none_is_made_of_a_guest_that_fails })
