/* SPDX-License-Identifier: Apache-2.0 */
#include "init/nest_main.h"

#include <cpuid.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/process/title.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "gates/issuer.h"
#include "init/nest_disks.h"
#include "instance/instance.h"
#include "instance/spawn.h"
#include "keeper/client/client.h"
#include "keeper/nested/nest.h"
#include "loop/pool.h"
#include "provider/vm.h"
#include "vm/qemu/qemu_driver.h"

/*
 * Theory of operation. This process makes one machine, by the very provider that a node has: what
 * that looks for on its host lies on the disk with the tools, which becomes the root of this
 * process, in a mount namespace that ends with it. The guests of a guest have a certificate
 * authority of their own, made here and gone with the machine: the key of the node's never leaves
 * the node, and the two trust domains have nothing in common.
 *
 * A slot of the new machine shows what is in the same slot of this guest's (init/nest_disks.h).
 *
 * The instance's end is that of this process, with the reason as its last words; whoever started it
 * kills the rest by its group, and removes its directory.
 */

#define NEST_LIFE (3600 * NSEC_PER_SEC)
/* Emulated twice over. */
#define NEST_HELLO_LIMIT (1500 * NSEC_PER_SEC)
#define NEST_HEARTBEAT (600 * NSEC_PER_SEC)
/* Its clock counts instructions, and a certificate may not last longer than a day. */
#define NEST_BACKDATE (20 * 3600)
#define NEST_ISSUER_UID 1879113726
#define NEST_TRUST_DOMAIN "guest"
#define NEST_GATE "/libexec/nacre/nacre-gate"
#define NEST_THREADS 2
#define NEST_CPUID_WHO 0x40000000U
#define NEST_ARGS 5
#define NEST_MEMORY_MAX ((uint64_t)1 << 40)
/* Where the disk is mounted before it is the root: in a mount namespace of our own. */
#define NEST_ROOT "/tmp"
/* <sys/mount.h> and <linux/mount.h> do not go together in glibc 2.36. */
#define NEST_SLAVE (1U << 19)
#define NEST_BIND 4096UL
#define NEST_BELOW 16384UL

struct nest_process {
	char *title, *tools;
	uint64_t memory;
	unsigned cpus;
	struct loop *loop;
	struct pool *pool;
	struct issuer *issuer;
	struct vms *vms;
	struct instances *all;
	struct instance *instance;
	struct nest_disks disks;
	struct loop_fd line;
	int identity_fd, root_fd;
	char words[INSTANCE_LAST_WORDS_MAX];
};

static void nest_end_with(struct nest_process *n, const char *words)
{
	(void)str_printf(n->words, sizeof(n->words), "%.*s", INSTANCE_LAST_WORDS_MAX - 2, words);
	str_clean(n->words);
	loop_quit(n->loop, EXIT_FAILURE);
}

/* ---- what the instances need and tell ---- */

static int nest_connect(void *userdata, int rpc_fd, int fd_fd, struct peer **ret)
{
	struct nest_process *n = userdata;
	int r = keeper_client_new(ret, n->loop, rpc_fd, fd_fd);

	/* Here it is the only one; its path begins further up. */
	return r < 0 ? r : (*ret)->ops->name(*ret, n->title);
}

static int nest_save(void *userdata, const struct instance *i, struct error *err)
{
	return 0;
}

static void nest_forget(void *userdata, const struct instance *i)
{
}

static void nest_on_state(void *userdata, struct instance *i)
{
	struct nest_process *n = userdata;

	if (i->state == INSTANCE_FAILED)
		nest_end_with(n, i->reason);
	else if (i->state == INSTANCE_GONE)
		nest_end_with(n, "was shut down");
}

static void nest_on_container(void *userdata, struct instance *i, const struct container_view *view)
{
}

static void nest_on_instance(void *userdata, struct instance *i)
{
}

/* ---- the machine ---- */

/* Its socket stands deeper down, in the directory of the instance. */
static int nest_say_ready(struct nest_process *n, struct error *err)
{
	char packet[NEST_PACKET_MAX];
	int len;

	if (linkat(n->instance->dir_fd, "rpc.sock", NEST_FD_DIR, "rpc.sock", 0) < 0)
		return error_set(err, -errno, "link the socket of a machine");
	len = str_printf(packet, sizeof(packet), "%c%s", NEST_READY, n->instance->kernel);
	if (len < 0 || send(NEST_FD_LINE, packet, (size_t)len, MSG_NOSIGNAL) != len)
		return error_set(err, len < 0 ? len : -errno, "tell that a machine is ready");
	return 0;
}

