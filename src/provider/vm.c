/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "instance/link.h"
#include "instance/model.h"
#include "instance/place.h"
#include "instance/spawn.h"
#include "io/unix.h"
#include "provider/vm_machine.h"
#include "provider/vm_pool.h"
#include "provider/vm_size.h"
#include "provider/vm_template.h"
#include "vm/guest/guest_set.h"

/* An emulated machine on a busy host takes its time. */
#define VMS_HELLO_LIMIT (180 * NSEC_PER_SEC)
/* Its keeper, then its power button (vm_end.c), then the guest's own patience with its keeper. */
#define VMS_STOP_GRACE (30 * NSEC_PER_SEC)

static struct vms *vms_of(struct provider *p)
{
	return container_of(p, struct vms, provider);
}

static int vms_plan(struct provider *p, struct error *err)
{
	const struct vms_config *c = &vms_of(p)->config;
	struct guest_set set = GUEST_SET_INIT;
	struct error own = ERROR_INIT;
	int r;

	r = c->driver->check(err);
	if (r < 0)
		return r;
	r = guest_set_open(&set, c->root_fd, c->guest, &own);
	guest_set_done(&set);
	return r < 0 ? error_refuse(err, ERROR_PRECONDITION, "%s", error_text(&own)) : 0;
}

static int vms_open_tools(struct provider *p, struct error *err)
{
	const struct vms_config *c = &vms_of(p)->config;
	struct error own = ERROR_INIT;
	int r = guest_set_open_tools(c->root_fd, c->guest, &own);

	return r < 0 ? error_refuse(err, ERROR_PRECONDITION, "%s", error_text(&own)) : r;
}

static int vms_plan_nested(struct provider *p, const struct instance *around,
			   const struct instance_size *wish, struct instance_machine *ret,
			   struct error *err)
{
	const struct vms_config *c = &vms_of(p)->config;
	struct guest_set set = GUEST_SET_INIT;
	int r = guest_set_open(&set, c->root_fd, c->guest, err);

	if (r == 0)
		r = vm_size_plan_nested(c, &set.info.desc, wish, around, ret, err);
	guest_set_done(&set);
	return r;
}

static bool vms_is_preferred(struct provider *p, char *ret, size_t size)
{
	const struct vms_config *c = &vms_of(p)->config;
	struct error err = ERROR_INIT;

	if (!c->is_fast(c->userdata, ret, size))
		return false;
	if (vms_plan(p, &err) == 0)
		return true;
	(void)str_copy(ret, size, error_text(&err));
	return false;
}

static int vms_draw(struct instance *i)
{
	return vm_pool_take(vms_of(i->provider)->pool, i) ? 0 : id_new(i->id);
}

static void vms_withdraw(struct instance *i)
{
	vm_pool_return(i);
}

/* Of the pool, and that of a template. */
static const char *vms_warm(struct provider *p, size_t n)
{
	const struct vms *v = vms_of(p);
	const char *making = templates_id(v->templates);

	if (!making)
		return vm_pool_id(v->pool, n);
	return n == 0 ? making : vm_pool_id(v->pool, n - 1);
}

static void vms_look(struct provider *p, struct provider_warm *ret)
{
	vm_pool_look(vms_of(p)->pool, ret);
}

static int vms_open_place(struct instance *i, struct error *err)
{
	int r = place_make_dir(i, err);

	if (r == 0)
		r = place_open_cgroup(i, err);
	if (r == 0 && !machine_new(vms_of(i->provider), i))
		r = error_set(err, -ENOMEM, "instance %s", i->path);
	return r;
}

static int vms_create(struct instance *i, struct error *err)
{
	int r;

	if (i->own)
		return vm_pool_give(i, err);
	r = FAILPOINT("vm.place");
	if (r < 0)
		return error_set(err, r, "make instance %s", i->path);
	r = vms_open_place(i, err);
	if (r < 0)
		return r;
	FAILPOINT_AFTER("vm.place");
	r = machine_begin(i->own, err);
	return r < 0 ? r : 1;
}

static int vms_connect(struct instance *i, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	int fd = unix_connect(i->dir_fd, "rpc.sock", SOCK_STREAM, err);

	if (fd < 0)
		return error_wrap(err, fd, "reach the gate");
	*ret_rpc_fd = fd;
	*ret_fd_fd = -1;
	return 0;
}

/* By its group and its sockets: its pid is only for people. */
static int vms_adopt(struct instance *i, pid_t pid, unsigned long long start_time,
		     struct error *err)
{
	int r = vms_open_place(i, err);

	(void)pid;
	(void)start_time;
	if (r == 0)
		r = machine_adopt(i->own, err);
	return r < 0 ? r : instance_connect_own(i, err);
}

static void vms_stopping(struct instance *i)
{
	if (i->own)
		machine_stopping(i->own);
}

static void vms_kill(struct instance *i)
{
	if (i->own)
		machine_kill(i->own);
}

