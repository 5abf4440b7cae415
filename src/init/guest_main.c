/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_main.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/reboot.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/log/log.h"
#include "base/process/title.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "init/guest_cloud.h"
#include "init/guest_modules.h"
#include "init/guest_port.h"
#include "init/guest_power.h"
#include "init/guest_root.h"
#include "init/guest_self.h"
#include "init/guest_start.h"
#include "instance/spawn.h"
#include "isolate/disk/disk_bus.h"
#include "loop/loop.h"

/*
 * Theory of operation. First everything that needs to know nothing: file systems, modules, the
 * programs' files. Here a template is taken: the process waits for BOOT, and nothing random was
 * drawn yet, nothing is secret. Then who this machine is, its network, the gate and the keeper, and
 * READY.
 *
 * This process is neither the keeper nor the gate: the end of pid 1 is a panic that says nothing,
 * while theirs can be told to the node with its cause before the machine goes. It does little, so
 * that little can go wrong: from READY on it allocates nothing of its own.
 *
 * Every way out goes through guest_end(), once: the node hears a sentence where it was a fault, and
 * the machine is switched off. Asked to end in order it asks the keeper to, and waits for that, for
 * a while.
 */

#define GUEST_KEEPER_ENDS_WITHIN (10 * NSEC_PER_SEC)
#define GUEST_PORT_AGAIN (NSEC_PER_SEC)
#define GUEST_FILES_MAX 1048576
#define GUEST_NODE_DEVICE "nacre0"
#define GUEST_SPOKEN_TO_WITHIN (100 * NSEC_PER_MSEC)
/* What klogctl() calls setting the level of the console, and all but what is for debugging. */
#define GUEST_CONSOLE_LEVEL 8
#define GUEST_CONSOLE_INFO 7

struct guest {
	struct loop *loop;
	struct guest_port port;
	struct guest_modules modules;
	struct guest_programs programs;
	struct guest_groups groups;
	int dir_fd; /* of the keeper's sockets */
	struct isolate_child keeper, gate;
	bool ending;  /* asked to */
	bool has_way; /* out, by its second network device */
	/* What the device of the node's network is called: eth0 is that of a pod's network, where
	 * it is on one. */
	const char *node_device;
	bool far;   /* in a cloud (guest_cloud.h): it has no boot port */
	int device; /* of the network there */
	struct loop_signal signals;
	struct loop_fd port_source, button_source;
	struct loop_timer port_again, end_timer;
};

bool guest_is_init(const char *name)
{
	return getpid() == 1 && str_eq(name_last(name), "init");
}

/* fault: what the node is told; NULL for an end that was asked for. */
static _noreturn_ void guest_end(struct guest *g, const struct error *fault)
{
	const struct bootmsg failed = { .type = BOOTMSG_FAILED,
					.failed = { fault ? error_text(fault) : "" } };
	struct error err = ERROR_INIT;

	if (fault)
		log_error("the guest cannot go on", LOG_ERR(fault));
	if (fault && g->port.fd >= 0 && guest_port_say(&g->port, &failed, &err) < 0)
		log_error("the node was not told", LOG_ERR(&err));
	guest_power_off();
}

/* ---- while it serves ---- */

static void guest_stop(struct guest *g)
{
	if (g->ending)
		return;
	g->ending = true;
	log_info("the guest ends");
	loop_timer_set(&g->end_timer, GUEST_KEEPER_ENDS_WITHIN);
	(void)pidfd_kill(g->keeper.pidfd, SIGTERM);
}

static void guest_on_end_timer(struct loop_timer *timer)
{
	log_warn("the keeper does not end");
	guest_end(container_of(timer, struct guest, end_timer), NULL);
}

/* How a child has ended, as a sentence about it. */
static void guest_say_end(struct error *err, const char *who, const siginfo_t *si,
			  const char *last_words)
{
	bool killed = si->si_code != CLD_EXITED;

	(void)error_refuse(err, ERROR_UNAVAILABLE, "%s in the guest %s %d%s%s", who,
			   killed ? "was ended by signal" : "has ended with status", si->si_status,
			   *last_words ? ": " : "", last_words);
}