static void nest_on_disks(struct nest_disks *disks, const struct error *err)
{
	struct nest_process *n = container_of(disks, struct nest_process, disks);
	struct error own = ERROR_INIT;

	if (err)
		nest_end_with(n, error_text(err));
	else if (nest_say_ready(n, &own) < 0)
		nest_end_with(n, error_text(&own));
}

static void nest_on_made(void *userdata, struct instance *i, const struct error *err)
{
	struct nest_process *n = userdata;

	if (err)
		nest_end_with(n, i->reason[0] ? i->reason : error_text(err));
	else
		nest_disks_put(&n->disks, i, nest_on_disks);
}

static void nest_on_stopped(void *userdata, struct instance *i, const struct error *err)
{
	nest_end_with(userdata, "was shut down");
}

static void nest_on_line(struct loop_fd *source, unsigned events)
{
	struct nest_process *n = container_of(source, struct nest_process, line);
	char packet[NEST_PACKET_MAX];
	ssize_t len = recv(NEST_FD_LINE, packet, sizeof(packet), 0);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len <= 0)
		nest_end_with(n, "its keeper has ended");
	else if (packet[0] == NEST_END)
		instance_stop(n->instance, nest_on_stopped, n);
}

/* As QEMU tells who asks its processor. */
static bool nest_is_emulated(void)
{
	unsigned highest = 0, who[3] = { 0 };

	__cpuid(NEST_CPUID_WHO, highest, who[0], who[1], who[2]);
	return memcmp(who, "TCGTCGTCGTCG", sizeof(who)) == 0;
}

static bool nest_is_fast(void *userdata, char *ret, size_t size)
{
	(void)str_copy(ret, size, "a guest has no hardware virtualization");
	return false;
}

