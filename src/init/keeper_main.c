/* SPDX-License-Identifier: Apache-2.0 */
#include "init/keeper_main.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/process/thread.h"
#include "base/process/title.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "init/guest_self.h"
#include "init/node_mounts.h"
#include "init/reexec.h"
#include "instance/spawn.h"
#include "isolate/seccomp/confine.h"
#include "keeper/server/server.h"
#include "loop/loop.h"

/*
 * Theory of operation. The process finds its descriptors at fixed numbers (instance/spawn.h) and
 * everything that it needs of the file system below /run, /proc and /dev/shm. Inside a wall these
 * are the private root that it was born with; the keeper of the node makes itself a mount namespace
 * first. After that both are the same: a keeper_server in a loop, until Shutdown or SIGTERM.
 *
 * A program that takes the place of another one in this process (init/reexec.h) finds the same
 * descriptors, and one more with the state. Signals stay blocked over the exec, so what came
 * meanwhile waits; an end of a child shows in its pidfd.
 *
 * As pid 1 it lives next to strangers: the kernel drops their signals only where no one listens for
 * them, so those with a sender inside the namespace are dropped here (architecture 9.5).
 */

struct keeper_process {
	char path[NAME_PATH_MAX + 1]; /* as its title says */
	bool node;
	bool guest; /* the first one of a guest: it sees the disks of the machine */
	bool ahead; /* of a pod */
	bool has_disks;
	struct disk_places disks; /* of the guest that it is in, behind walls of its own */
	struct loop *loop;
	struct keeper_server *server;
	struct loop_signal signals;
	bool signals_armed;
	struct reexec reexec;
	int run_fd, shm_parent_fd, shm_fd, proc_fd, host_mount_ns_fd;
	char words[INSTANCE_LAST_WORDS_MAX];
};

static int keeper_process_parse(struct keeper_process *k, int argc, char **argv, struct error *err)
{
	for (int i = 1; i < argc; i++) {
		int r = reexec_parse(&k->reexec, argv[i], argv[i + 1], err);

		if (r < 0)
			return r;
		/* --room is there so that a longer title fits in its place: the name of the pod
		 * that it was made ahead for. */
		k->ahead = k->ahead || str_eq(argv[i], "--room");
		if (r > 0 || str_eq(argv[i], "--room"))
			i++;
		else if (str_eq(argv[i], "--node"))
			k->node = true;
		else if (str_eq(argv[i], "--guest"))
			k->guest = true;
		else if (str_eq(argv[i], "--disks"))
			k->has_disks = true;
		else if (!str_eq(argv[i], "--title") || ++i == argc)
			return error_refuse(err, ERROR_INVALID, "keeper: wrong argument %s",
					    argv[i - 1]);
		else if (str_copy(k->path, sizeof(k->path), argv[i]) < 0)
			return error_refuse(err, ERROR_INVALID, "keeper: the title is too long");
	}
	return 0;
}

static void keeper_show_title(const struct keeper_process *k)
{
	char title[NAME_PATH_MAX + 32];

	(void)str_printf(title, sizeof(title), "nacre: keeper %s", k->path);
	title_set(title);
}

/* It was made ahead of need, and is told now whose it is. */
static void keeper_on_named(void *userdata, const char *path)
{
	struct keeper_process *k = userdata;
	const char *name = name_last(path);

	if (k->node || str_copy(k->path, sizeof(k->path), path) < 0)
		return;
	keeper_show_title(k);
	if (sethostname(name, strlen(name)) < 0)
		log_debug("the hostname stays as it was", LOG_STR("name", name));
}

/* A person that starts a keeper by hand has none of these open, and should be told so. */
static int keeper_check_fds(struct error *err)
{
	for (int fd = INSTANCE_FD_RPC; fd < INSTANCE_FD_END_OF_LIST; fd++)
		if (fd_set_cloexec(fd, true) < 0)
			return error_refuse(
				err, ERROR_PRECONDITION,
				"descriptor %d is not open: a keeper is started by nacre only", fd);
	return 0;
}

