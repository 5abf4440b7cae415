/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_BED_TEST_H
#define NACRE_PROVIDER_VM_BED_TEST_H

#include "instance/fake_test.h"
#include "io/unix.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/footprint.h"
#include "isolate/cgroup/limits_words.h"
#include "net/port/inside.h"
#include "provider/vm.h"
#include "provider/vm_machine.h"
#include "provider/vm_template.h"
#include "unit.h"
#include "gates/issuer.h"
#include "vm/driver/gate.h"
#include "vm/guest/guest_set.h"
#include "wire/message/bootmsg.h"

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

struct fake_share {
	struct share *share;
	const struct share_ops *ops;
	struct share_change *change;
	char name[SHARE_NAME_MAX + 1];
	bool read_only, gone;
};

struct fake_vm {
	struct vm vm;
	const struct vm_events *events;
	void *owner;
	pid_t pid;
};

static struct {
	struct vms *vms;
	/* The requests that have reached the fakes. */
	issuer_done_fn bundle;
	void *bundle_userdata;
	struct segment_job *network;
	unsigned n_links; /* messages about the device of a pod */
	uint32_t link_mtu;
	char link_address[INSTANCE_ADDRESS_SIZE];
	segment_job_fn network_done;
	struct gate_start started;
	struct fake_gate *gate;
	struct fake_vm *vm;
	struct fake_share share;
	struct vm_spec spec;
	char port[VM_NAME_MAX + 1];
	uint8_t mac[6];
	uint8_t frame[BOOTMSG_FRAME_MAX];
	size_t frame_len;
	unsigned n_killed, n_gates_killed, n_sets, n_cut;
	size_t keeper;
	/* How it answers. */
	int fail_gate, fail_vm, fail_set, fail_adopt, fail_connect, fail_share;
	unsigned controllers;      /* of the host */
	struct instance_size size; /* that is asked for */
	char wall[64];             /* of the machine's leaf */
	bool fast, volumes;
	size_t n_share_pids;
	nsec_t heartbeat; /* 0: none */
	enum vm_state state;
	unsigned n_pressed;
	/* Its disks. */
	char slots[VM_SLOTS_MAX][VM_DISK_NAME_MAX + 1];
	vm_done_fn disk_done;
	void *disk_data;
	unsigned n_removes;
	bool fail_remove;
	bool templates;
	unsigned pool;             /* machines of it */
	struct pool_work *measure; /* of one of those */
	unsigned n_resumed;
	int boot_fd; /* of a machine without a gate: what the guest writes to */
	uint64_t programs;
	vm_done_fn saved;
	void *saved_data;
} bed, bed_last; /* and as it was when the last test ended */

struct bed_told {
	unsigned n;
	int code;
	enum error_kind kind;
	char text[ERROR_TEXT_MAX];
};

/* ---- what stands in for the others ---- */

unsigned cgroup_controllers(int dir_fd)
{
	return bed.controllers;
}

int limits_words_apply(int cgroup_fd, char *const *words, struct error *err)
{
	(void)str_copy(bed.wall, sizeof(bed.wall), words[0]);
	return 0;
}

int footprint_of_group(int cgroup_fd, const char *path, uint64_t ram, struct footprint *ret)
{
	*ret = (struct footprint){ .ram = ram / 64, .other = 1 << 20 };
	return 0;
}

void pool_submit(struct pool *p, struct pool_work *work)
{
	work->busy = true;
	bed.measure = work;
}

struct segment_plan segment_plan_usual(void)
{
	return (struct segment_plan){ .node = { AF_INET, 30, { 10, 0, 0, 1 } },
				      .guest = { AF_INET, 30, { 10, 0, 0, 2 } },
				      .guest_mac = { 2, 0, 0, 0, 0, 9 } };
}

void segment_pod_mac(unsigned n, uint8_t ret[LINK_MAC_LEN])
{
	const uint8_t mac[] = { 2, 0, 0, 0, 0, (uint8_t)(10 + n) };

	memcpy(ret, mac, sizeof(mac));
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
	for (size_t n = 0; n < SEGMENT_POD_TAPS; n++)
		s->pod_fds[n] = fd_close(s->pod_fds[n]);
}

/* No second network device in this bed. */
int netlink_open(struct netlink *ret, struct error *err)
{
	return error_set(err, -ENOSYS, "no network");
}

