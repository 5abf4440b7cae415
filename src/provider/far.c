/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/far.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "clouds/clouds.h"
#include "gates/issuer.h"
#include "instance/end.h"
#include "instance/link.h"
#include "instance/model.h"
#include "instance/place.h"
#include "io/unix.h"
#include "isolate/cgroup/cgroup.h"
#include "provider/bundle.h"
#include "provider/far_machine.h"
#include "vm/driver/gate.h"
#include "wire/message/metadata.h"

/*
 * Theory of operation. create() gets what the machine is to trust, then has the machine recorded
 * and made (clouds_run()). far_on_step() does what follows: once the cloud tells an address the
 * gate is started, which tries to enrol whoever is there until it is; and where the cloud says that
 * the machine goes, so does the instance. The cloud's events come from within its calls, so a step
 * is always deferred.
 *
 * The order of what is written: the record of the instance, that of the machine (with the token in
 * its words), the create call, the address, the gate, its pid. Whatever dies in between, at the
 * next start the instance is taken up with its gate, or else has ended; and fars_begin() ends each
 * machine whose instance is none.
 */

#define FAR_STOP_GRACE (30 * NSEC_PER_SEC)
#define FAR_ENTROPY 256
#define FAR_MTU 1500
#define FAR_UID_FIRST 1879244800
#define FAR_UID_DIGITS 5
/* What kernel, keeper and gate take in a machine, beside what a limit is for. */
#define FAR_OWN_MEMORY (UINT64_C(192) << 20)

/* The word of a kind is the name of its cloud. */
static const enum instance_kind far_kinds[] = { INSTANCE_EC2, INSTANCE_GCE, INSTANCE_VSPHERE };
static_assert(ARRAY_SIZE(far_kinds) == FAR_KINDS, "a provider for each");

static struct fars *fars_of(struct provider *p)
{
	return container_of(p, struct far_kind, provider)->all;
}

static const char *far_word(struct provider *p)
{
	return instance_kind_word(container_of(p, struct far_kind, provider)->kind);
}

/* ---- the object ---- */

static void far_vm_free(struct far_vm *m)
{
	if (m->awaits_bundle)
		issuer_forget(m->all->config.issuer, m);
	far_disks_leave(m, NULL);
	m->gate = gate_free(m->gate);
	loop_defer_done(&m->step);
	explicit_bzero(m->token, sizeof(m->token));
	list_remove(&m->link);
	free(m);
}

static void far_vm_check_gone(struct far_vm *m)
{
	if (!m->instance && !m->awaits_cloud)
		far_vm_free(m);
}

static bool far_has_uid(const struct fars *all, uid_t uid)
{
	const struct far_vm *m;

	list_for_each (m, &all->vms, struct far_vm, link)
		if (m->uid == uid)
			return true;
	return false;
}

static uid_t far_uid_of(const char *id)
{
	uid_t n = 0;

	for (int k = 0; k < FAR_UID_DIGITS && id[k]; k++)
		n = n * 16 + (uid_t)(id[k] <= '9' ? id[k] - '0' : id[k] - 'a' + 10);
	return n;
}

/* ---- its end in the cloud ---- */

static void far_on_removed(void *userdata, const struct cloud_vm *vm, const struct error *err)
{
	(void)userdata;
	(void)vm;
	if (err)
		log_warn("the machine of an instance is not ended yet; it is tried again",
			 LOG_ERR(err));
}

static void far_end_machine(const struct fars *all, const char *owner)
{
	struct cloud_vm *vm = clouds_find_owned(all->config.clouds, owner);
	struct error err = ERROR_INIT;

	FAILPOINT_BEFORE("far.end");
	if (vm && cloud_vm_remove(vm, true, far_on_removed, NULL, &err) < 0)
		log_error("the machine of an instance is not ended", LOG_STR("instance", owner),
			  LOG_ERR(&err));
	FAILPOINT_AFTER("far.end");
}

/* ---- the gate ---- */

static void far_on_gate(void *userdata, enum gate_state state, const char *text)
{
	struct far_vm *m = userdata;
	char reason[192];

	if (state != GATE_FAILED || !m->instance)
		return;
	(void)str_printf(reason, sizeof(reason), "its gate cannot go on: %.150s", text);
	instance_break(m->instance, reason);
}

static void far_on_notice(void *userdata, const char *text)
{
	const struct far_vm *m = userdata;

	if (m->instance)
		log_warn("a gate has refused a connection", LOG_STR("instance", m->instance->path),
			 LOG_STR("reason", text));
}

