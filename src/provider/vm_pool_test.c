/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_pool.h"

#include "instance/choose.h"
#include "instance/instance_inventory.h"
#include "instance/place.h"
#include "provider/vm_bed_test.h"

static struct provider_warm look(void)
{
	struct provider_warm ret;

	instances_look_warm(fake.all, &ret);
	return ret;
}

/* A daemon with its first machine and a template. */
static void begin(unsigned n, struct bed_told *told)
{
	bed.templates = true;
	bed.programs = 1;
	bed.pool = n;
	bed_begin();
	(void)bed_ready(told);
	CHECK_INT(look().wanted, n);
	CHECK_INT(look().waiting, 0);
	bed_makes_a_template();
	bed.network = NULL;
}

/* Up to where its monitor has been started. */
static void begins_one(void)
{
	FAKE_UNTIL(bed.network);
	bed_bundle_comes();
	bed_network_comes(0);
	bed.network = NULL;
}

static void is_measured(void)
{
	struct pool_work *work = bed.measure;

	work->run(work);
	work->busy = false;
	work->done(work);
	bed.measure = NULL;
}

static void makes_one(void)
{
	begins_one();
	CHECK(bed.spec.held && bed.spec.memory_fd >= 0 && bed.spec.state_fd >= 0);
	CHECK(!bed.spec.fleeting);
	CHECK_INT(bed.frame_len, 0);
	bed_machine_is_up();
	is_measured();
}

static struct instance *create(const struct instance_spec *spec, struct bed_told *told)
{
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, NULL, spec, bed_told, told, &i, &err), 0);
	CHECK_STR(err.text, "");
	return i;
}

static bool was_told(const struct instance *i)
{
	struct error err = ERROR_INIT;
	struct bootmsg m;

	return bootmsg_next(&m, bed.frame, bed.frame_len, &err) > 0 && m.type == BOOTMSG_BOOT &&
	       str_eq(m.boot.title, i->path) && str_eq(m.boot.instance_id, i->id) &&
	       memcmp(m.boot.token, bed.started.token, sizeof(m.boot.token)) == 0;
}

static void is_taken_by_the_next_instance(void)
{
	const struct instance_link link = { .is_wanted = true,
					    .name = "eth0",
					    .mtu = 1400,
					    .address = "192.0.2.5/24",
					    .gateway = "192.0.2.1" };
	const struct instance_spec spec = { .name = "w",
					    .choice = { .kind = INSTANCE_VM },
					    .link = &link };
	struct bed_told told[2] = { { .n = 0 } };
	char cgroup[64];
	struct instance *i;
	pid_t pid;

	begin(1, &told[0]);
	bed.frame_len = 0;
	makes_one();
	CHECK_INT(look().waiting, 1);
	CHECK_INT(look().memory, 2 * ((128 << 20) / 64 + (1 << 20)));
	pid = bed.vm->pid;
	CHECK_STR(bed.started.title + strlen("pool/"), vm_pool_id(bed.vms->pool, 0));
	(void)str_printf(cgroup, sizeof(cgroup), "base/inst._%s", vm_pool_id(bed.vms->pool, 0));
	i = create(&spec, &told[1]);
	CHECK_INT(i->pid, pid);
	CHECK_STR(i->cgroup, cgroup);
	CHECK_INT(i->machine.memory, 128 << 20);
	CHECK_INT(bed.n_resumed, 1);
	CHECK(was_told(i));
	/* Its pod's network is no reason to boot. */
	CHECK_INT(bed.n_links, 1);
	CHECK_INT(bed.link_mtu, 1400);
	CHECK_STR(bed.link_address, "192.0.2.5/24");
	CHECK_INT(look().waiting, 0);
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	fake_yes(i, FAKE_OPEN);
	FAKE_UNTIL(told[1].n == 1);
	CHECK_STR(told[1].text, "");
	CHECK_INT(i->state, INSTANCE_READY);
	/* And another one is made for the next. */
	bed.frame_len = 0;
	makes_one();
	CHECK_INT(look().waiting, 1);
	bed_end();
}

/* One that was taken while it waited, "w"; the two that it is made of. */
struct taken {
	struct instance *i;
	struct fake_gate *gate;
	struct fake_vm *vm;
	char id[ID_SIZE], cgroup[64];
};

