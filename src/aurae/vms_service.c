/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/vms.pb-c.h"
#include "aurae/check.h"
#include "aurae/services.h"
#include "base/log/log.h"
#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/instance.h"
#include "pod/workload/failure.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/pool_call.h"
#include "runtime/services.h"
#include "runtime/start/machine_call.h"
#include "runtime/start/settings.h"
#include "store/root.h"
#include "vm/disk/disks.h"
#include "vm/qemu/qemu_driver.h"

/*
 * Theory of operation. What was allocated is a message in root.db, and here. A start opens the
 * files of that message on a thread and makes a workload of kind "vm" with the name of the machine
 * and the message among its settings; what became of that workload is the machine's state. One that
 * has ended stays until the next start, or until the machine is freed. Whatever is about to change
 * a machine marks it as busy until it has.
 */

#define VMS_MAX 1024
#define VMS_CALLS_MAX 16
#define VMS_GRACE (10 * NSEC_PER_SEC)

typedef Aurae__Vms__V0__VirtualMachine vms_machine;

struct aurae_vm {
	struct list link; /* aurae_vms.list */
	struct arena arena;
	const char *text; /* of its message */
	vms_machine *m;
	bool recorded; /* it is in the store: clients see it */
	bool busy;
};

/* ---- the machines ---- */

static void vm_free(struct aurae_vms *s, struct aurae_vm *vm)
{
	list_remove(&vm->link);
	s->n--;
	arena_done(&vm->arena);
	free(vm);
}

static struct aurae_vm *vm_new(struct aurae_vms *s, const char *text)
{
	struct aurae_vm *vm = calloc(1, sizeof(*vm));

	if (!vm)
		return NULL;
	vm->arena = (struct arena)ARENA_INIT;
	list_init(&vm->link);
	list_add_tail(&s->list, &vm->link);
	s->n++;
	vm->text = arena_strdup(&vm->arena, text);
	vm->m = settings_message(&vm->arena, &aurae__vms__v0__virtual_machine__descriptor, text);
	if (vm->m && vm->text)
		return vm;
	vm_free(s, vm);
	return NULL;
}

static struct aurae_vm *vms_find(const struct aurae_vms *s, const char *id)
{
	struct aurae_vm *vm;

	list_for_each (vm, &s->list, struct aurae_vm, link)
		if (str_eq(vm->m->id, id))
			return vm;
	return NULL;
}

/* A machine that a client may name. */
static struct aurae_vm *vms_target(const struct aurae_vms *s, const char *id, struct error *err)
{
	struct aurae_vm *vm = vms_find(s, id);

	if (vm && vm->recorded)
		return vm;
	if (str_empty(id))
		(void)error_field(err, ERROR_PRECONDITION, "vm_id", "required");
	else
		(void)error_field(err, ERROR_NOT_FOUND, "vm_id",
				  "no machine \"%.80s\" is allocated", id);
	return NULL;
}

/* The same, and nothing is being done to it. */
static struct aurae_vm *vms_target_idle(const struct aurae_vms *s, const char *id,
					struct error *err)
{
	struct aurae_vm *vm = vms_target(s, id, err);

	if (!vm || !vm->busy)
		return vm;
	(void)error_refuse(err, ERROR_UNAVAILABLE,
			   "another call starts or frees the machine %s (try again)", id);
	return NULL;
}

/* What its last start has made; NULL: nothing that is left. The arena is of the message that is
 * looked at. */
static struct workload *vms_workload(struct arena *a, const struct aurae_vms *s,
				     const struct aurae_vm *vm)
{
	struct workload *w = workloads_find(s->runtime->workloads, vm->m->id);

	if (!w || w->kind != WORKLOAD_VM || !str_eq(w->path, vm->m->id))
		return NULL;
	return settings_record(a, w->settings, &aurae__vms__v0__virtual_machine__descriptor) ? w
											     : NULL;
}

/* ---- what is asked for ---- */