static void guest_on_keeper_end(struct guest *g, const siginfo_t *si)
{
	char words[INSTANCE_LAST_WORDS_MAX + 1];
	struct error err = ERROR_INIT;

	if (si->si_code == CLD_EXITED && si->si_status == EXIT_SUCCESS)
		guest_end(g, NULL);
	instance_last_words(g->dir_fd, words, sizeof(words));
	guest_say_end(&err, "the keeper", si, words);
	guest_end(g, &err);
}

static void guest_reap(struct guest *g)
{
	for (;;) {
		struct error err = ERROR_INIT;
		siginfo_t si = { .si_pid = 0 };

		if (waitid(P_ALL, 0, &si, WEXITED | WNOHANG) < 0 || si.si_pid == 0)
			return;
		if (si.si_pid == g->keeper.pid)
			guest_on_keeper_end(g, &si);
		if (si.si_pid == g->gate.pid && !g->ending) {
			guest_say_end(&err, "the gate", &si, "");
			guest_end(g, &err);
		}
	}
}

static void guest_on_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct guest *g = container_of(source, struct guest, signals);

	if (sig == SIGCHLD)
		guest_reap(g);
	else
		guest_stop(g);
}

static void guest_on_button(struct loop_fd *source, unsigned events)
{
	if (guest_power_button_read(source->fd) > 0)
		guest_stop(container_of(source, struct guest, button_source));
}

/* What a node says behind BOOT. Where it says nonsense it is not listened to any more: that is no
 * reason to end what runs. */
static void guest_on_port(struct loop_fd *source, unsigned events)
{
	struct guest *g = container_of(source, struct guest, port_source);
	struct error err = ERROR_INIT;
	struct bootmsg m;
	int n = guest_port_read(&g->port, &m, &err);

	if (n == 0)
		return;
	if (n == -EPIPE) {
		/* It is ready for as long as nobody is there. */
		loop_fd_set(&g->port_source, 0);
		loop_timer_set(&g->port_again, GUEST_PORT_AGAIN);
		return;
	}
	if (n < 0) {
		log_warn("the boot port is closed", LOG_ERR(&err));
		loop_fd_set(&g->port_source, 0);
		return;
	}
	buf_consume(&g->port.in, (size_t)n);
	if (m.type == BOOTMSG_STOP)
		guest_stop(g);
}

static void guest_on_port_again(struct loop_timer *timer)
{
	struct guest *g = container_of(timer, struct guest, port_again);

	loop_fd_set(&g->port_source, LOOP_READ);
}

static int guest_arm(struct guest *g, struct error *err)
{
	static const int signals[] = { SIGCHLD, SIGTERM, SIGINT, SIGPWR, SIGUSR1, SIGUSR2 };
	int button_fd, r;

	r = loop_new(&g->loop);
	if (r < 0)
		return error_set(err, r, "make the loop of the guest");
	r = loop_signal_init(&g->signals, g->loop, signals, ARRAY_SIZE(signals), guest_on_signal);
	if (r < 0)
		return error_set(err, r, "listen for signals");
	loop_timer_init(&g->end_timer, g->loop, guest_on_end_timer);
	loop_timer_init(&g->port_again, g->loop, guest_on_port_again);
	if (!g->far)
		loop_fd_init(&g->port_source, g->loop, g->port.fd, LOOP_READ, guest_on_port);
	button_fd = guest_power_button_open();
	if (button_fd >= 0)
		loop_fd_init(&g->button_source, g->loop, button_fd, LOOP_READ, guest_on_button);
	return 0;
}

/* ---- on the way there ---- */

