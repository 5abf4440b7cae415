/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/labels.h"
#include "runtime/start/machine_call.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/runtime.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "pod/workload/failure.h"
#include "pod/workload/hosted.h"
#include "pod/workload/workload.h"
#include "rpc/server/server.h"
#include "runtime/core/check.h"
#include "runtime/core/pool_call.h"
#include "runtime/core/request.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"
#include "vm/disk/disks.h"
#include "vm/disk/seed.h"
#include "vm/driver/firmware.h"
#include "vm/guest/kernel_image.h"
#include "vm/qemu/qemu_driver.h"

#define MACHINE_CALLS_MAX 16
#define MACHINE_MEMORY ((uint64_t)512 << 20)
#define MACHINE_ADDRESS "169.254.74.2"
#define MACHINE_CLOUD_MAX (900U * 1024)
#define MACHINE_NETWORK                                                                            \
	"version: 2\nethernets:\n  nacre:\n    match:\n      macaddress: '02:6e:61:63:72:02'\n"    \
	"    addresses: [169.254.74.2/30]\n"

/* A request in hand. Its message is copied: the call may end while a thread works. */
struct machine_call {
	struct pool_call pool;
	struct runtime_service *service;
	Aurae__Runtime__V0__RunVirtualMachineRequest *q;
	const char *network;
	char key[REQUEST_KEY_SIZE];
	int root_fd;
	struct volume_guard guard;
	struct hosted_wish *wish;
	workload_fn done; /* userdata: the RPC call */
	bool drops_failed;
	struct error err;
};

static void machine_call_free(struct machine_call *c)
{
	c->service->n_machine_calls--;
	if (c->q)
		aurae__runtime__v0__run_virtual_machine_request__free_unpacked(c->q, NULL);
	c->wish = hosted_wish_free(c->wish);
	free(c);
}

/* ---- what can be said at once ---- */

static int machine_check_boot(const Aurae__Runtime__V0__RunVirtualMachineRequest *q,
			      enum vm_firmware *ret, struct error *err)
{
	static const char *const firmware[] = { "bios", "uefi" };
	const char *word;
	int r;

	r = check_word("firmware", q->firmware, firmware, ARRAY_SIZE(firmware), &word, err);
	if (r < 0)
		return r;
	*ret = word == firmware[1] ? VM_FIRMWARE_UEFI : VM_FIRMWARE_BIOS;
	if (!str_empty(q->kernel)) {
		*ret = VM_FIRMWARE_NONE;
		return str_empty(q->firmware)
			       ? 0
			       : error_field(err, ERROR_INVALID, "firmware", "not with a kernel");
	}
	if (!str_empty(q->initrd))
		return error_field(err, ERROR_INVALID, "initrd", "only with a kernel");
	if (q->n_args)
		return error_field(err, ERROR_INVALID, "args", "only with a kernel");
	if (str_empty(q->image))
		return error_field(err, ERROR_INVALID, "image", "required, without a kernel");
	return 0;
}

static int machine_check_size(const Aurae__Runtime__V0__RunVirtualMachineRequest *q,
			      struct error *err)
{
	uint64_t min = (uint64_t)VM_MEMORY_MIB_MIN << 20, max = (uint64_t)VM_MEMORY_MIB_MAX << 20;
	int r;

	if (q->vcpus > VM_CPUS_MAX)
		return error_field(err, ERROR_INVALID, "vcpus", "%u are more than the limit of %d",
				   q->vcpus, VM_CPUS_MAX);
	if (q->memory && (q->memory < min || q->memory > max))
		return error_field(
			err, ERROR_INVALID, "memory", "%llu bytes are not from %d MiB to %u MiB",
			(unsigned long long)q->memory, VM_MEMORY_MIB_MIN, VM_MEMORY_MIB_MAX);
	r = vm_room_check((unsigned)((q->memory ?: MACHINE_MEMORY) >> 20), err);
	return r < 0 ? error_wrap_field(err, r, "memory") : 0;
}