static bool vms_is_nothing(const Aurae__Vms__V0__DriveMount *d)
{
	return str_empty(d->image_path) && str_empty(d->vm_path) && str_empty(d->fs_type);
}

static int vms_check_drives(const vms_machine *m, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	size_t n = 1;

	for (size_t i = 0; i < m->n_drive_mounts; i++) {
		const Aurae__Vms__V0__DriveMount *d = m->drive_mounts[i];

		if (vms_is_nothing(d))
			continue;
		(void)str_printf(field, sizeof(field), "machine.drive_mounts[%zu].%s", i,
				 !str_empty(d->vm_path)   ? "vm_path"
				 : !str_empty(d->fs_type) ? "fs_type"
							  : "image_path");
		if (!str_empty(d->vm_path) || !str_empty(d->fs_type))
			return error_field(err, ERROR_UNSUPPORTED, field,
					   "nothing of nacre runs in a machine that mounts it: "
					   "leave it out, and let the fstab in there do that");
		if (str_empty(d->image_path))
			return error_field(err, ERROR_PRECONDITION, field, "required");
		if (++n > VM_DISKS_MAX)
			return error_field(err, ERROR_PRECONDITION, "machine.drive_mounts",
					   "more than the limit of %d", VM_DISKS_MAX - 1);
	}
	return 0;
}

static int vms_check_size(const vms_machine *m, struct error *err)
{
	if (m->mem_size_mb < VM_MEMORY_MIB_MIN || m->mem_size_mb > VM_MEMORY_MIB_MAX)
		return error_field(err, ERROR_PRECONDITION, "machine.mem_size_mb",
				   "%u MiB are not from %d to %u", m->mem_size_mb,
				   VM_MEMORY_MIB_MIN, VM_MEMORY_MIB_MAX);
	if (m->vcpu_count < 1 || m->vcpu_count > VM_CPUS_MAX)
		return error_field(err, ERROR_PRECONDITION, "machine.vcpu_count",
				   "%u are not from 1 to %d", m->vcpu_count, VM_CPUS_MAX);
	return 0;
}

/* Its words, those of one argument apart, as a vector of the caller's. */
static int vms_words(const vms_machine *m, char ***ret, struct error *err)
{
	_cleanup_strv_ char **words = NULL;
	char field[ERROR_FIELD_MAX], word[VM_COMMAND_LINE_MAX + 1];

	for (size_t i = 0; i < m->n_kernel_args; i++) {
		const char *at = m->kernel_args[i];

		(void)str_printf(field, sizeof(field), "machine.kernel_args[%zu]", i);
		for (const char *c = at; *c; c++)
			if (*c < ' ' || *c > '~' || *c == '"')
				return error_field(err, ERROR_PRECONDITION, field,
						   "must be printable ASCII without '\"'");
		for (size_t n; *(at += strspn(at, " ")); at += n) {
			n = strcspn(at, " ");
			if (strv_len(words) == VM_WORDS_MAX ||
			    str_printf(word, sizeof(word), "%.*s", (int)n, at) < 0)
				return error_field(err, ERROR_PRECONDITION, field,
						   "must be at most %d words of %d bytes with "
						   "those in front",
						   VM_WORDS_MAX, VM_COMMAND_LINE_MAX);
			if (strv_add(&words, word) < 0)
				return error_set(err, -ENOMEM, "%s", field);
		}
	}
	*ret = TAKE_PTR(words);
	return 0;
}

