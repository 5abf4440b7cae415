/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_bed_test.h"

#include <sys/mman.h>

/* ---- making ---- */

static void is_made_of_gate_network_and_machine(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	struct bootmsg m;

	bed_begin();
	i = bed_create(&told);
	bed_network_comes(0);
	CHECK(!bed.gate && !bed.vm);
	bed_bundle_comes();
	CHECK(bed.gate && bed.vm);
	CHECK_INT(i->state, INSTANCE_SPAWNING);
	CHECK_INT(bed.spec.memory_mib, 128);
	CHECK_INT(bed.spec.cpus, 2);
	CHECK_INT(bed.spec.accel, VM_ACCEL_EMULATED);
	CHECK_STR(bed.spec.title, "v");
	CHECK_STR(bed.port, BOOTMSG_PORT);
	CHECK_INT(bed.mac[5], 9);
	CHECK(bed.spec.uid != bed.started.uid && bed.spec.uid != 0);
	CHECK(fake_exists("base/inst.v/vmm"));
	CHECK(fake_exists("base/inst.v/gate"));
	CHECK_INT(i->pid, bed.vm->pid);

	CHECK_INT(bootmsg_next(&m, bed.frame, bed.frame_len, &err), (long)bed.frame_len);
	CHECK_INT(m.type, BOOTMSG_BOOT);
	CHECK_STR(m.boot.hostname, "v");
	CHECK_STR(m.boot.instance_id, i->id);
	CHECK_INT(m.boot.address[3], 2);
	CHECK_INT(m.boot.gateway[3], 1);
	CHECK_INT(m.boot.prefix, 30);
	CHECK_INT(m.boot.bundle.n, 2);
	CHECK_INT(m.boot.bundle.item[1].len, 5);
	CHECK_STR(m.boot.parent_id, "spiffe://x/node/n");
	CHECK(memcmp(m.boot.token, bed.started.token, sizeof(m.boot.token)) == 0);
	CHECK_INT(bed.spec.n_nics, MACHINE_NICS);
	CHECK_INT(bed.n_links, 0);

	fake_yes(i, FAKE_OPEN);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK_STR(i->kernel, "");
	bed_end();
	CHECK_INT(bed_last.n_killed, 0);
}

static void is_as_large_as_was_asked_for(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed_begin();
	bed.size = (struct instance_size){ .memory = (uint64_t)320 << 20, .cpus = 1 };
	bed.controllers = 1U << CGROUP_MEMORY;
	i = bed_create(&told);
	bed_network_comes(0);
	bed_bundle_comes();
	CHECK_INT(bed.spec.memory_mib, 96 + 320 + 20);
	CHECK_INT(bed.spec.cpus, 1);
	CHECK(i->machine.memory == (uint64_t)436 << 20 && i->machine.cpus == 1);
	CHECK(i->machine.room == (uint64_t)320 << 20);
	CHECK_INT(strncmp(bed.wall, "memory.max=", 11), 0);
	CHECK(strtoull(bed.wall + 11, NULL, 10) > i->machine.memory);
	bed_end();
}

static void knows_the_kernel_that_it_has(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;
	unsigned n;

	bed_begin();
	bed.fast = true;
	i = bed_ready(&told);
	CHECK_STR(i->kernel, "6.1.0-x");
	CHECK_INT(bed.spec.accel, VM_ACCEL_HARDWARE);
	/* A gate that is connected to again tells it again. */
	n = fake.n_saved;
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	CHECK_INT(fake.n_saved, n);
	bed_end();
}

static void fails_with_what_cannot_be_made(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed_begin();
	i = bed_create(&told);
	bed_bundle_comes();
	bed_network_comes(-EMFILE);
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "make the network of a guest") != NULL);
	CHECK_INT(told.kind, ERROR_FAULT);
	CHECK_INT(told.code, -EMFILE);
	CHECK(!fake_exists("base/inst.v"));
	instance_remove(i);
	fake_turns();

	bed.fail_gate = -ENOENT;
	i = bed_boots(&told);
	FAKE_UNTIL(told.n == 2);
	CHECK(strstr(told.text, "instance v: start the gate") != NULL);
	instance_remove(i);
	fake_turns();

	bed.fail_gate = 0;
	bed.fail_set = 1;
	i = bed_boots(&told);
	FAKE_UNTIL(told.n == 3);
	CHECK(strstr(told.text, "no guest set") != NULL);
	/* Its gate is killed, and reaped by its driver. */
	CHECK(bed.gate != NULL);
	bed_gate_ends();
	CHECK(!bed.gate);
	instance_remove(i);
	fake_turns();

	bed.fail_set = 0;
	bed.fail_vm = -ENOMEM;
	(void)bed_boots(&told);
	FAKE_UNTIL(told.n == 4);
	CHECK(strstr(told.text, "start the machine") != NULL);
	CHECK_INT(told.code, -ENOMEM);
	bed_gate_ends();
	bed_end();
}