static int vms_put_disk(struct instance *i, const char *name, int fd,
			char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
			struct error *err)
{
	if (!i->own)
		return error_refuse(err, ERROR_UNAVAILABLE, "the instance %s has ended", i->path);
	return machine_put_disk(i->own, name, fd, ret_serial, done, userdata, err);
}

static int vms_claim_disk(struct instance *i, const char *name, struct error *err)
{
	if (!i->own)
		return error_refuse(err, ERROR_UNAVAILABLE, "the instance %s has ended", i->path);
	return machine_claim_disk(i->own, name, err);
}

static void vms_drop_disk(struct instance *i, const char *name)
{
	if (i->own)
		machine_drop_disk(i->own, name);
}

static int vms_put_volume(struct instance *i, const char *name, int mount_fd, bool read_only,
			  peer_done_fn done, void *userdata, struct error *err)
{
	struct machine *m = i->own;

	if (m)
		return vm_volumes_put(&m->volumes, name, mount_fd, read_only, done, userdata, err);
	(void)fd_close(mount_fd);
	return error_refuse(err, ERROR_UNAVAILABLE, "the instance %s has ended", i->path);
}

static void vms_drop_volume(struct instance *i, const char *name)
{
	struct machine *m = i->own;

	if (m)
		vm_volumes_drop(&m->volumes, name);
}

static void vms_close(struct instance *i)
{
	if (i->own)
		machine_leave(i->own, i->ended);
	i->own = NULL;
}

static const char *const vms_leaves[] = { "gate", "vmm", NULL };
static const char *const vms_more_leaves[] = { VM_VOLUMES_LEAF, NULL };
static const char *const vms_sockets[] = { "rpc.sock", "gate.sock", "qmp.sock", NULL };

static const struct provider_ops vms_ops = {
	.stop_grace = VMS_STOP_GRACE,
	.leaves = vms_leaves,
	.more_leaves = vms_more_leaves,
	.sockets = vms_sockets,
	.plan = vms_plan,
	.plan_nested = vms_plan_nested,
	.open_tools = vms_open_tools,
	.is_preferred = vms_is_preferred,
	.draw = vms_draw,
	.withdraw = vms_withdraw,
	.ahead = vms_warm,
	.look = vms_look,
	.create = vms_create,
	.connect = vms_connect,
	.adopt = vms_adopt,
	.put_disk = vms_put_disk,
	.claim_disk = vms_claim_disk,
	.drop_disk = vms_drop_disk,
	.stopping = vms_stopping,
	.put_volume = vms_put_volume,
	.drop_volume = vms_drop_volume,
	.kill = vms_kill,
	.close = vms_close,
};

static const struct machine_steps vms_steps = {
	.start = machine_start,
	.again = machine_again,
	.on_patience = machine_on_patience,
	.on_button = machine_on_button,
	.on_volumes_lost = machine_on_volumes_lost,
	.vm_events = &machine_vm_events,
	.gate_events = &machine_gate_events,
};

struct vms *vms_free(struct vms *v)
{
	struct machine *m;

	if (!v)
		return NULL;
	v->pool = vm_pool_free(TAKE_PTR(v->pool));
	v->templates = templates_free(v->templates);
	list_for_each (m, &v->machines, struct machine, link)
		machine_free(m);
	free(v->gate_program);
	free(v->guest);
	(void)fd_close(v->proc_fd);
	free(v);
	return NULL;
}

static void vms_on_template(struct vms *v)
{
	vm_pool_renew(v->pool);
}

void vms_begin(struct vms *v, struct instances *all)
{
	if (!v->pool)
		return;
	vm_pool_open(v->pool, all);
	templates_want(v->templates);
	templates_make(v->templates, all);
}

int vms_new(struct vms **ret, const struct vms_config *config, struct error *err)
{
	struct vms *v = calloc(1, sizeof(*v));
	int r;

	if (!v)
		return error_set(err, -ENOMEM, "the provider of microVMs");
	v->ops = vms_ops;
	v->ops.hello_limit = config->hello_limit ?: VMS_HELLO_LIMIT;
	v->provider.ops = &v->ops;
	v->config = *config;
	v->steps = &vms_steps;
	list_init(&v->machines);
	v->proc_fd = sysio_openat(AT_FDCWD, "/proc", O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	r = v->proc_fd < 0 ? error_set(err, -errno, "open /proc") : 0;
	v->gate_program = strdup(config->gate_program);
	v->guest = strdup(config->guest);
	v->config.gate_program = v->gate_program;
	v->config.guest = v->guest;
	if (r == 0 && (!v->gate_program || !v->guest))
		r = error_set(err, -ENOMEM, "the provider of microVMs");
	if (r < 0) {
		(void)vms_free(v);
		return r;
	}
	if (config->templates)
		r = templates_new(&v->templates, v, vms_on_template, err);
	if (r == 0 && config->templates && config->pool_size)
		r = vm_pool_new(&v->pool, v, err);
	if (r < 0) {
		(void)vms_free(v);
		return r;
	}
	*ret = v;
	return 0;
}

struct provider *vms_provider(struct vms *v)
{
	return &v->provider;
}