static int nest_open_issuer(struct nest_process *n, struct error *err)
{
	char node[ID_SIZE];
	struct issuer_config c = { .loop = n->loop,
				   .program = NEST_GATE,
				   .domain = NEST_TRUST_DOMAIN,
				   .node = node,
				   .uid = NEST_ISSUER_UID,
				   .gid = NEST_ISSUER_UID,
				   .backdate = NEST_BACKDATE };
	int r = id_new(node);

	if (r < 0)
		return error_set(err, r, "draw an id");
	if (sysio_mkdirat(NEST_FD_DIR, "identity", 0700) < 0)
		return error_set(err, -errno, "make the directory of an identity");
	n->identity_fd = sysio_openat(NEST_FD_DIR, "identity",
				      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (n->identity_fd < 0)
		return error_set(err, -errno, "open the directory of an identity");
	c.dir_fd = n->identity_fd;
	return issuer_new(&n->issuer, &c, err);
}

static int nest_open_provider(struct nest_process *n, struct error *err)
{
	const struct vms_config vms = { .loop = n->loop,
					.pool = n->pool,
					.driver = &vm_qemu,
					.issuer = n->issuer,
					.gate_program = NEST_GATE,
					.root_fd = n->root_fd,
					.guest = "",
					.memory = n->memory,
					.cpus = n->cpus,
					.emulated = nest_is_emulated(),
					.certificate_life = NEST_LIFE,
					.hello_limit = NEST_HELLO_LIMIT,
					.heartbeat = NEST_HEARTBEAT,
					.is_fast = nest_is_fast };
	int r = vms_new(&n->vms, &vms, err);
	struct instances_config all = { .loop = n->loop,
					.run_fd = NEST_FD_DIR,
					.cgroup_fd = NEST_FD_CGROUP,
					.cgroup = "",
					.no_cells = true,
					.connect = nest_connect,
					.save = nest_save,
					.forget = nest_forget,
					.on_state = nest_on_state,
					.on_container = nest_on_container,
					.on_synced = nest_on_instance,
					.on_note = nest_on_instance,
					.userdata = n };

	if (r < 0)
		return r;
	all.providers[INSTANCE_VM] = vms_provider(n->vms);
	return instances_new(&n->all, &all, err);
}

static int nest_begin(struct nest_process *n, struct error *err)
{
	const struct instance_spec spec = {
		.name = name_last(n->title),
		.choice = { .kind = INSTANCE_VM, .cold = true },
	};
	int r;

	r = loop_new(&n->loop);
	if (r == 0)
		r = pool_new(&n->pool, n->loop, NEST_THREADS);
	if (r < 0)
		return error_set(err, r, "make the loop of a machine");
	r = nest_open_issuer(n, err);
	if (r == 0)
		r = nest_open_provider(n, err);
	if (r < 0)
		return r;
	loop_fd_init(&n->line, n->loop, NEST_FD_LINE, LOOP_READ, nest_on_line);
	return instance_create(n->all, NULL, &spec, nest_on_made, n, &n->instance, err);
}

/* ---- where it lives ---- */

static int nest_bind(const char *from, const char *to, struct error *err)
{
	return sysio_mount(from, to, NULL, NEST_BIND | NEST_BELOW, NULL) < 0
		       ? error_set(err, -errno, "bind %s", from)
		       : 0;
}

static int nest_enter(struct nest_process *n, struct error *err)
{
	struct mount_attr slave = { .propagation = NEST_SLAVE };
	_cleanup_fd_ int mount_fd = nest_disks_mount(&n->disks, n->tools, err);
	int r;

	if (mount_fd < 0)
		return mount_fd;
	if (unshare(CLONE_NEWNS) < 0 ||
	    sysio_mount_setattr(AT_FDCWD, "/", AT_RECURSIVE, &slave) < 0)
		return error_set(err, -errno, "make a mount namespace");
	if (sysio_move_mount(mount_fd, "", AT_FDCWD, NEST_ROOT, MOVE_MOUNT_F_EMPTY_PATH) < 0)
		return error_set(err, -errno, "mount the disk with the tools");
	r = nest_bind("/dev", NEST_ROOT "/dev", err);
	if (r == 0)
		r = nest_bind("/proc", NEST_ROOT "/proc", err);
	if (r == 0)
		r = nest_bind("/sys", NEST_ROOT "/sys", err);
	if (r < 0)
		return r;
	if (chdir(NEST_ROOT) < 0 || chroot(".") < 0)
		return error_set(err, -errno, "enter the disk with the tools");
	n->root_fd = sysio_openat(AT_FDCWD, "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return n->root_fd < 0 ? error_set(err, -errno, "enter the disk with the tools") : 0;
}

/* A person that starts it by hand has none of these open, and should be told so. */
static int nest_check(struct nest_process *n, int argc, char **argv, struct error *err)
{
	uint64_t cpus;

	for (int fd = NEST_FD_LINE; fd < NEST_FD_END_OF_LIST; fd++)
		if (fd_set_cloexec(fd, true) < 0)
			return error_refuse(err, ERROR_PRECONDITION,
					    "descriptor %d is not open: a machine in a guest is "
					    "started by nacre only",
					    fd);
	if (argc != NEST_ARGS || !name_is_path(argv[1]) ||
	    parse_u64(argv[3], 1, NEST_MEMORY_MAX, &n->memory) < 0 ||
	    parse_u64(argv[4], 1, VM_CPUS_MAX, &cpus) < 0)
		return error_refuse(err, ERROR_INVALID, "memory or cpus: no size of a machine");
	n->cpus = (unsigned)cpus;
	return 0;
}

static int nest_run(struct nest_process *n, int argc, char **argv, struct error *err)
{
	char title[NAME_PATH_MAX + 32];
	int r = nest_check(n, argc, argv, err);

	if (r < 0)
		return r;
	/* The arguments are the memory of the title. */
	n->title = strdup(argv[1]);
	n->tools = strdup(argv[2]);
	if (!n->title || !n->tools)
		return error_set(err, -ENOMEM, "begin a machine");
	(void)str_printf(title, sizeof(title), "nacre: machine %s", n->title);
	title_set(title);
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	r = nest_disks_open(&n->disks, err);
	if (r == 0)
		r = nest_enter(n, err);
	if (r == 0)
		r = nest_begin(n, err);
	return r < 0 ? r : loop_run(n->loop);
}

static void nest_done(struct nest_process *n)
{
	loop_fd_done(&n->line);
	n->all = instances_free(n->all);
	n->vms = vms_free(n->vms);
	n->issuer = issuer_free(n->issuer);
	n->pool = pool_free(n->pool);
	nest_disks_close(&n->disks);
	loop_freep(&n->loop);
	n->identity_fd = fd_close(n->identity_fd);
	n->root_fd = fd_close(n->root_fd);
	free(n->title);
	free(n->tools);
}

int nest_main(int argc, char **argv)
{
	struct nest_process n = { .disks = NEST_DISKS_INIT, .identity_fd = -1, .root_fd = -1 };
	struct error err = ERROR_INIT;

	if (nest_run(&n, argc, argv, &err) < 0) {
		log_error("a machine cannot begin", LOG_ERR(&err));
		(void)str_printf(n.words, sizeof(n.words), "%.*s", INSTANCE_LAST_WORDS_MAX - 2,
				 error_text(&err));
	}
	(void)fd_write_full(NEST_FD_END, n.words, strlen(n.words));
	(void)fd_write_full(NEST_FD_END, "\n", 1);
	nest_done(&n);
	return EXIT_FAILURE;
}