static int keeper_take_disks(struct keeper_process *k, struct error *err)
{
	if (!k->has_disks)
		return 0;
	if (fd_set_cloexec(INSTANCE_FD_DISKS_SYS, true) < 0 ||
	    fd_set_cloexec(INSTANCE_FD_DISKS_DEV, true) < 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "--disks: a keeper is started by nacre only");
	k->disks = (struct disk_places)DISK_PLACES_NONE;
	k->disks.sys_fd = INSTANCE_FD_DISKS_SYS;
	k->disks.dev_fd = INSTANCE_FD_DISKS_DEV;
	if (fd_set_cloexec(INSTANCE_FD_DISKS_BUS, true) == 0)
		k->disks.bus_fd = INSTANCE_FD_DISKS_BUS;
	return 0;
}

static int open_dir(const char *path, struct error *err)
{
	int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	return fd < 0 ? error_set(err, -errno, "open %s", path) : fd;
}

static int make_run_dir(const char *name, struct error *err)
{
	if (mkdir(name, 0700) < 0 && errno != EEXIST)
		return error_set(err, -errno, "make %s", name);
	return open_dir(name, err);
}

static int keeper_open_places(struct keeper_process *k, struct error *err)
{
	int r = 0;

	k->host_mount_ns_fd = TAKE_FD(k->reexec.host_mount_ns_fd);
	/* Made by the program before this one where there was one. */
	if (k->node && k->reexec.state_fd < 0)
		r = node_mounts_make(&k->host_mount_ns_fd, err);
	if (r < 0)
		return r;
	k->proc_fd = open_dir("/proc", err);
	if (k->proc_fd < 0)
		return k->proc_fd;
	k->run_fd = make_run_dir("/run/inst", err);
	if (k->run_fd < 0)
		return k->run_fd;
	k->shm_parent_fd = make_run_dir("/run/shm", err);
	if (k->shm_parent_fd < 0)
		return k->shm_parent_fd;
	if (k->node)
		return 0;
	k->shm_fd = open_dir("/dev/shm", err);
	return k->shm_fd < 0 ? k->shm_fd : 0;
}

/* None of these is worth dying for. */
static void keeper_protect(const struct keeper_process *k)
{
	/* A daemon that has ended took the reader of stderr along. */
	(void)sigaction(SIGPIPE, &(struct sigaction){ .sa_handler = SIG_IGN }, NULL);
	confine_memory();
	/* What loses its parent is its own also where it is not pid 1. */
	if ((k->node || (!k->guest && getpid() != 1)) && prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		log_debug("cannot reap orphans", LOG_STR("err", strerror(errno)));
	(void)thread_be_prompt();
	if (chdir("/") < 0)
		log_debug("cannot go to /", LOG_STR("err", strerror(errno)));
}

/* ---- running ---- */

static void keeper_on_shut(void *userdata)
{
	struct keeper_process *k = userdata;

	loop_quit(k->loop, EXIT_SUCCESS);
}

static void keeper_on_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct keeper_process *k = container_of(source, struct keeper_process, signals);

	if (sig == SIGCHLD) {
		keeper_reap_orphans(keeper_server_keeper(k->server));
		return;
	}
	if (getpid() == 1 && sender != 0)
		return;
	(void)str_printf(k->words, sizeof(k->words), "ended by signal %d", sig);
	keeper_server_shutdown(k->server);
}

static int keeper_execute(void *userdata, int exe_fd, int state_fd, const struct handover_writer *w,
			  struct error *err)
{
	struct keeper_process *k = userdata;

	return reexec_execute(k->path, k->node, k->host_mount_ns_fd, exe_fd, state_fd, w, err);
}

static int keeper_resume(struct keeper_process *k, struct error *err)
{
	_cleanup_fd_ int fd = TAKE_FD(k->reexec.state_fd);

	return fd < 0 ? 0 : keeper_server_resume(k->server, fd, err);
}

