/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm.h"

#include "instance/fake_test.h"
#include "io/unix.h"
#include "provider/vm_machine.h"
#include "unit.h"
#include "vm/gate.h"
#include "vm/guest_set.h"
#include "vm/issuer.h"
#include "wire/bootmsg.h"

/*
 * The whole of the provider, on a machine that is a process that sleeps, a gate that records what
 * it is told, and a network and an issuer that answer when told.
 */

struct fake_gate {
	const struct gate_events *events;
	void *userdata;
	gate_console_fn console;
	void *console_userdata;
};

struct fake_vm {
	struct vm vm;
	const struct vm_events *events;
	void *owner;
	pid_t pid;
};

static struct {
	struct vms *vms;
	/* What was asked for. */
	issuer_done_fn bundle;
	void *bundle_userdata;
	struct segment_job *network;
	segment_job_fn network_done;
	struct gate_start started;
	struct fake_gate *gate;
	struct fake_vm *vm;
	struct vm_spec spec;
	char port[VM_NAME_MAX + 1];
	uint8_t mac[6];
	uint8_t frame[BOOTMSG_FRAME_MAX];
	size_t frame_len;
	unsigned n_killed, n_sets;
	size_t keeper;
	/* How it answers. */
	int fail_gate, fail_vm, fail_set, fail_adopt, fail_connect;
	bool fast;
} bed;

/* ---- what stands in for the others ---- */

struct segment_plan segment_plan_usual(void)
{
	return (struct segment_plan){ .node = { AF_INET, 30, { 10, 0, 0, 1 } },
				      .guest = { AF_INET, 30, { 10, 0, 0, 2 } },
				      .guest_mac = { 2, 0, 0, 0, 0, 9 } };
}

void segment_job_start(struct segment_job *job, struct pool *pool, const struct segment_plan *plan,
		       segment_job_fn fn)
{
	CHECK(!job->work.busy);
	job->plan = *plan;
	job->work.busy = true;
	bed.network = job;
	bed.network_done = fn;
}

void segment_done(struct segment *s)
{
	s->ns_fd = fd_close(s->ns_fd);
	s->tap_fd = fd_close(s->tap_fd);
}

int issuer_bundle(struct issuer *i, issuer_done_fn done, void *userdata)
{
	bed.bundle = done;
	bed.bundle_userdata = userdata;
	return 0;
}

void issuer_forget(struct issuer *i, const void *userdata)
{
	CHECK(userdata == bed.bundle_userdata);
	bed.bundle = NULL;
}

int issuer_node_id(const struct issuer *i, char ret[SPIFFE_SIZE], struct error *err)
{
	return str_copy(ret, SPIFFE_SIZE, "spiffe://x/node/n");
}

int issuer_instance_id(const struct issuer *i, const char *instance, char ret[SPIFFE_SIZE],
		       struct error *err)
{
	int r = str_printf(ret, SPIFFE_SIZE, "spiffe://x/node/n/instance/%s", instance);

	return r < 0 ? r : 0;
}

static int gate_new(struct gate **ret, const struct gate_events *events, void *userdata)
{
	struct fake_gate *g = __real_calloc(1, sizeof(*g));

	g->events = events;
	g->userdata = userdata;
	bed.gate = g;
	*ret = (struct gate *)(void *)g;
	return 0;
}

int gate_start(struct gate **ret, const struct gate_config *config, const struct gate_start *start,
	       const struct gate_events *events, void *userdata, struct error *err)
{
	CHECK(config->dir_fd >= 0);
	CHECK_STR(start->program, "/x/nacre-gate");
	bed.started = *start;
	if (bed.fail_gate)
		return error_set(err, bed.fail_gate, "start the gate");
	return gate_new(ret, events, userdata);
}

int gate_connect(struct gate **ret, const struct gate_config *config,
		 const struct gate_events *events, void *userdata, struct error *err)
{
	if (bed.fail_connect)
		return error_refuse(err, ERROR_UNAVAILABLE, "nobody listens");
	return gate_new(ret, events, userdata);
}

struct gate *gate_free(struct gate *g)
{
	if (g)
		bed.gate = NULL;
	free(g);
	return NULL;
}

int gate_send(struct gate *g, const uint8_t *frame, size_t len)
{
	memcpy(bed.frame, frame, len);
	bed.frame_len = len;
	return 0;
}