static void fails_without_what_the_guest_is_to_trust(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;

	bed_begin();
	(void)bed_create(&told);
	(void)error_refuse(&err, ERROR_PRECONDITION, "the key is gone");
	bed.bundle(bed.bundle_userdata, NULL, &err);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "instance v: the key is gone");
	CHECK_INT(told.kind, ERROR_PRECONDITION);
	bed_network_comes(0);
	CHECK(!bed.vm);
	bed_end();
}

static void may_be_stopped_before_there_is_a_machine(void)
{
	struct bed_told told = { .n = 0 };

	bed_begin();
	instance_stop(bed_create(&told), NULL, NULL);
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "was stopped while it started") != NULL);
	CHECK(!bed.bundle);
	CHECK(!fake_exists("base/inst.v"));
	bed_network_comes(0);
	CHECK(!bed.vm && !bed.gate);
	bed_end();
}

/* ---- its end ---- */

static void tells_why_its_machine_ended(void)
{
	static const char console[] = "ok\r\nKernel panic - not syncing\r\n";
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed_begin();
	i = bed_ready(&told);
	bed_machine_ends(VM_END_PANIC, "the guest's kernel panicked");
	CHECK_INT(i->state, INSTANCE_READY);
	bed.gate->console(bed.gate->console_userdata, (const uint8_t *)console, strlen(console),
			  strlen(console), NULL);
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "the guest's kernel panicked; its console ends: "
			     "ok | Kernel panic - not syncing");
	bed_gate_ends();
	FAKE_UNTIL(!fake_exists("base/inst.v"));
	bed_end();
}

static void does_not_wait_for_a_console_for_ever(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed_begin();
	i = bed_ready(&told);
	bed_machine_ends(VM_END_CRASHED, "the machine crashed");
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "the machine crashed");
	bed_gate_ends();
	instance_remove(i);
	fake_turns();
	/* Nor where its gate is gone meanwhile. */
	told.n = 0;
	i = bed_ready(&told);
	bed_machine_ends(VM_END_CRASHED, "the machine crashed again");
	bed_gate_ends();
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "the machine crashed again");
	bed_end();
}

static void is_ended_for_what_guest_or_gate_say(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed_begin();
	i = bed_boots(&told);
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_FAILED, .failed = { "no interface" } });
	CHECK_INT(bed.n_killed, 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed.gate->console(bed.gate->console_userdata, (const uint8_t *)"x", 1, 1, NULL);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text,
		  "instance v: the guest cannot go on: no interface; its console ends: x");
	bed_gate_ends();
	instance_remove(i);
	fake_turns();

	i = bed_boots(&told);
	bed.gate->events->on_state(bed.gate->userdata, GATE_FAILED, "it was foreign");
	CHECK_INT(bed.n_killed, 2);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(told.n == 2);
	CHECK_STR(told.text, "instance v: its gate cannot go on: it was foreign");
	instance_remove(i);
	fake_turns();

	(void)bed_boots(&told);
	bed_gate_ends();
	CHECK_INT(bed.n_killed, 3);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	FAKE_UNTIL(told.n == 3);
	CHECK_STR(told.text, "instance v: its gate has ended: without a word");
	bed_end();
}

static void a_guest_that_says_what_it_must_not_is_ended(void)
{
	struct bed_told told = { .n = 0 };
	const uint8_t nonsense[] = { 1, 0, 0, 0, 0xff };

	bed_begin();
	(void)bed_boots(&told);
	bed.gate->events->on_frame(bed.gate->userdata, nonsense, sizeof(nonsense));
	CHECK_INT(bed.n_killed, 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "is no frame") != NULL);
	fake_turns();
	bed_end();

	/* Well-formed, and not the guest's to say. */
	told.n = 0;
	bed_begin();
	(void)bed_boots(&told);
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_STOP });
	CHECK_INT(bed.n_killed, 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "the guest says what only a node may say") != NULL);
	bed_end();
}