static struct taken takes_one(struct bed_told *told)
{
	const struct instance_spec spec = { .name = "w", .choice = { .kind = INSTANCE_VM } };
	struct taken t = { .i = NULL };

	bed.frame_len = 0;
	makes_one();
	t.gate = bed.gate;
	t.vm = bed.vm;
	t.i = create(&spec, told);
	(void)str_copy(t.id, sizeof(t.id), t.i->id);
	(void)str_copy(t.cgroup, sizeof(t.cgroup), t.i->cgroup);
	bed.network = NULL;
	bed.frame_len = 0;
	return t;
}

static void ends(struct taken *t)
{
	struct vm_end end = { .cause = VM_END_CRASHED, .text = "the machine's monitor died" };

	t->vm->events->on_end(&t->vm->vm, &end, t->vm->owner);
}

/* Up to READY, as the instance that it was. */
static void goes_on_with_another(struct taken *t, struct bed_told *told)
{
	CHECK_INT(t->i->state, INSTANCE_SPAWNING);
	CHECK_INT(t->i->pid, 0);
	CHECK_INT(told->n, 0);
	CHECK(bed.network != NULL);
	bed_bundle_comes();
	bed_network_comes(0);
	CHECK(!bed.spec.held);
	CHECK_STR(t->i->id, t->id);
	CHECK_STR(t->i->cgroup, t->cgroup);
	CHECK_STR(bed.started.title, "w");
	CHECK_INT(t->i->pid, bed.vm->pid);
	CHECK(was_told(t->i));
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	fake_yes(t->i, FAKE_OPEN);
	FAKE_UNTIL(told->n == 1);
	CHECK_STR(told->text, "");
	CHECK_INT(t->i->state, INSTANCE_READY);
}

static void one_that_is_dead_when_it_is_taken_is_replaced(void)
{
	struct bed_told told[2] = { { .n = 0 } };
	struct taken t;

	begin(1, &told[0]);
	t = takes_one(&told[1]);
	ends(&t);
	CHECK_INT(bed.n_gates_killed, 1);
	/* Its gate is reaped when it is told, and tells nobody's end. */
	goes_on_with_another(&t, &told[1]);
	t.gate->events->on_end(t.gate->userdata, NULL);
	CHECK_INT(t.i->state, INSTANCE_READY);
	bed_end();
}

/* Whichever dies first. */
static void so_it_is_where_its_gate_is(void)
{
	struct bed_told told[2] = { { .n = 0 } };
	struct taken t;

	begin(1, &told[0]);
	t = takes_one(&told[1]);
	t.gate->events->on_end(t.gate->userdata, NULL);
	CHECK_INT(bed.n_killed, 2);
	ends(&t);
	goes_on_with_another(&t, &told[1]);
	bed_end();
}

/* The next one was not made ahead, and whatever it dies of is no matter of when it was taken. */
static void but_once(void)
{
	struct bed_told told[2] = { { .n = 0 } };
	struct taken t;

	begin(1, &told[0]);
	t = takes_one(&told[1]);
	ends(&t);
	t.gate->events->on_end(t.gate->userdata, NULL);
	bed_bundle_comes();
	bed_network_comes(-ENOSPC);
	FAKE_UNTIL(told[1].n == 1);
	CHECK_STR(told[1].text, "instance w: make the network of a guest: No space left on device");
	CHECK_INT(t.i->state, INSTANCE_FAILED);
	bed_end();
}

/* From when it can be used, its end is its own. */
static void but_not_once_it_is_ready(void)
{
	static const struct bootmsg ready = { .type = BOOTMSG_READY,
					      .ready = { "1.0", "6.1.0-x" } };
	struct bed_told told[2] = { { .n = 0 } };
	struct taken t;

	begin(1, &told[0]);
	t = takes_one(&told[1]);
	bed_guest_says(&ready);
	fake_yes(t.i, FAKE_OPEN);
	FAKE_UNTIL(told[1].n == 1);
	ends(&t);
	t.gate->events->on_end(t.gate->userdata, NULL);
	FAKE_UNTIL(t.i->state == INSTANCE_FAILED);
	CHECK_STR(t.i->reason, "the machine's monitor died");
	bed_end();
}