void netlink_done(struct netlink *nl)
{
	(void)nl;
}

int inside_of_socket(int socket_fd, struct error *err)
{
	return error_set(err, -ENOSYS, "no network");
}

int link_find(struct netlink *nl, const char *name, struct link *ret, struct error *err)
{
	return error_set(err, -ENOSYS, "no network");
}

int segment_add_device(int ns_fd, unsigned n, const struct cable_end *far, uint32_t mtu,
		       int *ret_tap_fd, struct error *err)
{
	return error_set(err, -ENOSYS, "no network");
}

void cable_cut(struct pool *pool, const char *name)
{
	bed.n_cut++;
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

void gate_kill(struct gate *g)
{
	bed.n_gates_killed++;
}

int gate_send(struct gate *g, const uint8_t *frame, size_t len)
{
	struct bootmsg m;

	/* The message behind it is BOOT. */
	if (bootmsg_next(&m, frame, len, NULL) > 0 && m.type == BOOTMSG_LINK) {
		CHECK_INT(m.link.device[5], 10);
		bed.n_links++;
		bed.link_mtu = m.link.mtu;
		(void)str_copy(bed.link_address, sizeof(bed.link_address), m.link.address);
		bed.frame_len = 0;
		return 0;
	}
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

int guest_set_open_tools(int root_fd, const char *name, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "there is none");
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

int cgroup_find_one(int dir_fd, const char *name, pid_t *ret, struct error *err)
{
	CHECK_STR(name, "virtiofsd");
	*ret = bed.n_share_pids ? getpid() : 0;
	return bed.n_share_pids > 1 ? error_refuse(err, ERROR_UNAVAILABLE, "too many") : 0;
}

int share_start(struct share *s, const struct share_config *config, const struct share_ops *ops,
		int *ret_fd, struct error *err)
{
	CHECK_STR(config->program, SHARE_PROGRAM);
	CHECK(config->cgroup_fd >= 0 && config->dir_fd >= 0 && config->proc_fd >= 0);
	if (bed.fail_share)
		return error_set(err, bed.fail_share, "start virtiofsd");
	bed.share = (struct fake_share){ .share = s, .ops = ops };
	*ret_fd = eventfd(0, EFD_CLOEXEC);
	return 0;
}

int share_adopt(struct share *s, const struct share_config *config, const struct share_ops *ops,
		pid_t pid, unsigned long long start_time, struct error *err)
{
	bed.share = (struct fake_share){ .share = s, .ops = ops };
	return 0;
}

void share_done(struct share *s)
{
	bed.share.gone = true;
}

int share_add(struct share *s, struct share_change *c, const char *name, int mount_fd,
	      bool read_only, share_change_fn done, struct error *err)
{
	CHECK(s == bed.share.share);
	(void)fd_close(mount_fd);
	(void)str_copy(bed.share.name, sizeof(bed.share.name), name);
	bed.share.read_only = read_only;
	bed.share.change = c;
	c->done = done;
	return 0;
}

int share_remove(struct share *s, struct share_change *c, const char *name, share_change_fn done,
		 struct error *err)
{
	CHECK(s == bed.share.share);
	(void)str_printf(bed.share.name, sizeof(bed.share.name), "-%s", name);
	bed.share.change = c;
	c->done = done;
	return 0;
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
	if (spec->fleeting)
		CHECK_STR(spec->words[2], "NACRE_TEMPLATE=1");
	else
		CHECK(spec->words[2] == NULL);
	if (spec->fleeting)
		bed.boot_fd = fcntl(spec->ports[0].fd, F_DUPFD_CLOEXEC, 3);
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

static int vm_identity(uint64_t *ret)
{
	*ret = bed.programs;
	return 0;
}

static int vm_snapshot(struct vm *vm, int state_fd, vm_done_fn done, void *data, struct error *err)
{
	CHECK(write(state_fd, "state", 5) == 5);
	bed.saved = done;
	bed.saved_data = data;
	return 0;
}

static int vm_resume(struct vm *vm, struct error *err)
{
	bed.n_resumed++;
	return 0;
}

static pid_t vm_pid(const struct vm *vm)
{
	return vm_of((struct vm *)(uintptr_t)vm)->pid;
}

static enum vm_state vm_state(const struct vm *vm)
{
	return bed.state;
}

static int vm_stop(struct vm *vm, struct error *err)
{
	bed.n_pressed++;
	return 0;
}

static void vm_kill(struct vm *vm)
{
	bed.n_killed++;
	fake_kill_keeper(bed.keeper);
}

static struct vm *vm_free(struct vm *vm)
{
	if (vm && bed.vm == vm_of(vm))
		bed.vm = NULL;
	if (vm)
		free(vm_of(vm));
	return NULL;
}

static int vm_put_disk(struct vm *vm, unsigned slot, const struct vm_disk *disk, vm_done_fn done,
		       void *data, struct error *err)
{
	CHECK(!bed.slots[slot][0]);
	(void)str_copy(bed.slots[slot], sizeof(bed.slots[slot]), disk->name);
	bed.disk_done = done;
	bed.disk_data = data;
	return 0;
}

static int vm_remove_disk(struct vm *vm, unsigned slot, vm_done_fn done, void *data,
			  struct error *err)
{
	if (bed.fail_remove)
		return error_refuse(err, ERROR_UNAVAILABLE, "the machine's monitor is gone");
	bed.slots[slot][0] = '\0';
	bed.n_removes++;
	bed.disk_done = done;
	bed.disk_data = data;
	return 0;
}

static bool vm_slot(const struct vm *vm, unsigned slot, const char **ret_name)
{
	*ret_name = bed.slots[slot];
	return bed.slots[slot][0] != '\0';
}

static const struct vm_driver fake_driver = {
	.name = "fake",
	.check = vm_check,
	.start = vm_start,
	.adopt = vm_adopt,
	.identity = vm_identity,
	.snapshot = vm_snapshot,
	.resume = vm_resume,
	.state = vm_state,
	.pid = vm_pid,
	.stop = vm_stop,
	.kill = vm_kill,
	.put_disk = vm_put_disk,
	.remove_disk = vm_remove_disk,
	.slot = vm_slot,
	.free = vm_free,
};

/* Its process ends, and the driver says so. */
__attribute__((unused)) static void bed_machine_ends(enum vm_end_cause cause, const char *text)
{
	struct vm_end end = { .cause = cause };
	struct fake_vm *vm = bed.vm;
	siginfo_t si;

	(void)str_copy(end.text, sizeof(end.text), text);
	fake_kill_keeper(bed.keeper);
	CHECK_INT(waitid(P_PIDFD, (id_t)fake.keepers[bed.keeper].pidfd, &si, WEXITED | WNOWAIT), 0);
	vm->events->on_end(&vm->vm, &end, vm->owner);
}

__attribute__((unused)) static void bed_gate_ends(void)
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

/* Behind what is set in bed. */
__attribute__((unused)) static void bed_begin(void)
{
	struct vms_config vms = { .gate_program = "/x/nacre-gate",
				  .guest = "small",
				  .driver = &fake_driver,
				  .memory = (uint64_t)128 << 20,
				  .cpus = 2,
				  .heartbeat = bed.heartbeat ? bed.heartbeat : NSEC_NEVER,
				  .templates = bed.templates,
				  .pool_size = bed.pool,
				  .is_fast = is_fast };
	struct instances_config config;
	struct error err = ERROR_INIT;

	fake_begin();
	vms.loop = fake.loop;
	CHECK_INT(vms_new(&bed.vms, &vms, &err), 0);
	config = fake_config();
	config.providers[INSTANCE_VM] = vms_provider(bed.vms);
	CHECK_INT(instances_new(&fake.all, &config, &err), 0);
}

__attribute__((unused)) static void bed_end(void)
{
	fake.all = instances_free(fake.all);
	/* Those that wait in the pool go with the provider. */
	CHECK(bed.pool || !bed.gate);
	CHECK(bed.pool || !bed.vm);
	bed.vms = vms_free(bed.vms);
	CHECK(!bed.gate);
	CHECK(!bed.vm);
	fake_end_all();
	bed_last = bed;
	memset(&bed, 0, sizeof(bed));
}

__attribute__((unused)) static void bed_told(void *userdata, struct instance *i,
					     const struct error *err)
{
	struct bed_told *t = userdata;

	t->n++;
	t->code = err ? err->code : 0;
	t->kind = err ? err->kind : ERROR_KIND_COUNT;
	(void)str_copy(t->text, sizeof(t->text), err ? err->text : "");
}

/* One of kind vm, "v". */
__attribute__((unused)) static struct instance *bed_create(struct bed_told *told)
{
	const struct instance_spec spec = { .name = "v",
					    .volumes = bed.volumes,
					    .size = bed.size,
					    .choice = { .kind = INSTANCE_VM } };
	struct error err = ERROR_INIT;
	struct instance *i = NULL;

	CHECK_INT(instance_create(fake.all, NULL, &spec, bed_told, told, &i, &err), 0);
	return i;
}

__attribute__((unused)) static void bed_bundle_comes(void)
{
	static const uint8_t der[] = { 0x30, 0x82, 0, 2, 5, 0, 0x30, 0x82, 0, 1, 7 };
	const struct gate_bytes bytes = { der, sizeof(der) };
	issuer_done_fn done = bed.bundle;

	bed.bundle = NULL;
	done(bed.bundle_userdata, &bytes, NULL);
}

__attribute__((unused)) static void bed_network_comes(int r)
{
	struct segment_job *job = bed.network;

	job->work.busy = false;
	job->r = r;
	if (r < 0)
		(void)error_set(&job->err, r, "make the network of a guest");
	else
		job->made = (struct segment){ eventfd(0, EFD_CLOEXEC),
					      eventfd(0, EFD_CLOEXEC),
					      { -1, -1, -1, -1 } };
	for (size_t n = 0; r == 0 && n < SEGMENT_POD_TAPS && job->plan.has_pod; n++)
		job->made.pod_fds[n] = eventfd(0, EFD_CLOEXEC);
	bed.network_done(job);
}

/* With what it waits for. */
__attribute__((unused)) static struct instance *bed_boots(struct bed_told *told)
{
	struct instance *i = bed_create(told);

	bed_bundle_comes();
	bed_network_comes(0);
	return i;
}

__attribute__((unused)) static void bed_guest_says(const struct bootmsg *m)
{
	static uint8_t frame[BOOTMSG_FRAME_MAX];
	struct error err = ERROR_INIT;
	int len = bootmsg_encode(m, frame, &err);

	CHECK(len > 0);
	bed.gate->events->on_frame(bed.gate->userdata, frame, (size_t)len);
}

/* Up to its keeper's hello. */
__attribute__((unused)) static struct instance *bed_ready(struct bed_told *told)
{
	static const struct bootmsg says = { .type = BOOTMSG_READY, .ready = { "1.0", "6.1.0-x" } };
	struct instance *i = bed_boots(told);

	bed_guest_says(&says);
	fake_yes(i, FAKE_OPEN);
	FAKE_UNTIL(told->n == 1);
	CHECK_STR(told->text, "");
	return i;
}

/* "v" of an earlier life. */
__attribute__((unused)) static struct instance *bed_adopt(void)
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

/* ---- templates ---- */

__attribute__((unused)) static void bed_machine_is_up(void)
{
	struct fake_vm *vm = bed.vm;

	vm->events->on_up(&vm->vm, vm->owner);
}

__attribute__((unused)) static void bed_says(const struct bootmsg *m)
{
	static uint8_t frame[BOOTMSG_FRAME_MAX];
	struct error err = ERROR_INIT;
	int len = bootmsg_encode(m, frame, &err);

	CHECK(write(bed.boot_fd, frame, (size_t)len) == len);
	bed.boot_fd = fd_close(bed.boot_fd);
}

/* Behind the first machine: the one that is to be saved runs, and waits. */
__attribute__((unused)) static void bed_begins_a_template(void)
{
	bed.network = NULL;
	FAKE_UNTIL(bed.network);
	bed_network_comes(0);
	CHECK(bed.spec.fleeting);
	CHECK(bed.spec.memory_fd >= 0 && bed.spec.state_fd < 0);
	CHECK_INT(bed.spec.uid, TEMPLATE_UID);
	CHECK_INT(bed.spec.memory_mib, 128);
}

__attribute__((unused)) static void bed_makes_a_template(void)
{
	struct fake_vm *vm;

	bed_begins_a_template();
	vm = bed.vm;
	bed_says(&(struct bootmsg){ .type = BOOTMSG_WAITING });
	FAKE_UNTIL(bed.saved);
	bed.saved(&vm->vm, NULL, bed.saved_data);
	bed.saved = NULL;
	CHECK_INT(bed.n_killed, 1);
	bed_machine_ends(VM_END_ASKED, "the machine was ended");
}

#endif