static int machine_check_words(const Aurae__Runtime__V0__RunVirtualMachineRequest *q,
			       struct error *err)
{
	char field[ERROR_FIELD_MAX];

	if (q->n_args > VM_WORDS_MAX)
		return error_field(err, ERROR_INVALID, "args", "%zu are more than the limit of %d",
				   q->n_args, VM_WORDS_MAX);
	for (size_t i = 0; i < q->n_args; i++) {
		(void)str_printf(field, sizeof(field), "args[%zu]", i);
		if (str_empty(q->args[i]))
			return error_field(err, ERROR_INVALID, field, "empty");
		for (const char *c = q->args[i]; *c; c++)
			if (*c <= ' ' || *c > '~' || *c == '"')
				return error_field(err, ERROR_INVALID, field,
						   "a word is printable ASCII without blanks "
						   "and '\"'");
	}
	return 0;
}

static int machine_check(struct machine_call *c, struct error *err)
{
	static const char *const networks[] = { "none", "own" };
	const Aurae__Runtime__V0__RunVirtualMachineRequest *q = c->q;
	struct foreign_spec *spec = &c->wish->spec;
	int r;

	r = check_name("meta.name", q->meta ? q->meta->name : "", err);
	if (r == 0)
		r = labels_check(q->meta, err);
	if (r == 0)
		r = check_name("disk", q->disk, err);
	if (r == 0 && !str_empty(q->disk) && str_empty(q->image))
		r = error_field(err, ERROR_INVALID, "disk", "only with an image");
	if (r == 0)
		r = machine_check_boot(q, &spec->firmware, err);
	if (r == 0)
		r = machine_check_size(q, err);
	if (r == 0)
		r = machine_check_words(q, err);
	if (r == 0)
		r = check_word("network", q->network, networks, ARRAY_SIZE(networks), &c->network,
			       err);
	if (r == 0 &&
	    q->user_data.len + q->meta_data.len + q->network_config.len > MACHINE_CLOUD_MAX)
		r = error_field(err, ERROR_INVALID, "user_data",
				"more than %u bytes with the other data of cloud-init",
				MACHINE_CLOUD_MAX);
	spec->network = c->network == networks[1];
	spec->memory_mib = (unsigned)((q->memory ? q->memory : MACHINE_MEMORY) >> 20);
	spec->cpus = q->vcpus ? q->vcpus : 1;
	return r;
}

/* ---- on the thread ---- */

static int machine_blame(struct error *err, int r, const char *field)
{
	return r < 0 ? error_wrap_field(err, r, field) : 0;
}

/* Of a kept disk alone its base is what it was made over. */
static int machine_find_base(struct machine_call *c, struct error *err)
{
	struct disk_kept *disks = NULL;
	char *base = NULL;
	size_t n = 0;
	int r;

	if (!str_has_prefix(c->q->image, "disk://"))
		return 0;
	r = disks_list(c->root_fd, &disks, &n, err);
	for (size_t i = 0; i < n && r == 0 && !base; i++)
		if (str_eq(disks[i].name, c->q->disk))
			base = strdup(disks[i].base);
	free(disks);
	if (r < 0)
		return r;
	if (!base)
		return error_field(err, ERROR_NOT_FOUND, "image",
				   "there is no disk %.63s (nacre vm disks shows them)",
				   c->q->disk);
	free(c->q->image);
	c->q->image = base;
	return 0;
}