/* Nobody wants another one in the place of what is told to end. */
static void nor_where_it_is_told_to_end(void)
{
	struct bed_told told[2] = { { .n = 0 } };
	struct taken t;

	begin(1, &told[0]);
	t = takes_one(&told[1]);
	instance_stop(t.i, NULL, NULL);
	ends(&t);
	t.gate->events->on_end(t.gate->userdata, NULL);
	FAKE_UNTIL(told[1].n == 1);
	CHECK(strstr(told[1].text, "was stopped while it started") != NULL);
	bed_end();
}

/* What wants another machine boots, and leaves it to those that do not. */
static void fits_the_plain_alone(void)
{
	static const struct instance_spec specs[] = {
		{ .name = "a", .choice = { .kind = INSTANCE_VM, .cold = true } },
		{ .name = "b", .volumes = true, .choice = { .kind = INSTANCE_VM } },
		{ .name = "c", .size = { .cpus = 1 }, .choice = { .kind = INSTANCE_VM } },
		{ .name = "d",
		  .size = { .memory = (uint64_t)1 << 30 },
		  .choice = { .kind = INSTANCE_VM } },
	};
	struct bed_told told[ARRAY_SIZE(specs) + 1] = { { .n = 0 } };
	struct instance *i;

	begin(1, &told[0]);
	bed.frame_len = 0;
	makes_one();
	for (size_t n = 0; n < ARRAY_SIZE(specs); n++) {
		i = create(&specs[n], &told[n + 1]);
		CHECK(strncmp(i->cgroup, "base/inst.", strlen("base/inst.")) == 0);
		CHECK(!strchr(i->cgroup, '_'));
		bed_bundle_comes();
		bed_network_comes(0);
		CHECK(!bed.spec.held);
		CHECK_INT(look().waiting, 1);
	}
	CHECK_INT(bed.n_resumed, 0);
	bed_end();
}

static void one_that_dies_is_made_again(void)
{
	struct bed_told told = { .n = 0 };
	char id[ID_SIZE], place[64];

	begin(1, &told);
	bed.frame_len = 0;
	makes_one();
	(void)str_copy(id, sizeof(id), vm_pool_id(bed.vms->pool, 0));
	(void)str_printf(place, sizeof(place), "i/%s", id);
	CHECK(fake_exists(place));
	bed_machine_ends(VM_END_CRASHED, "the machine's monitor died");
	CHECK_INT(look().waiting, 0);
	CHECK_STR(look().reason, "the machine's monitor died");
	CHECK(fake_exists(place));
	bed_gate_ends();
	FAKE_UNTIL(!fake_exists(place));
	(void)str_printf(place, sizeof(place), "base/inst._%s", id);
	CHECK(!fake_exists(place));
	makes_one();
	CHECK_INT(look().waiting, 1);
	CHECK_STR(look().reason, "");
	bed_end();
}

/* Where its gate ends, or its guest speaks, or it cannot even be started. */
static void what_is_of_no_use_is_taken_away(void)
{
	struct bed_told told = { .n = 0 };

	begin(1, &told);
	bed.frame_len = 0;
	makes_one();
	bed_gate_ends();
	CHECK_INT(bed.n_killed, 2);
	bed_machine_ends(VM_END_ASKED, "the machine was ended");
	FAKE_UNTIL(!vm_pool_id(bed.vms->pool, 0));
	makes_one();
	bed_guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	CHECK_INT(bed.n_killed, 3);
	CHECK_STR(look().reason, "its guest speaks before it was spoken to");
	bed_machine_ends(VM_END_ASKED, "the machine was ended");
	bed_gate_ends();
	FAKE_UNTIL(!vm_pool_id(bed.vms->pool, 0));
	bed.fail_vm = -ENOMEM;
	begins_one();
	CHECK_INT(look().waiting, 0);
	bed_gate_ends();
	FAKE_UNTIL(!vm_pool_id(bed.vms->pool, 0));
	bed.fail_vm = 0;
	FAKE_UNTIL(bed.network);
	bed_bundle_comes();
	bed_network_comes(-ENOSPC);
	bed.network = NULL;
	FAKE_UNTIL(!vm_pool_id(bed.vms->pool, 0));
	CHECK_INT(look().waiting, 0);
	bed_end();
}