static int vms_check(const vms_machine *m, struct error *err)
{
	_cleanup_strv_ char **words = NULL;
	int r;

	if (!m)
		return error_field(err, ERROR_PRECONDITION, "machine", "required");
	if (!name_is_label_of_any_case(m->id))
		return error_field(err, ERROR_PRECONDITION, "machine.id",
				   "\"%.80s\" must be 1 to %d of a-z, A-Z, 0-9 and '-', neither "
				   "first nor last a '-'",
				   m->id, NAME_LABEL_MAX);
	if (!m->root_drive)
		return error_field(err, ERROR_PRECONDITION, "machine.root_drive", "required");
	if (str_empty(m->root_drive->image_path))
		return error_field(err, ERROR_PRECONDITION, "machine.root_drive.image_path",
				   "required");
	if (str_empty(m->kernel_img_path))
		return error_field(err, ERROR_PRECONDITION, "machine.kernel_img_path", "required");
	r = vms_check_size(m, err);
	if (r == 0)
		r = vms_check_drives(m, err);
	return r < 0 ? r : vms_words(m, &words, err);
}

static int vms_check_free_name(const struct aurae_vms *s, const char *id, struct error *err)
{
	if (vms_find(s, id))
		return error_field(err, ERROR_EXISTS, "machine.id",
				   "a machine %s is allocated already", id);
	if (workloads_find(s->runtime->workloads, id) || instances_find(s->runtime->instances, id))
		return error_field(err, ERROR_EXISTS, "machine.id",
				   "the name %s is taken by a workload or a cell", id);
	if (s->n >= VMS_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "%d machines are allocated, the limit",
				    VMS_MAX);
	return 0;
}

/* ---- its files, on a thread ---- */

/* A call under way. Its message is a copy: the call may end while a thread works. */
struct vms_call {
	struct pool_call pool;
	struct aurae_vms *service;
	struct volume_guard guard;
	struct arena arena;
	const char *text;
	vms_machine *m;
	bool starts; /* else it only looks whether its files are there */
	struct hosted_wish *wish;
	struct error err;
};

static int vms_blame(struct error *err, int r, const char *field)
{
	if (r >= 0)
		return 0;
	if (err->kind == ERROR_INVALID)
		err->kind = ERROR_PRECONDITION;
	return error_wrap_field(err, r, field);
}

static int vms_open_drive(struct vms_call *c, const char *field, const char *path, bool read_only,
			  struct error *err)
{
	struct hosted_wish *wish = c->wish;
	struct vm_disk *disk = &wish->disks[wish->spec.n_disks++];
	int r;

	disk->format = VM_DISK_RAW;
	disk->writable = !read_only;
	disk->fd = disk_open_drive(path, disk->writable, err);
	if (disk->fd < 0)
		return vms_blame(err, disk->fd, field);
	r = volume_check_file(&c->guard, field, path, disk->fd, err);
	if (r < 0) {
		if (err->kind == ERROR_INVALID)
			err->kind = ERROR_PRECONDITION;
		return r;
	}
	return c->starts
		       ? vms_blame(err, disk_lock_drive(disk->fd, path, disk->writable, err), field)
		       : 0;
}

static int vms_open_drives(struct vms_call *c, struct error *err)
{
	const vms_machine *m = c->m;
	char field[ERROR_FIELD_MAX];
	int r = vms_open_drive(c, "machine.root_drive.image_path", m->root_drive->image_path,
			       m->root_drive->read_only, err);

	for (size_t i = 0; i < m->n_drive_mounts && r == 0; i++) {
		const Aurae__Vms__V0__DriveMount *d = m->drive_mounts[i];

		if (vms_is_nothing(d))
			continue;
		(void)str_printf(field, sizeof(field), "machine.drive_mounts[%zu].image_path", i);
		r = vms_open_drive(c, field, d->image_path, d->read_only, err);
	}
	return r;
}

static int vms_open(struct vms_call *c, struct error *err)
{
	static const char kernel[] = "machine.kernel_img_path";
	struct foreign_spec *spec = &c->wish->spec;
	int r = vm_qemu.check(err);

	spec->firmware = VM_FIRMWARE_NONE;
	spec->network = true;
	spec->memory_mib = c->m->mem_size_mb;
	spec->cpus = c->m->vcpu_count;
	if (r == 0 && c->starts)
		r = vms_blame(err, vm_room_check(spec->memory_mib, err), "machine.mem_size_mb");
	if (r < 0)
		return r;
	spec->kernel_fd = machine_kernel_open(&c->guard, kernel, c->m->kernel_img_path, err);
	if (spec->kernel_fd < 0) {
		if (err->kind == ERROR_INVALID)
			err->kind = ERROR_PRECONDITION;
		return spec->kernel_fd;
	}
	r = vms_open_drives(c, err);
	if (r == 0)
		r = vms_words(c->m, &c->wish->words, err);
	spec->words = (const char *const *)c->wish->words;
	return r;
}