static int guest_make_dir(struct error *err)
{
	int fd;

	if (mkdir("/run/nacre", 0700) < 0)
		return error_set(err, -errno, "make /run/nacre");
	fd = sysio_openat(AT_FDCWD, "/run/nacre", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	return fd < 0 ? error_set(err, -errno, "open /run/nacre") : fd;
}

/* Each container takes a handful of descriptors. */
static void guest_raise_limits(void)
{
	const struct rlimit files = { .rlim_cur = GUEST_FILES_MAX, .rlim_max = GUEST_FILES_MAX };

	if (setrlimit(RLIMIT_NOFILE, &files) < 0)
		log_warn("no more descriptors can be had", LOG_STR("err", strerror(errno)));
}

/* All that needs no word of the node. */
static int guest_prepare(struct guest *g, struct error *err)
{
	int r;

	r = guest_root_begin(err);
	if (r < 0)
		return r;
	/* Control, alternate, delete on the console is a signal like any other. */
	(void)reboot(RB_DISABLE_CAD);
	r = guest_modules_load(&g->modules, err);
	if (r < 0)
		return r;
	r = guest_cloud_is_asked(&g->far, err);
	if (r == 0 && !g->far)
		r = guest_port_open(&g->port, err);
	if (r < 0)
		return r;
	r = guest_programs_open(&g->programs, err);
	if (r < 0)
		return r;
	r = guest_root_enter(err);
	if (r < 0)
		return r;
	guest_raise_limits();
	g->dir_fd = guest_make_dir(err);
	return g->dir_fd < 0 ? g->dir_fd : guest_groups_make(&g->groups, err);
}

/* What a boot does not wait for, where there is nothing else to do. */
static void guest_prepare_more(struct guest *g)
{
	_cleanup_fd_ int bus_fd = -1;

	guest_modules_load_later(&g->modules);
	bus_fd = sysio_openat(AT_FDCWD, "/sys/bus/virtio", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	while (bus_fd >= 0 && disk_bring_up(bus_fd) == 0)
		;
}

static int guest_start(struct guest *g, const struct bootmsg_boot *boot,
		       const struct bootmsg_blob *frame, struct error *err)
{
	struct guest_boot b = { .boot = boot, .frame = frame };
	int r;

	r = guest_self_assume(boot, err);
	if (r < 0)
		return r;
	b.device = g->far ? g->device : guest_net_up(boot, !g->has_way, g->node_device, err);
	if (b.device < 0)
		return b.device;
	r = guest_start_keeper(&g->programs, &g->groups, boot->title, g->dir_fd, &g->keeper, err);
	if (r < 0)
		return r;
	if (g->programs.gate_fd < 0) {
		log_warn("this guest has no gate: nobody reaches its keeper");
		return 0;
	}
	return guest_start_gate(&g->programs, &g->groups, &b, g->dir_fd, &g->gate, err);
}

/* What comes before BOOT: its second network device. Returns as guest_port_wait() for what follows.
 */
static int guest_hear_nic(struct guest *g, struct bootmsg *m, int n, struct error *err)
{
	int r;

	g->has_way = m->nic.gateway[0] != '\0';
	r = guest_net_nic(&m->nic, err);
	if (r < 0)
		return r;
	buf_consume(&g->port.in, (size_t)n);
	return guest_port_wait(&g->port, m, err);
}

/* The same of a pod's network. */
static int guest_hear_link(struct guest *g, struct bootmsg *m, int n, struct error *err)
{
	int r = m->link.address[0] ? guest_net_link(&m->link, err) : 0;

	if (r < 0)
		return r;
	g->has_way = true;
	g->node_device = GUEST_NODE_DEVICE;
	buf_consume(&g->port.in, (size_t)n);
	return guest_port_wait(&g->port, m, err);
}

/* The frame at the front of what came; it has a secret in it, and is gone afterwards. */
static int guest_take_boot(struct guest *g, const struct bootmsg_boot *boot, int n,
			   struct error *err)
{
	const struct bootmsg_blob frame = { .data = buf_data(&g->port.in), .len = (size_t)n };
	int r = guest_start(g, boot, &frame, err);

	explicit_bzero(g->port.in.base + g->port.in.head, (size_t)n);
	buf_consume(&g->port.in, (size_t)n);
	return r;
}

/* User-data stay what they are for as long as the machine is there, whoever starts it again: they
 * are taken while they are new, and never again. */
static int guest_check_age(const struct bootmsg_boot *boot, struct error *err)
{
	nsec_t now = clock_real(), told = boot->wall_clock_ns;

	if (now < told || now - told <= (nsec_t)BOOTMSG_FAR_LIFE_NS)
		return 0;
	return error_refuse(err, ERROR_DENIED,
			    "the token in the user-data of this machine has ended: they are more "
			    "than %d minutes old",
			    (int)(BOOTMSG_FAR_LIFE_NS / (60 * (uint64_t)NSEC_PER_SEC)));
}

static int guest_hear_far(struct guest *g, struct error *err)
{
	struct bootmsg m;
	int n;

	g->device = guest_cloud_hear(&g->port.in, err);
	if (g->device < 0)
		return g->device;
	n = bootmsg_next(&m, buf_data(&g->port.in), g->port.in.len, err);
	if (n < 0)
		return n;
	if (n == 0 || m.type != BOOTMSG_BOOT || !bootmsg_is_far(&m.boot))
		return error_refuse(err, ERROR_INVALID,
				    "the user-data of this machine are not for one in a cloud");
	n = guest_check_age(&m.boot, err) < 0 ? -EACCES : n;
	return n < 0 ? n : guest_take_boot(g, &m.boot, n, err);
}

static int guest_hear(struct guest *g, struct error *err)
{
	struct bootmsg m;
	int n;

	if (g->far)
		return guest_hear_far(g, err);
	/* A template is made of a machine that nobody speaks to. */
	if (!guest_port_is_spoken_to(&g->port, GUEST_SPOKEN_TO_WITHIN))
		guest_prepare_more(g);
	n = guest_port_wait(&g->port, &m, err);
	if (n > 0 && m.type == BOOTMSG_NIC)
		n = guest_hear_nic(g, &m, n, err);
	else if (n > 0 && m.type == BOOTMSG_LINK)
		n = guest_hear_link(g, &m, n, err);
	if (n < 0)
		return n;
	if (m.type == BOOTMSG_STOP)
		guest_end(g, NULL);
	if (m.type != BOOTMSG_BOOT)
		return error_refuse(err, ERROR_INVALID,
				    "the node does not begin with BOOT on the boot port");
	return guest_take_boot(g, &m.boot, n, err);
}

static int guest_say_ready(struct guest *g, struct error *err)
{
	struct utsname name;
	const struct bootmsg ready = {
		.type = BOOTMSG_READY,
		.ready = { .version = NACRE_VERSION, .kernel = name.release },
	};

	if (g->far)
		return 0;
	if (uname(&name) < 0)
		return error_set(err, -errno, "ask for the kernel's release");
	return guest_port_say(&g->port, &ready, err);
}

/* Only where the kernel's command line has that word: then this is what others will go on from. */
static int guest_say_waiting(struct guest *g, struct error *err)
{
	static const struct bootmsg waiting = { .type = BOOTMSG_WAITING };

	return getenv("NACRE_TEMPLATE") ? guest_port_say(&g->port, &waiting, err) : 0;
}

static int guest_run(struct guest *g, struct error *err)
{
	int r;

	r = guest_prepare(g, err);
	if (r < 0)
		return r;
	/* Before there are children, so that the end of none is missed. */
	r = guest_arm(g, err);
	if (r < 0)
		return r;
	r = guest_say_waiting(g, err);
	if (r < 0)
		return r;
	r = guest_hear(g, err);
	if (r < 0)
		return r;
	r = guest_say_ready(g, err);
	if (r < 0)
		return r;
	guest_modules_load_apart(&g->modules);
	/* The kernel was quiet while it came up. */
	(void)klogctl(GUEST_CONSOLE_LEVEL, NULL, GUEST_CONSOLE_INFO);
	log_info("the guest serves");
	(void)loop_run(g->loop);
	return error_refuse(err, ERROR_FAULT, "the loop of the guest has ended");
}

void guest_main(void)
{
	struct guest g = {
		.port = GUEST_PORT_INIT,
		.modules = GUEST_MODULES_INIT,
		.programs = { .exe_fd = -1, .gate_fd = -1 },
		.groups = { .layer_fd = -1, .gate_fd = -1 },
		.dir_fd = -1,
		.node_device = "eth0",
		.keeper = ISOLATE_CHILD_INIT,
		.gate = ISOLATE_CHILD_INIT,
	};
	struct error err = ERROR_INIT;

	title_set("nacre: init");
	(void)guest_run(&g, &err);
	guest_end(&g, &err);
}