static void stops(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed_begin();
	i = bed_ready(&told);
	instance_stop(i, bed_told, &told);
	CHECK_INT(fake_count(i, FAKE_SHUTDOWN), 1);
	bed_machine_ends(VM_END_POWERED_OFF, "it was switched off");
	/* No console is waited for. */
	CHECK(!bed.gate->console);
	bed_gate_ends();
	FAKE_UNTIL(told.n == 2);
	CHECK(!fake_exists("base/inst.v"));
	CHECK_STR(fake.states, "v:spawning v:ready v:stopping v:removed ");
	bed_end();
}

static void its_power_button_is_pressed_where_its_keeper_does_not_end_it(void)
{
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	struct bootmsg m;

	bed_begin();
	i = bed_ready(&told);
	bed.frame_len = 0;
	instance_stop(i, bed_told, &told);
	CHECK_INT(bed.n_pressed, 0);
	FAKE_UNTIL(bed.n_pressed == 1);
	/* By both ways, since either may be closed. */
	CHECK(bootmsg_next(&m, bed.frame, bed.frame_len, &err) > 0);
	CHECK_INT(m.type, BOOTMSG_STOP);
	CHECK_INT(bed.n_killed, 0);
	FAKE_UNTIL(bed.n_killed == 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(told.n == 2);
	CHECK_INT(bed.n_pressed, 1);
	bed_end();
}

/* ---- its heartbeat ---- */

#define PATIENCE (200 * NSEC_PER_MSEC)

/* The test's clock stands still for nobody: what a timer waits is a fiftieth. */
static void answer_for(struct instance *i, nsec_t time)
{
	nsec_t end = clock_mono() + time;

	while (clock_mono() < end) {
		fake_turns();
		while (fake_asked(i, FAKE_PING))
			fake_yes(i, FAKE_PING);
	}
}

static void one_that_answers_is_left_alone(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;

	bed.heartbeat = PATIENCE;
	bed_begin();
	i = bed_ready(&told);
	answer_for(i, 2 * PATIENCE);
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK_INT(bed.n_killed, 0);
	bed_end();
}

static void a_stuck_one_is_ended_with_the_cause(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;
	nsec_t began;

	bed.heartbeat = PATIENCE;
	bed_begin();
	i = bed_ready(&told);
	began = clock_mono();
	FAKE_UNTIL(bed.n_killed == 1);
	CHECK(clock_mono() - began >= PATIENCE / 2);
	CHECK_INT(fake_count(i, FAKE_PING), 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "its guest is stuck: it has not answered for 0 s (heartbeat)");
	bed_end();
}

static void a_paused_one_is_not_stuck(void)
{
	struct bed_told told = { .n = 0 };
	struct instance *i;
	nsec_t end;

	bed.heartbeat = PATIENCE;
	bed_begin();
	i = bed_ready(&told);
	bed.state = VM_PAUSED;
	end = clock_mono() + 2 * PATIENCE;
	while (clock_mono() < end)
		fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK_INT(bed.n_killed, 0);
	/* And has all of its patience when it goes on. */
	bed.state = VM_RUNNING;
	answer_for(i, PATIENCE);
	CHECK_INT(bed.n_killed, 0);
	bed_end();
}

/* ---- the choice ---- */

static void says_why_none_can_be_made(void)
{
	struct provider *p;
	char why[128];
	struct error err = ERROR_INIT;

	bed_begin();
	p = vms_provider(bed.vms);
	CHECK_INT(p->ops->plan(p, &err), 0);
	CHECK(!p->ops->is_preferred(p, why, sizeof(why)));
	CHECK_STR(why, "no guest was booted");
	bed.fast = true;
	CHECK(p->ops->is_preferred(p, why, sizeof(why)));
	bed.fail_set = 1;
	CHECK(p->ops->plan(p, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK(!p->ops->is_preferred(p, why, sizeof(why)));
	CHECK_STR(why, "there is no guest set \"small\"");
	bed_end();
}

/* ---- an earlier life ---- */

static void takes_a_living_one_up_again(void)
{
	struct instance *i;

	bed_begin();
	i = bed_adopt();
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK(bed.vm && bed.gate);
	CHECK_INT(i->pid, bed.vm->pid);
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1" } });
	CHECK_STR(i->kernel, "6.1");
	fake_yes(i, FAKE_OPEN);
	bed_end();
	CHECK_INT(bed_last.n_killed, 0);
}

static void knows_one_that_ended_meanwhile(void)
{
	struct instance *i;

	bed_begin();
	bed.fail_adopt = -ESRCH;
	i = bed_adopt();
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "its machine ended while the daemon was away");
	CHECK_INT(bed.n_cut, 1);
	instance_remove(i);
	fake_turns();

	/* Nobody reaches one without a gate. */
	bed.fail_adopt = 0;
	bed.fail_connect = 1;
	i = bed_adopt();
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK(strstr(i->reason, "its gate") != NULL);
	bed_machine_ends(VM_END_UNSEEN, "it is gone");
	CHECK(!bed.vm);
	bed_end();
}

/* ---- disks ---- */

static void disk_put(void *userdata, const struct error *err)
{
	CHECK(!err);
	++*(unsigned *)userdata;
}

static int puts_disk(struct instance *i, const char *name, char serial[INSTANCE_SERIAL_SIZE],
		     unsigned *n_put, struct error *err)
{
	return i->provider->ops->put_disk(i, name, 7, serial, disk_put, n_put, err);
}

static void bed_disk_done(void)
{
	vm_done_fn done = bed.disk_done;

	bed.disk_done = NULL;
	if (done)
		done(&bed.vm->vm, NULL, bed.disk_data);
	fake_turns();
}

static void a_disk_goes_with_its_last_user(void)
{
	char serial[INSTANCE_SERIAL_SIZE];
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	unsigned n = 0;

	bed_begin();
	i = bed_ready(&told);
	CHECK_INT(puts_disk(i, "a", serial, &n, &err), 0);
	CHECK_STR(serial, "slot0");
	bed_disk_done();
	CHECK_INT(puts_disk(i, "a", serial, &n, &err), 0);
	CHECK_STR(serial, "slot0");
	fake_turns();
	CHECK_INT(n, 2);
	i->provider->ops->drop_disk(i, "a");
	CHECK_INT(bed.n_removes, 0);
	i->provider->ops->drop_disk(i, "a");
	CHECK_INT(bed.n_removes, 1);
	/* Until the machine has let go of it, its slot is not for another. */
	CHECK_INT(puts_disk(i, "b", serial, &n, &err), 0);
	CHECK_STR(serial, "slot1");
	i->provider->ops->drop_disk(i, "never there");
	bed_end();
}

static void a_slot_that_was_emptied_is_used_again(void)
{
	char serial[INSTANCE_SERIAL_SIZE];
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	unsigned n = 0;

	bed_begin();
	i = bed_ready(&told);
	CHECK_INT(puts_disk(i, "a", serial, &n, &err), 0);
	bed_disk_done();
	i->provider->ops->drop_disk(i, "a");
	bed_disk_done();
	CHECK_INT(puts_disk(i, "b", serial, &n, &err), 0);
	CHECK_STR(serial, "slot0");
	bed_disk_done();
	/* One that cannot be emptied stays taken. */
	bed.fail_remove = true;
	i->provider->ops->drop_disk(i, "b");
	CHECK_INT(puts_disk(i, "c", serial, &n, &err), 0);
	CHECK_STR(serial, "slot1");
	bed_end();
}

static void a_disk_that_is_cut_short_ends_it(void)
{
	char serial[INSTANCE_SERIAL_SIZE];
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	unsigned n = 0;
	int fd = memfd_create("image", MFD_CLOEXEC);

	CHECK_INT(ftruncate(fd, 8192), 0);
	bed.heartbeat = 10 * NSEC_PER_SEC;
	bed_begin();
	i = bed_ready(&told);
	CHECK_INT(i->provider->ops->put_disk(i, "sha256:12", fd, serial, disk_put, &n, &err), 0);
	bed_disk_done();
	for (unsigned k = 0; k < 300; k++)
		fake_turns();
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK_INT(ftruncate(fd, 4096), 0);
	FAKE_UNTIL(bed.n_killed == 1);
	bed_machine_ends(VM_END_ASKED, "it was killed");
	bed_gate_ends();
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason,
		  "the disk of the image sha256:12 was cut from 8192 to 4096 bytes while "
		  "it was used");
	(void)close(fd);
	bed_end();
}

static void more_disks_than_slots_are_refused(void)
{
	char serial[INSTANCE_SERIAL_SIZE], name[8];
	struct bed_told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	unsigned n = 0;

	bed_begin();
	i = bed_ready(&told);
	for (unsigned k = 0; k < MACHINE_SLOTS; k++) {
		(void)str_printf(name, sizeof(name), "d%u", k);
		CHECK_INT(puts_disk(i, name, serial, &n, &err), 0);
		bed_disk_done();
	}
	CHECK(puts_disk(i, "one more", serial, &n, &err) < 0);
	CHECK_INT(err.kind, ERROR_EXHAUSTED);
	CHECK_STR(err.text, "all 12 slots of the machine have a disk of another image");
	bed_end();
}

static void disks_of_an_earlier_life_are_known_and_the_unused_dropped(void)
{
	char serial[INSTANCE_SERIAL_SIZE];
	struct error err = ERROR_INIT;
	struct instance *i;
	unsigned n = 0;

	bed_begin();
	i = bed_adopt();
	(void)str_copy(bed.slots[2], sizeof(bed.slots[2]), "used");
	(void)str_copy(bed.slots[4], sizeof(bed.slots[4]), "unused");
	CHECK_INT(i->provider->ops->claim_disk(i, "used", &err), 0);
	CHECK_INT(i->provider->ops->claim_disk(i, "used", &err), 0);
	CHECK_INT(i->provider->ops->claim_disk(i, "never there", &err), 0);
	CHECK(puts_disk(i, "used", serial, &n, &err) < 0);
	CHECK_INT(err.kind, ERROR_UNAVAILABLE);
	bed.vm->events->on_up(&bed.vm->vm, bed.vm->owner);
	CHECK_INT(bed.n_removes, 1);
	CHECK_STR(bed.slots[4], "");
	bed_disk_done();
	CHECK_INT(puts_disk(i, "used", serial, &n, &err), 0);
	CHECK_STR(serial, "slot2");
	fake_turns();
	i->provider->ops->drop_disk(i, "never there");
	for (unsigned k = 0; k < 2; k++)
		i->provider->ops->drop_disk(i, "used");
	CHECK_INT(bed.n_removes, 1);
	i->provider->ops->drop_disk(i, "used");
	CHECK_INT(bed.n_removes, 2);
	bed_end();
}

UNIT_MAIN({ "is_made_of_gate_network_and_machine", is_made_of_gate_network_and_machine },
	  { "is_as_large_as_was_asked_for", is_as_large_as_was_asked_for },
	  { "knows_the_kernel_that_it_has", knows_the_kernel_that_it_has },
	  { "fails_with_what_cannot_be_made", fails_with_what_cannot_be_made },
	  { "fails_without_what_the_guest_is_to_trust", fails_without_what_the_guest_is_to_trust },
	  { "may_be_stopped_before_there_is_a_machine", may_be_stopped_before_there_is_a_machine },
	  { "tells_why_its_machine_ended", tells_why_its_machine_ended },
	  { "does_not_wait_for_a_console_for_ever", does_not_wait_for_a_console_for_ever },
	  { "is_ended_for_what_guest_or_gate_say", is_ended_for_what_guest_or_gate_say },
	  { "a_guest_that_says_what_it_must_not_is_ended",
	    a_guest_that_says_what_it_must_not_is_ended },
	  { "its_power_button_is_pressed_where_its_keeper_does_not_end_it",
	    its_power_button_is_pressed_where_its_keeper_does_not_end_it },
	  { "one_that_answers_is_left_alone", one_that_answers_is_left_alone },
	  { "a_stuck_one_is_ended_with_the_cause", a_stuck_one_is_ended_with_the_cause },
	  { "a_paused_one_is_not_stuck", a_paused_one_is_not_stuck }, { "stops", stops },
	  { "a_disk_goes_with_its_last_user", a_disk_goes_with_its_last_user },
	  { "a_disk_that_is_cut_short_ends_it", a_disk_that_is_cut_short_ends_it },
	  { "a_slot_that_was_emptied_is_used_again", a_slot_that_was_emptied_is_used_again },
	  { "more_disks_than_slots_are_refused", more_disks_than_slots_are_refused },
	  { "disks_of_an_earlier_life_are_known_and_the_unused_dropped",
	    disks_of_an_earlier_life_are_known_and_the_unused_dropped },
	  { "says_why_none_can_be_made", says_why_none_can_be_made },
	  { "takes_a_living_one_up_again", takes_a_living_one_up_again },
	  { "knows_one_that_ended_meanwhile", knows_one_that_ended_meanwhile })