int gate_console(struct gate *g, gate_console_fn done, void *userdata)
{
	bed.gate->console = done;
	bed.gate->console_userdata = userdata;
	return 0;
}

int guest_set_open(struct guest_set *ret, int root_fd, const char *name, struct error *err)
{
	CHECK_STR(name, "small");
	if (bed.fail_set)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no guest set \"small\"");
	bed.n_sets++;
	*ret = (struct guest_set){ .kernel_fd = eventfd(0, EFD_CLOEXEC),
				   .initrd_fd = eventfd(0, EFD_CLOEXEC),
				   .info.desc = { .memory_mib = 96, .words = "quiet a=b" } };
	return 0;
}

void guest_set_done(struct guest_set *s)
{
	s->kernel_fd = fd_close(s->kernel_fd);
	s->initrd_fd = fd_close(s->initrd_fd);
}

int unix_connect(int dir_fd, const char *name, int type, struct error *err)
{
	CHECK_STR(name, "rpc.sock");
	return eventfd(0, EFD_CLOEXEC);
}

static struct fake_vm *vm_of(struct vm *vm)
{
	return container_of(vm, struct fake_vm, vm);
}

static int vm_check(struct error *err)
{
	return 0;
}

static const struct vm_driver fake_driver;

static int vm_new(struct vm **ret, int cgroup_fd, const struct vm_events *events, void *owner)
{
	struct fake_vm *vm = __real_calloc(1, sizeof(*vm));

	vm->vm.driver = &fake_driver;
	vm->events = events;
	vm->owner = owner;
	vm->pid = fake_process();
	CHECK(vm->pid > 0);
	bed.keeper = fake.n_keepers;
	(void)fake_keeper_add(cgroup_fd, vm->pid);
	bed.vm = vm;
	*ret = &vm->vm;
	return 0;
}

static int vm_start(struct vm **ret, struct loop *l, const struct vm_spec *spec,
		    const struct vm_events *events, void *owner, struct error *err)
{
	CHECK_INT(vm_spec_check(spec, err), 0);
	bed.spec = *spec;
	(void)str_copy(bed.port, sizeof(bed.port), spec->ports[0].name);
	memcpy(bed.mac, spec->nics[0].mac, sizeof(bed.mac));
	CHECK_STR(spec->words[0], "quiet");
	CHECK_STR(spec->words[1], "a=b");
	CHECK(spec->words[2] == NULL);
	if (bed.fail_vm)
		return error_set(err, bed.fail_vm, "start the machine");
	return vm_new(ret, spec->cgroup_fd, events, owner);
}

static int vm_adopt(struct vm **ret, struct loop *l, int dir_fd, int cgroup_fd,
		    const struct vm_events *events, void *owner, struct error *err)
{
	if (bed.fail_adopt)
		return error_set(err, bed.fail_adopt, "take up the machine");
	return vm_new(ret, cgroup_fd, events, owner);
}

static pid_t vm_pid(const struct vm *vm)
{
	return bed.vm->pid;
}

static void vm_kill(struct vm *vm)
{
	bed.n_killed++;
	fake_kill_keeper(bed.keeper);
}

static struct vm *vm_free(struct vm *vm)
{
	if (vm)
		free(vm_of(vm));
	bed.vm = NULL;
	return NULL;
}

static const struct vm_driver fake_driver = {
	.name = "fake",
	.check = vm_check,
	.start = vm_start,
	.adopt = vm_adopt,
	.pid = vm_pid,
	.kill = vm_kill,
	.free = vm_free,
};

/* Its process ends, and the driver says so. */
static void vm_end(enum vm_end_cause cause, const char *text)
{
	struct vm_end end = { .cause = cause };
	struct fake_vm *vm = bed.vm;
	siginfo_t si;

	(void)str_copy(end.text, sizeof(end.text), text);
	fake_kill_keeper(bed.keeper);
	CHECK_INT(waitid(P_PIDFD, (id_t)fake.keepers[bed.keeper].pidfd, &si, WEXITED | WNOWAIT), 0);
	vm->events->on_end(&vm->vm, &end, vm->owner);
}

static void gate_ends(void)
{
	struct fake_gate *g = bed.gate;

	g->events->on_end(g->userdata, NULL);
}

static bool is_fast(void *userdata, char *ret, size_t size)
{
	(void)str_copy(ret, size, bed.fast ? "a guest was booted" : "no guest was booted");
	return bed.fast;
}