static int machine_open_disk(struct machine_call *c, struct error *err)
{
	const Aurae__Runtime__V0__RunVirtualMachineRequest *q = c->q;
	struct disk_base base = DISK_BASE_NONE;
	struct hosted_wish *wish = c->wish;
	int r;

	if (str_empty(q->image))
		return 0;
	r = machine_find_base(c, err);
	if (r < 0)
		return r;
	r = machine_blame(err, disk_open_base(&base, q->image, q->format, err), "image");
	if (r < 0)
		return r;
	wish->bases[0] = (struct vm_disk){ .fd = base.fd, .format = base.format };
	r = volume_check_file(&c->guard, "image", q->image, base.fd, err);
	if (r < 0)
		return r;
	r = str_empty(q->disk)
		    ? disk_make_throw_away(c->root_fd, &base, q->disk_size, err)
		    : disk_open_kept(c->root_fd, q->disk, q->image, &base, q->disk_size, err);
	if (r < 0)
		/* What is full or broken is no size. */
		return !str_empty(q->disk)          ? machine_blame(err, r, "disk")
		       : err->kind == ERROR_INVALID ? machine_blame(err, r, "disk_size")
						    : r;
	wish->disks[wish->spec.n_disks++] = (struct vm_disk){
		.fd = r, .format = VM_DISK_QCOW2, .writable = true, .base = &wish->bases[0]
	};
	return 0;
}

int machine_kernel_open(const struct volume_guard *guard, const char *field, const char *path,
			struct error *err)
{
	_cleanup_fd_ int fd = disk_open_file(path, err);
	uint8_t head[KERNEL_IMAGE_HEAD];
	ssize_t n;
	int r;

	if (fd < 0)
		return machine_blame(err, fd, field);
	r = volume_check_file(guard, field, path, fd, err);
	if (r < 0)
		return r;
	n = sysio_pread(fd, head, sizeof(head), 0);
	r = n < 0 ? error_set(err, -errno, "read %.300s", path)
		  : kernel_image_check_head(head, (size_t)n, err);
	return r < 0 ? machine_blame(err, r, field) : TAKE_FD(fd);
}

static int machine_open_boot(struct machine_call *c, struct error *err)
{
	const Aurae__Runtime__V0__RunVirtualMachineRequest *q = c->q;
	struct foreign_spec *spec = &c->wish->spec;
	int r;

	r = machine_blame(err, firmware_check(spec->firmware, err), "firmware");
	if (r < 0)
		return r;
	if (spec->firmware == VM_FIRMWARE_UEFI) {
		spec->vars_fd = disk_open_vars(c->root_fd, q->disk, err);
		return machine_blame(err, MIN(spec->vars_fd, 0), "firmware");
	}
	if (spec->firmware != VM_FIRMWARE_NONE)
		return 0;
	spec->kernel_fd = machine_kernel_open(&c->guard, "kernel", q->kernel, err);
	if (spec->kernel_fd < 0)
		return spec->kernel_fd;
	if (str_empty(q->initrd))
		return 0;
	spec->initrd_fd = disk_open_file(q->initrd, err);
	if (spec->initrd_fd < 0)
		return machine_blame(err, spec->initrd_fd, "initrd");
	return volume_check_file(&c->guard, "initrd", q->initrd, spec->initrd_fd, err);
}

/* One of a kept disk is the same each time, so that cloud-init sees a first boot once. */
static int machine_meta_data(const struct machine_call *c, char *ret, size_t size,
			     struct error *err)
{
	const Aurae__Runtime__V0__RunVirtualMachineRequest *q = c->q;
	const char *name = q->meta && !str_empty(q->meta->name) ? q->meta->name : "machine";
	char id[ID_SIZE];
	int r = id_new(id);

	if (r < 0)
		return error_set(err, r, "draw an id");
	(void)str_printf(ret, size, "instance-id: nacre-%s\nlocal-hostname: %s\n",
			 str_empty(q->disk) ? id : q->disk, name);
	return 0;
}