static void far_on_gate_end(void *userdata, const struct error *err)
{
	struct far_vm *m = userdata;
	const char *text = "its gate has ended";
	char reason[192];

	if (m->instance && m->instance->broken)
		text = error_text(&m->instance->last_error);
	else if (m->end[0])
		text = m->end;
	else if (err)
		text = error_text(err);
	/* The error is the gate's, and goes with it. */
	(void)str_printf(reason, sizeof(reason), "%.180s", text);
	m->gate = gate_free(m->gate);
	if (m->instance)
		instance_ended(m->instance, reason);
}

static const struct gate_events far_gate_events = {
	.on_state = far_on_gate,
	.on_notice = far_on_notice,
	.on_end = far_on_gate_end,
};

static struct gate_config far_gate_config(const struct far_vm *m)
{
	return (struct gate_config){ .loop = m->all->config.loop,
				     .issuer = m->all->config.issuer,
				     .dir_fd = m->instance->dir_fd,
				     .instance = m->instance->id,
				     .life = m->all->config.certificate_life };
}

static int far_take_process(struct instance *i, pid_t pid, struct error *err)
{
	int r = pidfd_of(pid);

	if (r < 0)
		return error_set(err, r, "watch the gate of %s", i->path);
	i->pid = pid;
	i->pidfd = r;
	(void)process_start_time(-1, pid, &i->start_time);
	return 0;
}

static int far_start_gate(struct far_vm *m, const char *address, struct error *err)
{
	const struct gate_config config = far_gate_config(m);
	struct instance *i = m->instance;
	struct gate_start start = {
		.program = m->all->gate_program,
		.title = i->path,
		.net_fd = -1,
		.boot_fd = -1,
		.console_fd = -1,
		.uid = m->uid,
		.gid = m->uid,
		.port = GATE_PORT,
	};
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	if (inet_pton(AF_INET, address, start.address) != 1)
		return error_refuse(err, ERROR_FAULT,
				    "the cloud has given the machine the address \"%.64s\"",
				    address);
	r = FAILPOINT("far.gate");
	if (r < 0)
		return error_set(err, r, "start the gate of %s", i->path);
	leaf_fd = cgroup_make(i->cgroup_fd, "gate", err);
	if (leaf_fd < 0)
		return leaf_fd;
	start.cgroup_fd = leaf_fd;
	memcpy(start.token, m->token, sizeof(start.token));
	r = gate_start(&m->gate, &config, &start, &far_gate_events, m, err);
	explicit_bzero(start.token, sizeof(start.token));
	explicit_bzero(m->token, sizeof(m->token));
	if (r == 0)
		r = far_take_process(i, gate_pid(m->gate), err);
	FAILPOINT_AFTER("far.gate");
	return r;
}

/* ---- what the cloud says ---- */

static bool far_is_going(const struct cloud_view *v)
{
	return v->state != CLOUD_CREATING && v->state != CLOUD_PENDING && v->state != CLOUD_RUNNING;
}

static void far_look(struct far_vm *m)
{
	struct cloud_vm *vm = clouds_find_owned(m->all->config.clouds, m->instance->id);
	struct instance *i = m->instance;
	struct error err = ERROR_INIT;
	struct cloud_view v = { .reason = "" };

	if (vm)
		cloud_vm_view(vm, &v);
	if (!vm || far_is_going(&v)) {
		(void)str_printf(m->end, sizeof(m->end), "its machine in the cloud is %s%s%.120s",
				 vm ? cloud_state_word(v.state) : "gone", *v.reason ? ": " : "",
				 v.reason);
		/* What was asked for has come to pass. */
		if (i->state == INSTANCE_STOPPING)
			i->provider->ops->kill(i);
		else
			instance_break(i, m->end);
		return;
	}
	(void)str_copy(i->address, sizeof(i->address), v.address);
	if (m->gate || !*v.address || i->state != INSTANCE_SPAWNING || i->broken)
		return;
	if (far_start_gate(m, v.address, &err) < 0)
		instance_fail(i, &err);
	else
		instance_made(i);
}

static void far_on_step(struct loop_defer *d)
{
	struct far_vm *m = container_of(d, struct far_vm, step);

	if (m->instance && m->asked && !m->awaits_cloud && !m->instance->told_end)
		far_look(m);
}

static struct far_vm *far_vm_new(struct fars *all, struct instance *i)
{
	struct far_vm *m = calloc(1, sizeof(*m));
	/* By its id, so that a later daemon finds the same. */
	uid_t uid = FAR_UID_FIRST + far_uid_of(i->id);