/* ---- the bed ---- */

static void begin(void)
{
	struct vms_config vms = { .gate_program = "/x/nacre-gate",
				  .guest = "small",
				  .driver = &fake_driver,
				  .memory = (uint64_t)128 << 20,
				  .cpus = 2,
				  .is_fast = is_fast };
	struct instances_config config;
	struct error err = ERROR_INIT;

	fake_begin();
	memset(&bed, 0, sizeof(bed));
	vms.loop = fake.loop;
	CHECK_INT(vms_new(&bed.vms, &vms, &err), 0);
	config = fake_config();
	config.providers[INSTANCE_VM] = vms_provider(bed.vms);
	CHECK_INT(instances_new(&fake.all, &config, &err), 0);
}

static void end(void)
{
	fake.all = instances_free(fake.all);
	CHECK(!bed.gate);
	CHECK(!bed.vm);
	bed.vms = vms_free(bed.vms);
	fake_end_all();
}

struct told {
	unsigned n;
	char text[ERROR_TEXT_MAX];
};

static void told_by(void *userdata, struct instance *i, const struct error *err)
{
	struct told *t = userdata;

	t->n++;
	(void)str_copy(t->text, sizeof(t->text), err ? err->text : "");
}

static struct instance *create(struct told *told)
{
	const struct instance_spec spec = { .name = "v", .choice = { .kind = INSTANCE_VM } };
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, NULL, &spec, told_by, told, &i, &err), 0);
	return i;
}

static void bundle_comes(void)
{
	static const uint8_t der[] = { 0x30, 0x82, 0, 2, 5, 0, 0x30, 0x82, 0, 1, 7 };
	const struct gate_bytes bytes = { der, sizeof(der) };
	issuer_done_fn done = bed.bundle;

	bed.bundle = NULL;
	done(bed.bundle_userdata, &bytes, NULL);
}

static void network_comes(int r)
{
	struct segment_job *job = bed.network;

	job->work.busy = false;
	job->r = r;
	if (r < 0)
		(void)error_set(&job->err, r, "make the network of a guest");
	else
		job->made = (struct segment){ eventfd(0, EFD_CLOEXEC), eventfd(0, EFD_CLOEXEC) };
	bed.network_done(job);
}

static struct instance *boots(struct told *told)
{
	struct instance *i = create(told);

	bundle_comes();
	network_comes(0);
	return i;
}

static void guest_says(const struct bootmsg *m)
{
	static uint8_t frame[BOOTMSG_FRAME_MAX];
	struct error err = ERROR_INIT;
	int len = bootmsg_encode(m, frame, &err);

	CHECK(len > 0);
	bed.gate->events->on_frame(bed.gate->userdata, frame, (size_t)len);
}

static struct instance *ready(struct told *told)
{
	static const struct bootmsg says = { .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } };
	struct instance *i = boots(told);

	guest_says(&says);
	fake_yes(i, FAKE_OPEN);
	FAKE_UNTIL(told->n == 1);
	CHECK_STR(told->text, "");
	return i;
}

/* ---- making ---- */

static void is_made_of_gate_network_and_machine(void)
{
	struct told told = { .n = 0 };
	struct error err = ERROR_INIT;
	struct instance *i;
	struct bootmsg m;

	begin();
	i = create(&told);
	network_comes(0);
	CHECK(!bed.gate && !bed.vm);
	bundle_comes();
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

	fake_yes(i, FAKE_OPEN);
	FAKE_UNTIL(told.n == 1);
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK_STR(i->kernel, "");
	end();
	CHECK_INT(bed.n_killed, 0);
}

static void knows_the_kernel_that_it_has(void)
{
	struct told told = { .n = 0 };
	struct instance *i;
	unsigned n;

	begin();
	bed.fast = true;
	i = ready(&told);
	CHECK_STR(i->kernel, "6.1.0-x");
	CHECK_INT(bed.spec.accel, VM_ACCEL_HARDWARE);
	/* A gate that is connected to again tells it again. */
	n = fake.n_saved;
	guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } });
	CHECK_INT(fake.n_saved, n);
	end();
}