static void vms_work(struct pool_call *p)
{
	struct vms_call *c = container_of(p, struct vms_call, pool);

	(void)vms_open(c, &c->err);
}

static void vms_call_free(struct vms_call *c)
{
	c->service->n_calls--;
	c->wish = hosted_wish_free(c->wish);
	arena_done(&c->arena);
	free(c);
}

static struct vms_call *vms_call_new(struct aurae_vms *s, const char *text, bool starts,
				     struct error *err)
{
	struct vms_call *c;

	if (s->n_calls >= VMS_CALLS_MAX) {
		(void)error_refuse(err, ERROR_EXHAUSTED,
				   "%d machines are being opened already, the limit",
				   VMS_CALLS_MAX);
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (c) {
		s->n_calls++;
		c->service = s;
		c->guard = s->runtime->volumes.guard;
		c->arena = (struct arena)ARENA_INIT;
		c->starts = starts;
		c->text = arena_strdup(&c->arena, text);
		c->m = settings_message(&c->arena, &aurae__vms__v0__virtual_machine__descriptor,
					text);
		c->wish = hosted_wish_new();
		if (c->text && c->m && c->wish)
			return c;
		vms_call_free(c);
	}
	(void)error_set(err, -ENOMEM, "open a machine");
	return NULL;
}

/* ---- Allocate ---- */

/* A change of the store, in the arena of its call. */
struct vms_change {
	struct rpc_call *call;
	struct aurae_vms *service;
	struct aurae_vm *vm;
};

static void allocate_recorded(void *userdata, const struct error *err)
{
	Aurae__Vms__V0__VmServiceAllocateResponse m =
		AURAE__VMS__V0__VM_SERVICE_ALLOCATE_RESPONSE__INIT;
	struct vms_change *c = userdata;

	if (err) {
		vm_free(c->service, c->vm);
		rpc_call_fail(c->call, err);
		return;
	}
	c->vm->recorded = true;
	m.vm_id = c->vm->m->id;
	rpc_call_reply(c->call, &m.base);
}

/* Another call may have had the name meanwhile. */
static int allocate_record(struct vms_call *v, struct rpc_call *call, struct error *err)
{
	struct vms_change *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct aurae_vms *s = v->service;
	const struct root_aurae_vm record = { .id = v->m->id, .text = v->text };
	int r = vms_check_free_name(s, v->m->id, err);

	if (r < 0)
		return r;
	if (!c)
		return error_set(err, -ENOMEM, "allocate a machine");
	*c = (struct vms_change){ .call = call, .service = s, .vm = vm_new(s, v->text) };
	if (!c->vm)
		return error_set(err, -ENOMEM, "allocate a machine");
	r = root_store_put_aurae_vm(s->store, &record, allocate_recorded, c, err);
	if (r < 0)
		vm_free(s, c->vm);
	return r;
}

static void allocate_reply(struct pool_call *p, struct rpc_call *call)
{
	struct vms_call *c = container_of(p, struct vms_call, pool);
	struct error err = ERROR_INIT;

	if (c->err.code)
		rpc_call_fail(call, &c->err);
	else if (allocate_record(c, call, &err) < 0)
		rpc_call_fail(call, &err);
}

static void allocate_over(struct pool_call *p)
{
	vms_call_free(container_of(p, struct vms_call, pool));
}

static void allocate(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	static const struct pool_call_ops ops = { vms_work, allocate_reply, allocate_over };
	const Aurae__Vms__V0__VmServiceAllocateRequest *q = (const void *)request;
	struct aurae_vms *s = userdata;
	struct error err = ERROR_INIT;
	struct vms_call *c = NULL;
	vms_machine m;
	char *text;
	int r = vms_check(q->machine, &err);

	if (r == 0)
		r = vms_check_free_name(s, q->machine->id, &err);
	if (r == 0) {
		m = *q->machine;
		m.auraed_address = (char *)(uintptr_t) "";
		text = settings_text(rpc_call_arena(call), &m.base);
		if (text)
			c = vms_call_new(s, text, false, &err);
		else
			(void)error_set(&err, -ENOMEM, "allocate a machine");
	}
	if (c)
		pool_call_start(&c->pool, &ops, s->runtime->pool, call);
	else
		rpc_call_fail(call, &err);
}

/* ---- Start ---- */

static void start_done(void *userdata, struct workload *w, const struct error *err)
{
	Aurae__Vms__V0__VmServiceStartResponse m = AURAE__VMS__V0__VM_SERVICE_START_RESPONSE__INIT;
	struct rpc_call *call = userdata;
	struct error own = ERROR_INIT;

	if (!err && !w)
		(void)error_refuse(&own, ERROR_ABORTED, "it was freed while it started");
	else if (!err && w->state == WORKLOAD_FAILED)
		(void)failure_tell(w, &own);
	if (err || own.code)
		rpc_call_fail(call, err ? err : &own);
	else
		rpc_call_reply(call, &m.base);
}

static int start_run(struct vms_call *c, struct rpc_call *call, struct error *err)
{
	_cleanup_strv_ char **command = NULL;
	const struct aurae_vm *vm = vms_find(c->service, c->m->id);
	struct pod_container_spec container = { .name = HOSTED_CONTAINER,
						.image = c->m->root_drive->image_path,
						.tty = true,
						.stdin_open = true };
	struct workload_spec spec = { .kind = WORKLOAD_VM,
				      .name = c->m->id,
				      .network = "own",
				      .containers = &container,
				      .n_containers = 1,
				      .machine = c->wish };
	struct workload *w;
	int r = strv_add(&command, c->m->kernel_img_path);

	for (size_t i = 0; r == 0 && c->wish->words && c->wish->words[i]; i++)
		r = strv_add(&command, c->wish->words[i]);
	container.command = command;
	spec.settings = settings_with_record(&c->arena, NULL, &vm->m->base);
	if (r < 0 || !spec.settings)
		return error_set(err, -ENOMEM, "start the machine %s", c->m->id);
	r = workload_run(c->service->runtime->workloads, &spec, start_done, call, &w, err);
	if (r == 0)
		c->wish = NULL;
	return r;
}

static void start_reply(struct pool_call *p, struct rpc_call *call)
{
	struct vms_call *c = container_of(p, struct vms_call, pool);
	struct error err = ERROR_INIT;

	if (c->err.code)
		rpc_call_fail(call, &c->err);
	else if (start_run(c, call, &err) < 0)
		rpc_call_fail(call, &err);
}

static void start_over(struct pool_call *p)
{
	struct vms_call *c = container_of(p, struct vms_call, pool);
	struct aurae_vm *vm = vms_find(c->service, c->m->id);

	if (vm)
		vm->busy = false;
	vms_call_free(c);
}

/* What was left of its last run is gone: its files are no longer taken by that. */
static void start_cleared(void *userdata, struct workload *w, const struct error *err)
{
	struct vms_call *c = userdata;

	(void)w;
	if (err) {
		(void)error_copy(&c->err, err);
		pool_call_end(&c->pool);
	} else {
		pool_call_submit(&c->pool, c->service->runtime->pool);
	}
}

static int start_begin(struct aurae_vms *s, const char *id, struct rpc_call *call,
		       struct error *err)
{
	static const struct pool_call_ops ops = { vms_work, start_reply, start_over };
	struct aurae_vm *vm = vms_target_idle(s, id, err);
	struct workload *w = vm ? vms_workload(rpc_call_arena(call), s, vm) : NULL;
	struct vms_call *c;