	if (!m)
		return NULL;
	while (far_has_uid(all, uid))
		uid++;
	m->uid = uid;
	m->all = all;
	m->instance = i;
	loop_defer_init(&m->step, all->config.loop, far_on_step);
	list_init(&m->disks);
	list_init(&m->link);
	list_add_tail(&all->vms, &m->link);
	i->own = m;
	return m;
}

static void far_on_cloud(void *userdata, const struct cloud_vm *vm, bool gone)
{
	struct fars *all = userdata;
	struct cloud_view v;
	struct far_vm *m;

	(void)gone;
	cloud_vm_view(vm, &v);
	list_for_each (m, &all->vms, struct far_vm, link)
		if (m->instance && str_eq(m->instance->id, v.owner))
			loop_defer_schedule(&m->step);
}

/* ---- making one ---- */

static int far_user_data(struct far_vm *m, const struct gate_bytes *bundle, struct buf *ret,
			 struct error *err)
{
	_cleanup_(buf_done) struct buf frame = BUF_INIT;
	char node[SPIFFE_SIZE], own[SPIFFE_SIZE];
	const struct instance *i = m->instance;
	uint8_t entropy[FAR_ENTROPY], *room;
	struct bootmsg msg = {
		.type = BOOTMSG_BOOT,
		.boot = { .entropy = { entropy, sizeof(entropy) },
			  .wall_clock_ns = clock_real(),
			  .hostname = name_last(i->path),
			  .title = i->path,
			  .instance_id = i->id,
			  .prefix = 32,
			  .mtu = FAR_MTU,
			  .parent_id = node,
			  .own_id = own },
	};
	int len, r;

	if (getrandom(entropy, sizeof(entropy), 0) != (ssize_t)sizeof(entropy) ||
	    getrandom(m->token, sizeof(m->token), 0) != (ssize_t)sizeof(m->token))
		return error_set(err, -EIO, "draw random bytes for a machine");
	memcpy(msg.boot.token, m->token, sizeof(msg.boot.token));
	r = issuer_node_id(m->all->config.issuer, node, err);
	if (r == 0)
		r = issuer_instance_id(m->all->config.issuer, i->id, own, err);
	if (r < 0)
		return r;
	r = bundle_split(bundle->data, bundle->len, &msg.boot.bundle);
	if (r == 0)
		r = buf_reserve(&frame, BOOTMSG_FRAME_MAX, &room);
	if (r < 0)
		return error_set(err, r, "what a machine is told");
	len = bootmsg_encode(&msg, room, err);
	explicit_bzero(&msg, sizeof(msg));
	if (len < 0)
		return len;
	r = metadata_user_data(room, (size_t)len, ret);
	explicit_bzero(room, (size_t)len);
	if (r == -EMSGSIZE)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the machine of %s would be told more than the %d bytes of "
				    "user-data that a cloud takes: the node's trust bundle has too "
				    "many certificates",
				    i->path, METADATA_USER_DATA_MAX);
	if (r == 0)
		r = buf_add(ret, "", 1);
	return r < 0 ? error_set(err, r, "the user-data of a machine") : 0;
}

static void far_on_run(void *userdata, const struct cloud_vm *vm, const struct error *err)
{
	struct far_vm *m = userdata;

	(void)vm;
	m->awaits_cloud = false;
	if (!m->instance)
		far_vm_check_gone(m);
	else if (err)
		instance_fail(m->instance, err);
	else
		loop_defer_schedule(&m->step);
}

static int far_run(struct far_vm *m, const struct gate_bytes *bundle, struct error *err)
{
	const struct instance *i = m->instance;
	_cleanup_(buf_done) struct buf user_data = BUF_INIT;
	uint64_t memory = i->size.memory ? i->size.memory : i->size.memory_of_parts;
	char name[NAME_LABEL_MAX + 1];
	struct cloud_wish wish = {
		.name = name,
		.image = m->all->config.image,
		.type = "",
		.cpus = i->size.cpus ? i->size.cpus : i->size.cpus_of_parts,
		.memory = memory + FAR_OWN_MEMORY,
		.owner = i->id,
	};
	int r = FAILPOINT("far.run");

	if (r < 0)
		return error_set(err, r, "make the machine of %s", i->path);
	(void)str_printf(name, sizeof(name), "pod-%s", i->id);
	r = far_user_data(m, bundle, &user_data, err);
	if (r == 0) {
		wish.user_data = (const char *)buf_data(&user_data);
		m->asked = m->awaits_cloud = true;
		r = clouds_run(m->all->config.clouds, &wish, far_on_run, m, err);
		m->awaits_cloud = r == 0;
	}
	if (user_data.base)
		explicit_bzero(user_data.base, user_data.size);
	FAILPOINT_AFTER("far.run");
	return r;
}