static void fails_with_what_cannot_be_made(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = create(&told);
	bundle_comes();
	network_comes(-EMFILE);
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "make the network of a guest") != NULL);
	CHECK(!fake_exists("base/inst.v"));
	instance_remove(i);
	fake_turns();

	bed.fail_gate = -ENOENT;
	i = boots(&told);
	FAKE_UNTIL(told.n == 2);
	CHECK(strstr(told.text, "instance v: start the gate") != NULL);
	instance_remove(i);
	fake_turns();

	bed.fail_gate = 0;
	bed.fail_set = 1;
	i = boots(&told);
	FAKE_UNTIL(told.n == 3);
	CHECK(strstr(told.text, "no guest set") != NULL);
	/* Its gate is killed, and reaped by its driver. */
	CHECK(bed.gate != NULL);
	gate_ends();
	CHECK(!bed.gate);
	instance_remove(i);
	fake_turns();

	bed.fail_set = 0;
	bed.fail_vm = -ENOMEM;
	(void)boots(&told);
	FAKE_UNTIL(told.n == 4);
	CHECK(strstr(told.text, "start the machine") != NULL);
	gate_ends();
	end();
}

static void fails_without_what_the_guest_is_to_trust(void)
{
	struct told told = { .n = 0 };
	struct error err = ERROR_INIT;

	begin();
	(void)create(&told);
	(void)error_refuse(&err, ERROR_PRECONDITION, "the key is gone");
	bed.bundle(bed.bundle_userdata, NULL, &err);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text, "instance v: the key is gone");
	network_comes(0);
	CHECK(!bed.vm);
	end();
}

static void may_be_stopped_before_there_is_a_machine(void)
{
	struct told told = { .n = 0 };

	begin();
	instance_stop(create(&told), NULL, NULL);
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "was stopped while it started") != NULL);
	CHECK(!bed.bundle);
	CHECK(!fake_exists("base/inst.v"));
	network_comes(0);
	CHECK(!bed.vm && !bed.gate);
	end();
}

/* ---- its end ---- */

static void tells_why_its_machine_ended(void)
{
	static const char console[] = "ok\r\nKernel panic - not syncing\r\n";
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = ready(&told);
	vm_end(VM_END_PANIC, "the guest's kernel panicked");
	CHECK_INT(i->state, INSTANCE_READY);
	bed.gate->console(bed.gate->console_userdata, (const uint8_t *)console, strlen(console),
			  strlen(console), NULL);
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "the guest's kernel panicked; its console ends: "
			     "ok | Kernel panic - not syncing");
	gate_ends();
	FAKE_UNTIL(!fake_exists("base/inst.v"));
	end();
}

static void does_not_wait_for_a_console_for_ever(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = ready(&told);
	vm_end(VM_END_CRASHED, "the machine crashed");
	FAKE_UNTIL(i->state == INSTANCE_FAILED);
	CHECK_STR(i->reason, "the machine crashed");
	gate_ends();
	instance_remove(i);
	fake_turns();
	/* Nor where its gate is gone meanwhile. */
	told.n = 0;
	i = ready(&told);
	vm_end(VM_END_CRASHED, "the machine crashed again");
	gate_ends();
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "the machine crashed again");
	end();
}

static void is_ended_for_what_guest_or_gate_say(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = boots(&told);
	guest_says(&(struct bootmsg){ .type = BOOTMSG_FAILED, .failed = { "no interface" } });
	CHECK_INT(bed.n_killed, 1);
	vm_end(VM_END_ASKED, "it was killed");
	bed.gate->console(bed.gate->console_userdata, (const uint8_t *)"x", 1, 1, NULL);
	FAKE_UNTIL(told.n == 1);
	CHECK_STR(told.text,
		  "instance v: the guest cannot go on: no interface; its console ends: x");
	gate_ends();
	instance_remove(i);
	fake_turns();

	i = boots(&told);
	bed.gate->events->on_state(bed.gate->userdata, GATE_FAILED, "it was foreign");
	CHECK_INT(bed.n_killed, 2);
	vm_end(VM_END_ASKED, "it was killed");
	gate_ends();
	FAKE_UNTIL(told.n == 2);
	CHECK_STR(told.text, "instance v: its gate cannot go on: it was foreign");
	instance_remove(i);
	fake_turns();

	(void)boots(&told);
	gate_ends();
	CHECK_INT(bed.n_killed, 3);
	vm_end(VM_END_ASKED, "it was killed");
	FAKE_UNTIL(told.n == 3);
	CHECK_STR(told.text, "instance v: its gate has ended: without a word");
	end();
}