	if (!vm)
		return err->code;
	if (w && !workload_has_ended(w))
		return error_field(err, ERROR_PRECONDITION, "vm_id", "the machine %s runs already",
				   id);
	c = vms_call_new(s, vm->text, true, err);
	if (!c)
		return err->code;
	vm->busy = true;
	pool_call_begin(&c->pool, &ops, call);
	if (!w)
		pool_call_submit(&c->pool, s->runtime->pool);
	else if (workload_remove(w, true, start_cleared, c, &c->err) < 0)
		pool_call_end(&c->pool);
	return 0;
}

static void start(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Vms__V0__VmServiceStartRequest *q = (const void *)request;
	struct error err = ERROR_INIT;

	if (start_begin(userdata, q->vm_id, call, &err) < 0)
		rpc_call_fail(call, &err);
}

/* ---- Stop ---- */

static void stop_done(void *userdata, struct workload *w, const struct error *err)
{
	Aurae__Vms__V0__VmServiceStopResponse m = AURAE__VMS__V0__VM_SERVICE_STOP_RESPONSE__INIT;
	struct rpc_call *call = userdata;

	(void)w;
	if (err)
		rpc_call_fail(call, err);
	else
		rpc_call_reply(call, &m.base);
}

static void stop(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Vms__V0__VmServiceStopRequest *q = (const void *)request;
	struct aurae_vms *s = userdata;
	struct error err = ERROR_INIT;
	const struct aurae_vm *vm = vms_target(s, q->vm_id, &err);
	struct workload *w = vm ? vms_workload(rpc_call_arena(call), s, vm) : NULL;

	if (vm && (!w || workload_has_ended(w)))
		(void)error_field(&err, ERROR_PRECONDITION, "vm_id", "the machine %s does not run",
				  q->vm_id);
	if (err.code)
		rpc_call_fail(call, &err);
	else
		workload_stop(w, VMS_GRACE, stop_done, call);
}

/* ---- Free ---- */

static void free_done(void *userdata, const struct error *err)
{
	Aurae__Vms__V0__VmServiceFreeResponse m = AURAE__VMS__V0__VM_SERVICE_FREE_RESPONSE__INIT;
	struct vms_change *c = userdata;

	if (err) {
		c->vm->busy = false;
		rpc_call_fail(c->call, err);
		return;
	}
	vm_free(c->service, c->vm);
	rpc_call_reply(c->call, &m.base);
}

static void free_removed(void *userdata, struct workload *w, const struct error *err)
{
	struct vms_change *c = userdata;
	struct error own = ERROR_INIT;

	(void)w;
	if (err ||
	    root_store_drop_aurae_vm(c->service->store, c->vm->m->id, free_done, c, &own) < 0)
		free_done(c, err ? err : &own);
}

static void free_machine(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Aurae__Vms__V0__VmServiceFreeRequest *q = (const void *)request;
	struct arena *a = rpc_call_arena(call);
	struct aurae_vms *s = userdata;
	struct error err = ERROR_INIT;
	struct aurae_vm *vm = vms_target_idle(s, q->vm_id, &err);
	struct vms_change *c = arena_zalloc(a, 1, sizeof(*c));
	struct workload *w = vm ? vms_workload(a, s, vm) : NULL;

	if (vm && !c)
		(void)error_set(&err, -ENOMEM, "free the machine %s", q->vm_id);
	if (err.code) {
		rpc_call_fail(call, &err);
		return;
	}
	*c = (struct vms_change){ .call = call, .service = s, .vm = vm };
	vm->busy = true;
	if (!w)
		free_removed(c, NULL, NULL);
	else if (workload_remove(w, true, free_removed, c, &err) < 0)
		free_removed(c, NULL, &err);
}

/* ---- List ---- */

static void vms_show(struct arena *a, const struct aurae_vms *s, const struct aurae_vm *vm,
		     Aurae__Vms__V0__VirtualMachineSummary *to)
{
	const struct workload *w = vms_workload(a, s, vm);

	aurae__vms__v0__virtual_machine_summary__init(to);
	to->id = vm->m->id;
	to->status = (char *)(uintptr_t)(!w                      ? "Created"
					 : workload_has_ended(w) ? "Shutdown"
								 : "Running");
	to->mem_size_mb = vm->m->mem_size_mb;
	to->vcpu_count = vm->m->vcpu_count;
	to->kernel_img_path = vm->m->kernel_img_path;
	to->root_dir_path = vm->m->root_drive->image_path;
}

static void list(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	Aurae__Vms__V0__VmServiceListResponse m = AURAE__VMS__V0__VM_SERVICE_LIST_RESPONSE__INIT;
	const struct aurae_vms *s = userdata;
	struct arena *a = rpc_call_arena(call);
	Aurae__Vms__V0__VirtualMachineSummary *all = arena_alloc(a, (s->n + 1) * sizeof(*all));
	struct error err = ERROR_INIT;
	const struct aurae_vm *vm;

	(void)request;
	m.machines = arena_zalloc(a, s->n + 1, sizeof(*m.machines));
	if (!all || !m.machines) {
		(void)error_set(&err, -ENOMEM, "list the machines");
		rpc_call_fail(call, &err);
		return;
	}
	list_for_each (vm, &s->list, struct aurae_vm, link) {
		if (!vm->recorded)
			continue;
		vms_show(a, s, vm, &all[m.n_machines]);
		m.machines[m.n_machines] = &all[m.n_machines];
		m.n_machines++;
	}
	rpc_call_reply(call, &m.base);
}

static const struct rpc_method vms_methods[] = {
	{ "Allocate", &aurae__vms__v0__vm_service_allocate_request__descriptor,
	  &aurae__vms__v0__vm_service_allocate_response__descriptor, false, allocate },
	{ "Free", &aurae__vms__v0__vm_service_free_request__descriptor,
	  &aurae__vms__v0__vm_service_free_response__descriptor, false, free_machine },
	{ "Start", &aurae__vms__v0__vm_service_start_request__descriptor,
	  &aurae__vms__v0__vm_service_start_response__descriptor, false, start },
	{ "Stop", &aurae__vms__v0__vm_service_stop_request__descriptor,
	  &aurae__vms__v0__vm_service_stop_response__descriptor, false, stop },
	{ "List", &aurae__vms__v0__vm_service_list_request__descriptor,
	  &aurae__vms__v0__vm_service_list_response__descriptor, false, list },
};

const struct rpc_service aurae_vms_service = {
	.name = "aurae.vms.v0.VmService",
	.methods = vms_methods,
	.n_methods = ARRAY_SIZE(vms_methods),
};

/* ---- all of them ---- */

static int vms_load_one(void *data, const struct root_aurae_vm *record)
{
	struct aurae_vms *s = data;
	struct aurae_vm *vm = vm_new(s, record->text);

	if (vm && vm->m->root_drive) {
		vm->recorded = true;
		return 0;
	}
	if (vm)
		vm_free(s, vm);
	log_error("a machine of aurae.vms.v0 cannot be read", LOG_STR("id", record->id));
	return 0;
}

int aurae_vms_load(struct aurae_vms *s, struct root_store *store, struct error *err)
{
	*s = (struct aurae_vms){ .store = store };
	list_init(&s->list);
	return root_store_each_aurae_vm(store, vms_load_one, s, err);
}

void aurae_vms_done(struct aurae_vms *s)
{
	struct aurae_vm *vm;

	if (!s->store)
		return;
	list_for_each (vm, &s->list, struct aurae_vm, link)
		vm_free(s, vm);
	s->store = NULL;
}