static int machine_make_seed(struct machine_call *c, struct error *err)
{
	const Aurae__Runtime__V0__RunVirtualMachineRequest *q = c->q;
	struct hosted_wish *wish = c->wish;
	const char *network = wish->spec.network ? MACHINE_NETWORK : "";
	struct seed_file files[3] = { { "user-data", q->user_data.data, q->user_data.len },
				      { "meta-data", q->meta_data.data, q->meta_data.len },
				      { "network-config", q->network_config.data,
					q->network_config.len } };
	char meta[256];
	size_t n = ARRAY_SIZE(files);
	uint8_t *image = NULL;
	int fd, r;

	if (!files[1].len) {
		r = machine_meta_data(c, meta, sizeof(meta), err);
		if (r < 0)
			return r;
		files[1] = (struct seed_file){ "meta-data", meta, strlen(meta) };
	}
	if (!files[2].len)
		files[2] = (struct seed_file){ "network-config", network, strlen(network) };
	n -= files[2].len == 0;
	r = seed_make(&image, files, n, err);
	if (r < 0)
		return machine_blame(err, r, "user_data");
	fd = disk_make_read_only(c->root_fd, image, SEED_BYTES, err);
	free(image);
	if (fd < 0)
		return fd;
	wish->disks[wish->spec.n_disks++] = (struct vm_disk){ .fd = fd };
	return 0;
}

static int machine_copy_words(struct machine_call *c, struct error *err)
{
	struct hosted_wish *wish = c->wish;

	for (size_t i = 0; i < c->q->n_args; i++)
		if (strv_add(&wish->words, c->q->args[i]) < 0)
			return error_set(err, -ENOMEM, "the words of a kernel");
	wish->spec.words = (const char *const *)wish->words;
	return 0;
}

static void machine_call_work(struct pool_call *p)
{
	struct machine_call *c = container_of(p, struct machine_call, pool);
	struct error *err = &c->err;
	int r = vm_qemu.check(err);

	if (r == 0)
		r = machine_open_disk(c, err);
	if (r == 0)
		r = machine_open_boot(c, err);
	if (r == 0)
		r = machine_make_seed(c, err);
	if (r == 0)
		r = machine_copy_words(c, err);
	if (r < 0 && !err->code)
		(void)error_set(err, r, "make a machine");
}

/* ---- back on the loop ---- */

static void machine_call_done(void *userdata, struct workload *w, const struct error *err)
{
	struct rpc_call *call = userdata;
	Aurae__Runtime__V0__RunVirtualMachineResponse m =
		AURAE__RUNTIME__V0__RUN_VIRTUAL_MACHINE_RESPONSE__INIT;
	struct error own = ERROR_INIT;

	if (!err && !w)
		(void)error_refuse(&own, ERROR_ABORTED, "it was removed while it started");
	else if (!err && w->state == WORKLOAD_FAILED)
		(void)failure_tell(w, &own);
	if (err || own.code) {
		rpc_call_fail(call, err ? err : &own);
		return;
	}
	m.id = w->id;
	m.name = w->path;
	m.pid = pod_container_pid(w->containers[0]);
	m.state = (char *)(uintptr_t)workload_state_word(w->state);
	if (str_eq(w->network, "own"))
		m.address = (char *)(uintptr_t)MACHINE_ADDRESS;
	rpc_call_reply(call, &m.base);
}

/* What is shown as its command: how it boots. */
static char **machine_command(const Aurae__Runtime__V0__RunVirtualMachineRequest *q)
{
	char **words = NULL;
	int r = strv_add(&words, !str_empty(q->kernel)     ? q->kernel
				 : !str_empty(q->firmware) ? q->firmware
							   : "bios");

	for (size_t i = 0; r == 0 && i < q->n_args; i++)
		r = strv_add(&words, q->args[i]);
	if (r == 0)
		return words;
	strv_free(words);
	return NULL;
}