static void a_guest_that_says_what_it_must_not_is_ended(void)
{
	struct told told = { .n = 0 };
	const uint8_t nonsense[] = { 1, 0, 0, 0, 0xff };

	begin();
	(void)boots(&told);
	bed.gate->events->on_frame(bed.gate->userdata, nonsense, sizeof(nonsense));
	CHECK_INT(bed.n_killed, 1);
	vm_end(VM_END_ASKED, "it was killed");
	gate_ends();
	FAKE_UNTIL(told.n == 1);
	CHECK(strstr(told.text, "is no frame") != NULL);
	end();
}

static void stops(void)
{
	struct told told = { .n = 0 };
	struct instance *i;

	begin();
	i = ready(&told);
	instance_stop(i, told_by, &told);
	CHECK_INT(fake_count(i, FAKE_SHUTDOWN), 1);
	vm_end(VM_END_POWERED_OFF, "it was switched off");
	/* No console is waited for. */
	CHECK(!bed.gate->console);
	gate_ends();
	FAKE_UNTIL(told.n == 2);
	CHECK(!fake_exists("base/inst.v"));
	CHECK_STR(fake.states, "v:spawning v:ready v:stopping v:removed ");
	end();
}

/* ---- the choice ---- */

static void says_why_none_can_be_made(void)
{
	struct provider *p;
	char why[128];
	struct error err = ERROR_INIT;

	begin();
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
	end();
}

/* ---- an earlier life ---- */

static struct instance *adopt(void)
{
	const struct instance_record r = { .id = "00000000000000aa",
					   .path = "v",
					   .owner = "",
					   .reason = "",
					   .cgroup = "base/inst.v",
					   .request = "",
					   .settings = "",
					   .choice = { .kind = INSTANCE_VM },
					   .state = INSTANCE_READY };
	struct error err = ERROR_INIT;

	CHECK_INT(instance_adopt(fake.all, &r, &err), 0);
	CHECK_STR(err.text, "");
	return instances_find(fake.all, "v");
}

static void takes_a_living_one_up_again(void)
{
	struct instance *i;

	begin();
	i = adopt();
	CHECK_INT(i->state, INSTANCE_READY);
	CHECK(bed.vm && bed.gate);
	CHECK_INT(i->pid, bed.vm->pid);
	guest_says(&(struct bootmsg){ .type = BOOTMSG_READY, .ready = { "1.0", "6.1" } });
	CHECK_STR(i->kernel, "6.1");
	fake_yes(i, FAKE_OPEN);
	end();
	CHECK_INT(bed.n_killed, 0);
}

static void knows_one_that_ended_meanwhile(void)
{
	struct instance *i;

	begin();
	bed.fail_adopt = -ESRCH;
	i = adopt();
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK_STR(i->reason, "its machine ended while the daemon was away");
	instance_remove(i);
	fake_turns();

	/* Nobody reaches one without a gate. */
	bed.fail_adopt = 0;
	bed.fail_connect = 1;
	i = adopt();
	CHECK_INT(i->state, INSTANCE_FAILED);
	CHECK(strstr(i->reason, "its gate") != NULL);
	vm_end(VM_END_UNSEEN, "it is gone");
	CHECK(!bed.vm);
	end();
}

UNIT_MAIN({ "is_made_of_gate_network_and_machine", is_made_of_gate_network_and_machine },
	  { "knows_the_kernel_that_it_has", knows_the_kernel_that_it_has },
	  { "fails_with_what_cannot_be_made", fails_with_what_cannot_be_made },
	  { "fails_without_what_the_guest_is_to_trust", fails_without_what_the_guest_is_to_trust },
	  { "may_be_stopped_before_there_is_a_machine", may_be_stopped_before_there_is_a_machine },
	  { "tells_why_its_machine_ended", tells_why_its_machine_ended },
	  { "does_not_wait_for_a_console_for_ever", does_not_wait_for_a_console_for_ever },
	  { "is_ended_for_what_guest_or_gate_say", is_ended_for_what_guest_or_gate_say },
	  { "a_guest_that_says_what_it_must_not_is_ended",
	    a_guest_that_says_what_it_must_not_is_ended },
	  { "stops", stops }, { "says_why_none_can_be_made", says_why_none_can_be_made },
	  { "takes_a_living_one_up_again", takes_a_living_one_up_again },
	  { "knows_one_that_ended_meanwhile", knows_one_that_ended_meanwhile })