static void far_on_bundle(void *userdata, const struct gate_bytes *bytes, const struct error *err)
{
	struct far_vm *m = userdata;
	struct error own = ERROR_INIT;

	m->awaits_bundle = false;
	if (err)
		(void)error_copy(&own, err);
	if (own.code || far_run(m, bytes, &own) < 0)
		instance_fail(m->instance, &own);
}

static int far_open_place(struct instance *i, struct error *err)
{
	int r = place_make_dir(i, err);

	if (r == 0)
		r = place_open_cgroup(i, err);
	if (r == 0 && !far_vm_new(fars_of(i->provider), i))
		r = error_set(err, -ENOMEM, "instance %s", i->path);
	return r;
}

static int far_create(struct instance *i, struct error *err)
{
	struct far_vm *m;
	int r = far_open_place(i, err);

	if (r < 0)
		return r;
	m = i->own;
	r = issuer_bundle(m->all->config.issuer, far_on_bundle, m);
	if (r < 0)
		return error_set(err, r, "instance %s", i->path);
	m->awaits_bundle = true;
	return 1;
}

/* ---- the table ---- */

static int far_plan(struct provider *p, struct error *err)
{
	const struct fars_config *c = &fars_of(p)->config;
	const char *word = far_word(p);
	int r = clouds_check(c->clouds, err);

	if (r == 0 && !str_eq(clouds_provider(c->clouds), word))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the cloud of this node is %s (cloud.%s in the configuration), "
				    "not %s",
				    clouds_provider(c->clouds), clouds_provider(c->clouds), word);
	if (r == 0 && !*c->image)
		r = error_refuse(err, ERROR_PRECONDITION,
				 "cloud.%s.agent_image in the configuration names no image for "
				 "machines of kind %s (doc/cloud.md says how one is made)",
				 word, word);
	return r;
}

static int far_open_tools(struct provider *p, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "a machine of kind %s has no machines in it",
			    far_word(p));
}

static int far_draw(struct instance *i)
{
	return id_new(i->id);
}

static void far_withdraw(struct instance *i)
{
	(void)i;
}

static int far_connect(struct instance *i, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	int fd = unix_connect(i->dir_fd, "rpc.sock", SOCK_STREAM, err);

	if (fd < 0)
		return error_wrap(err, fd, "reach the gate");
	*ret_rpc_fd = fd;
	*ret_fd_fd = -1;
	return 0;
}

static int far_adopt(struct instance *i, pid_t pid, unsigned long long start_time,
		     struct error *err)
{
	unsigned long long began = 0;
	struct gate_config config;
	struct far_vm *m;
	int r = far_open_place(i, err);

	if (r < 0)
		return r;
	m = i->own;
	m->asked = true;
	if (pid <= 0 || process_start_time(-1, pid, &began) < 0 || began != start_time)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "its gate ended while the daemon was away");
	r = far_take_process(i, pid, err);
	config = far_gate_config(m);
	if (r == 0)
		r = gate_connect(&m->gate, &config, &far_gate_events, m, err);
	return r < 0 ? r : instance_connect_own(i, err);
}

static int far_put_disk(struct instance *i, const char *name, int fd,
			char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
			struct error *err)
{
	if (!i->own)
		return error_refuse(err, ERROR_UNAVAILABLE, "the instance %s has ended", i->path);
	return far_disk_put(i->own, name, fd, ret_serial, done, userdata, err);
}

static int far_claim_disk(struct instance *i, const char *name, struct error *err)
{
	if (!i->own)
		return error_refuse(err, ERROR_UNAVAILABLE, "the instance %s has ended", i->path);
	return far_disk_claim(i->own, name, err);
}

static void far_drop_disk(struct instance *i, const char *name)
{
	if (i->own)
		far_disk_drop(i->own, name);
}

static int far_put_volume(struct instance *i, const char *name, int mount_fd, bool read_only,
			  peer_done_fn done, void *userdata, struct error *err)
{
	(void)fd_close(mount_fd);
	return error_refuse(
		err, ERROR_UNSUPPORTED,
		"the volume %.64s cannot be had in %s: a machine of kind %s takes only "
		"read-only directories that are in memory or a kubelet's, and files, with at most "
		"256 files and 1 MiB",
		name, i->path, instance_kind_word(i->choice.kind));
}