static int keeper_serve(struct keeper_process *k, struct error *err)
{
	static const int signals[] = { SIGTERM, SIGINT, SIGCHLD };
	int r;

	r = loop_new(&k->loop);
	if (r < 0)
		return error_set(err, r, "make the loop of the keeper");
	r = keeper_server_new(&k->server,
			      &(struct keeper_server_config){
				      .loop = k->loop,
				      .keeper = {
					      .cgroup_fd = INSTANCE_FD_CGROUP,
					      .proc_fd = k->proc_fd,
					      .shm_parent_fd = k->shm_parent_fd,
					      .shm_fd = k->shm_fd,
					      .ahead = k->ahead && k->reexec.state_fd < 0,
					      .host_mount_ns_fd = k->host_mount_ns_fd,
				      },
				      .rpc_listen_fd = INSTANCE_FD_RPC,
				      .channel_listen_fd = INSTANCE_FD_CHANNEL,
				      .run_fd = k->run_fd,
				      .exe_fd = INSTANCE_FD_EXE,
				      .disks = k->has_disks ? &k->disks : NULL,
				      .in_guest = k->guest,
				      .path = k->node ? "" : k->path,
				      .on_shut = keeper_on_shut,
				      .on_named = keeper_on_named,
				      .put_link = k->guest ? guest_net_put : NULL,
				      .execute = keeper_execute,
				      .userdata = k,
			      },
			      err);
	if (r == 0)
		r = keeper_resume(k, err);
	if (r < 0)
		return r;
	r = loop_signal_init(&k->signals, k->loop, signals, ARRAY_SIZE(signals), keeper_on_signal);
	if (r < 0)
		return error_set(err, r, "listen for signals");
	k->signals_armed = true;
	keeper_reap_orphans(keeper_server_keeper(k->server));
	return loop_run(k->loop);
}

/* The parent reads it once the process is no more. */
static void keeper_say_last(const char *words)
{
	(void)fd_write_full(INSTANCE_FD_END, words, strlen(words));
	(void)fd_write_full(INSTANCE_FD_END, "\n", 1);
}

static int keeper_process_run(struct keeper_process *k, int argc, char **argv, struct error *err)
{
	int r;

	r = keeper_process_parse(k, argc, argv, err);
	if (r < 0)
		return r;
	r = keeper_check_fds(err);
	if (r == 0)
		r = keeper_take_disks(k, err);
	if (r < 0)
		return r;
	keeper_show_title(k);
	keeper_protect(k);
	r = keeper_open_places(k, err);
	if (r < 0)
		return r;
	r = confine_keeper(k->node, err);
	if (r < 0)
		return r;
	return keeper_serve(k, err);
}

static void keeper_process_done(struct keeper_process *k)
{
	if (k->signals_armed)
		loop_signal_done(&k->signals);
	k->server = keeper_server_free(k->server);
	loop_freep(&k->loop);
	k->run_fd = fd_close(k->run_fd);
	k->shm_parent_fd = fd_close(k->shm_parent_fd);
	k->shm_fd = fd_close(k->shm_fd);
	k->proc_fd = fd_close(k->proc_fd);
	k->host_mount_ns_fd = fd_close(k->host_mount_ns_fd);
}

int keeper_main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	struct keeper_process k = {
		.reexec = REEXEC_INIT,
		.run_fd = -1,
		.shm_parent_fd = -1,
		.shm_fd = -1,
		.proc_fd = -1,
		.host_mount_ns_fd = -1,
		.words = "was shut down",
	};
	int r;

	if (argc == 2 && str_eq(argv[1], "--try"))
		return reexec_try();
	r = keeper_process_run(&k, argc, argv, &err);
	if (r < 0) {
		log_error("a keeper cannot go on", LOG_STR("keeper", k.path), LOG_ERR(&err));
		(void)str_copy(k.words, sizeof(k.words), error_text(&err));
	}
	keeper_process_done(&k);
	keeper_say_last(k.words);
	return r < 0 ? EXIT_FAILURE : r;
}