/* The programs are others now: the pool goes with the template that it was loaded from. */
static void goes_with_its_template(void)
{
	const struct instance_spec spec = { .name = "w", .choice = { .kind = INSTANCE_VM } };
	struct bed_told told[2] = { { .n = 0 } };
	struct fake_gate *gate;
	struct fake_vm *vm;
	struct vm_end end = { .cause = VM_END_ASKED };

	begin(1, &told[0]);
	bed.frame_len = 0;
	makes_one();
	gate = bed.gate;
	vm = bed.vm;
	bed.programs = 2;
	(void)create(&spec, &told[1]);
	CHECK_INT(bed.n_resumed, 0);
	CHECK_INT(look().waiting, 0);
	CHECK_STR(look().reason, "there is no template of a guest yet");
	bed_bundle_comes();
	bed_network_comes(0);
	CHECK(!bed.spec.held && bed.spec.memory_fd < 0);
	CHECK_INT(bed.n_killed, 2);
	vm->events->on_end(&vm->vm, &end, vm->owner);
	gate->events->on_end(gate->userdata, NULL);
	FAKE_UNTIL(!vm_pool_id(bed.vms->pool, 0));
	bed_end();
}

/* The node as /proc/meminfo has it. */
static void has_left(const char *kib)
{
	char text[64];
	int fd =
		openat(bed.vms->proc_fd, "meminfo", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	CHECK(fd >= 0);
	(void)str_printf(text, sizeof(text), "MemTotal: 1 kB\nMemAvailable:   %s kB\n", kib);
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
	(void)fd_close(fd);
}

static void takes_no_memory_that_is_short(void)
{
	struct bed_told told = { .n = 0 };
	int proc_fd;

	bed.templates = true;
	bed.programs = 1;
	bed.pool = 1;
	bed_begin();
	proc_fd = bed.vms->proc_fd;
	bed.vms->proc_fd = fcntl(fake.dir_fd, F_DUPFD_CLOEXEC, 3);
	has_left("393215");
	(void)bed_ready(&told);
	bed_makes_a_template();
	bed.network = NULL;
	FAKE_UNTIL(look().reason[0]);
	CHECK_STR(look().reason, "the node has 383 MiB of memory left, and a machine may take 384");
	CHECK(!bed.network);
	has_left("393216");
	bed.frame_len = 0;
	makes_one();
	CHECK_STR(look().reason, "");
	(void)fd_close(bed.vms->proc_fd);
	bed.vms->proc_fd = proc_fd;
	bed_end();
}

/* The template's own and those of the pool are no strangers. */
static void they_are_told_apart_from_strangers(void)
{
	const struct provider_ops *ops;
	struct provider *p;
	struct bed_told told = { .n = 0 };

	bed.templates = true;
	bed.programs = 1;
	bed.pool = 1;
	bed_begin();
	p = vms_provider(bed.vms);
	ops = p->ops;
	(void)bed_ready(&told);
	CHECK(ops->ahead(p, 0) == NULL);
	bed_begins_a_template();
	CHECK_STR(ops->ahead(p, 0), templates_id(bed.vms->templates));
	CHECK(ops->ahead(p, 1) == NULL);
	bed_says(&(struct bootmsg){ .type = BOOTMSG_WAITING });
	FAKE_UNTIL(bed.saved);
	bed.saved(&bed.vm->vm, NULL, bed.saved_data);
	bed_machine_ends(VM_END_ASKED, "the machine was ended");
	CHECK(ops->ahead(p, 0) == NULL);
	bed.network = NULL;
	bed.frame_len = 0;
	makes_one();
	CHECK_STR(ops->ahead(p, 0), vm_pool_id(bed.vms->pool, 0));
	CHECK(ops->ahead(p, 1) == NULL);
	bed_end();
}

UNIT_MAIN({ "is taken by the next instance", is_taken_by_the_next_instance },
	  { "fits the plain alone", fits_the_plain_alone },
	  { "one that is dead when it is taken is replaced",
	    one_that_is_dead_when_it_is_taken_is_replaced },
	  { "so it is where its gate is", so_it_is_where_its_gate_is }, { "but once", but_once },
	  { "but not once it is ready", but_not_once_it_is_ready },
	  { "nor where it is told to end", nor_where_it_is_told_to_end },
	  { "one that dies is made again", one_that_dies_is_made_again },
	  { "what is of no use is taken away", what_is_of_no_use_is_taken_away },
	  { "goes with its template", goes_with_its_template },
	  { "takes no memory that is short", takes_no_memory_that_is_short },
	  { "they are told apart from strangers", they_are_told_apart_from_strangers })