/* The machine is told to go at once; the gate's end is the instance's. */
static void far_kill(struct instance *i)
{
	struct far_vm *m = i->own;

	if (!m)
		return;
	far_end_machine(m->all, i->id);
	if (i->pidfd >= 0)
		(void)pidfd_kill(i->pidfd, SIGKILL);
}

/* Of one that has never answered nothing is waited for. */
static void far_stopping(struct instance *i)
{
	if (!i->synced)
		far_kill(i);
}

static void far_close(struct instance *i)
{
	struct error err = ERROR_INIT;
	struct far_vm *m = i->own;

	if (!m)
		return;
	i->own = NULL;
	if (i->ended)
		far_end_machine(m->all, i->id);
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the instance %s has ended", i->path);
	far_disks_leave(m, i->ended ? &err : NULL);
	if (m->awaits_bundle)
		issuer_forget(m->all->config.issuer, m);
	m->awaits_bundle = false;
	m->gate = gate_free(m->gate);
	m->instance = NULL;
	far_vm_check_gone(m);
}

static const char *const far_leaves[] = { "gate", NULL };
static const char *const far_sockets[] = { "rpc.sock", "gate.sock", NULL };

static const struct provider_ops far_ops = {
	.no_answer = "its machine runs, and nobody in it has answered in time "
		     "(cloud.boot_limit): does a security group, or a firewall rule, let this "
		     "node reach its TCP port 7474, and is its image an agent's?",
	.stop_grace = FAR_STOP_GRACE,
	.leaves = far_leaves,
	.sockets = far_sockets,
	.plan = far_plan,
	.open_tools = far_open_tools,
	.draw = far_draw,
	.withdraw = far_withdraw,
	.create = far_create,
	.connect = far_connect,
	.adopt = far_adopt,
	.put_disk = far_put_disk,
	.claim_disk = far_claim_disk,
	.drop_disk = far_drop_disk,
	.stopping = far_stopping,
	.left = far_kill,
	.put_volume = far_put_volume,
	.kill = far_kill,
	.close = far_close,
};

struct fars *fars_free(struct fars *all)
{
	struct far_vm *m;

	if (!all)
		return NULL;
	list_for_each (m, &all->vms, struct far_vm, link)
		far_vm_free(m);
	free(all->gate_program);
	free(all);
	return NULL;
}

int fars_new(struct fars **ret, const struct fars_config *config, struct error *err)
{
	struct fars *all = calloc(1, sizeof(*all));

	if (!all)
		return error_set(err, -ENOMEM, "the provider of machines in a cloud");
	all->ops = far_ops;
	all->ops.hello_limit = config->boot_limit;
	for (size_t k = 0; k < FAR_KINDS; k++)
		all->kinds[k] = (struct far_kind){ .provider.ops = &all->ops,
						   .all = all,
						   .kind = far_kinds[k] };
	all->config = *config;
	list_init(&all->vms);
	all->gate_program = strdup(config->gate_program);
	if (!all->gate_program) {
		(void)fars_free(all);
		return error_set(err, -ENOMEM, "the provider of machines in a cloud");
	}
	clouds_watch(config->clouds, far_on_cloud, all);
	*ret = all;
	return 0;
}

static bool fars_has(const struct fars *all, const char *owner)
{
	const struct far_vm *m;

	list_for_each (m, &all->vms, struct far_vm, link)
		if (m->instance && str_eq(m->instance->id, owner))
			return true;
	return false;
}

void fars_begin(struct fars *all)
{
	const struct clouds *clouds = all->config.clouds;
	struct cloud_view v;
	struct far_vm *m;

	for (struct cloud_vm *vm = clouds_next(clouds, NULL); vm; vm = clouds_next(clouds, vm)) {
		cloud_vm_view(vm, &v);
		if (*v.owner && !fars_has(all, v.owner)) {
			log_warn("a machine in the cloud has no instance any more and is ended",
				 LOG_STR("instance", v.owner), LOG_STR("machine", v.instance));
			far_end_machine(all, v.owner);
		}
	}
	list_for_each (m, &all->vms, struct far_vm, link)
		loop_defer_schedule(&m->step);
}

struct provider *fars_provider(struct fars *all, enum instance_kind kind)
{
	for (size_t k = 0; k < FAR_KINDS; k++)
		if (all->kinds[k].kind == kind)
			return &all->kinds[k].provider;
	return NULL;
}