static int machine_call_begin(struct machine_call *c, struct rpc_call *call, struct error *err)
{
	_cleanup_strv_ char **command = machine_command(c->q);
	const struct pod_container_spec container = {
		.name = HOSTED_CONTAINER,
		.image = str_empty(c->q->image) ? NULL : c->q->image,
		.command = command,
		.tty = true,
		.stdin_open = true,
	};
	struct workload_spec spec = {
		.kind = WORKLOAD_VM,
		.name = c->q->meta ? c->q->meta->name : "",
		.network = c->network,
		.auto_remove = c->q->auto_remove,
		.drops_failed = c->drops_failed,
		.request = c->key,
		.containers = &container,
		.n_containers = 1,
		.machine = c->wish,
	};
	struct workload *w;
	int r;

	if (!command)
		return error_set(err, -ENOMEM, "a machine");
	r = settings_add_labels(rpc_call_arena(call), &spec.settings, c->q->meta, err);
	if (r == 0)
		r = workload_run(c->service->workloads, &spec, c->done, call, &w, err);
	if (r == 0)
		c->wish = NULL;
	return r;
}

static void machine_call_reply(struct pool_call *p, struct rpc_call *call)
{
	struct machine_call *c = container_of(p, struct machine_call, pool);
	struct error err = ERROR_INIT;

	if (c->err.code)
		rpc_call_fail(call, &c->err);
	else if (machine_call_begin(c, call, &err) < 0)
		rpc_call_fail(call, &err);
}

static void machine_call_over(struct pool_call *p)
{
	machine_call_free(container_of(p, struct machine_call, pool));
}

/* A copy, since the message goes with its call. */
static Aurae__Runtime__V0__RunVirtualMachineRequest *machine_copy(const ProtobufCMessage *q)
{
	size_t len = protobuf_c_message_get_packed_size(q);
	uint8_t *data = malloc(len + 1);
	ProtobufCMessage *copy;

	if (!data)
		return NULL;
	(void)protobuf_c_message_pack(q, data);
	copy = protobuf_c_message_unpack(q->descriptor, NULL, len, data);
	free(data);
	return (Aurae__Runtime__V0__RunVirtualMachineRequest *)(void *)copy;
}

static struct machine_call *machine_call_new(struct runtime_service *s, const ProtobufCMessage *q,
					     struct error *err)
{
	struct machine_call *c;

	if (s->n_machine_calls >= MACHINE_CALLS_MAX) {
		(void)error_refuse(err, ERROR_EXHAUSTED,
				   "%d machines are being made already, the limit",
				   MACHINE_CALLS_MAX);
		return NULL;
	}
	c = calloc(1, sizeof(*c));
	if (c) {
		s->n_machine_calls++;
		c->service = s;
		c->root_fd = s->volumes.guard.root_fd;
		c->guard = s->volumes.guard;
		c->q = machine_copy(q);
		c->wish = hosted_wish_new();
		if (c->q && c->wish)
			return c;
		machine_call_free(c);
	}
	(void)error_set(err, -ENOMEM, "make a machine");
	return NULL;
}

void machine_call_run_as(struct rpc_call *call,
			 const Aurae__Runtime__V0__RunVirtualMachineRequest *request,
			 bool drops_failed, workload_fn done, struct runtime_service *s)
{
	static const struct pool_call_ops ops = { machine_call_work, machine_call_reply,
						  machine_call_over };
	struct error err = ERROR_INIT;
	struct machine_call *c = machine_call_new(s, &request->base, &err);
	struct target found;
	int r;

	if (!c) {
		rpc_call_fail(call, &err);
		return;
	}
	c->done = done;
	c->drops_failed = drops_failed;
	r = machine_check(c, &err);
	if (r == 0)
		r = request_find(s, &request->base, c->q->request_id, c->key, &found, &err);
	if (r == 0) {
		pool_call_start(&c->pool, &ops, s->volumes.pool, call);
		return;
	}
	machine_call_free(c);
	if (r > 0)
		workload_wait_started(found.workload, done, call);
	else
		rpc_call_fail(call, &err);
}

void machine_call_run(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	machine_call_run_as(
		call, (const Aurae__Runtime__V0__RunVirtualMachineRequest *)(const void *)request,
		false, machine_call_done, userdata);
}
