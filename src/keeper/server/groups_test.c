/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A keeper that is reached over a stream of bytes alone, with real containers in real groups: what
 * it says of them is compared with the kernel's files.
 */

#include "keeper/server/groups.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "io/unix.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_path.h"
#include "isolate/cgroup/flat.h"
#include "keeper/client/client.h"
#include "keeper/server/server.h"

static struct bed bed;

static struct {
	struct keeper_server *server;
	struct peer *peer;
	char home[CGROUP_PATH_SIZE]; /* the group that this process came from */
	bool shut;
	int id;
} world;

static struct {
	int n_opened, n_synced, n_done;
	struct error err;
	/* Of the layer, its cell, its container. */
	struct usage usage[3];
	size_t n_usage, n_processes, n_mine, n_wrong;
	bool truncated;
	char command[PROCESS_COMMAND_MAX];
} told;

/* ---- what is told ---- */

static void on_shut(void *userdata)
{
	world.shut = true;
}

static void on_opened(void *userdata, const struct error *err)
{
	told.n_opened++;
}

static void on_container(void *userdata, const struct container_view *view)
{
}

static void on_synced(void *userdata)
{
	told.n_synced++;
}

static void on_lost(void *userdata, const struct error *err)
{
}

static const struct peer_events events = { .on_container = on_container,
					   .on_synced = on_synced,
					   .on_lost = on_lost };

static void on_done(void *userdata, const struct error *err)
{
	told.n_done++;
	told.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_usage(void *userdata, const struct peer_group *groups, size_t n,
		     const struct error *err)
{
	on_done(userdata, err);
	told.n_usage = n;
	for (size_t i = 0; i < n; i++) {
		size_t at = *groups[i].id ? 2 : *groups[i].cell ? 1 : 0;

		told.usage[at] = groups[i].usage;
		told.n_wrong += *groups[i].id && !str_eq(groups[i].id, bed_id(world.id));
		told.n_wrong += *groups[i].cell && !str_eq(groups[i].cell, "c");
	}
}

static void on_processes(void *userdata, const struct peer_process *processes, size_t n,
			 bool truncated, const struct error *err)
{
	on_done(userdata, err);
	told.n_processes = n;
	told.truncated = truncated;
	for (size_t i = 0; i < n; i++) {
		const struct process *p = &processes[i].process;

		told.n_wrong += p->pid != 0 || p->inner_pid <= 0 || p->state == '?';
		if (!*processes[i].id)
			told.n_mine++;
		else if (str_eq(processes[i].id, bed_id(world.id)))
			(void)str_copy(told.command, sizeof(told.command), p->command);
	}
}

/* ---- the world ---- */

static void go_to(int dir_fd, const char *path)
{
	_cleanup_fd_ int fd = cgroup_open_path(dir_fd, path);

	CHECK_INT(fd_write_file(fd, "cgroup.procs", "0"), 0);
}

static void begin_server(void)
{
	struct error err = ERROR_INIT;

	bed.keeper = keeper_free(bed.keeper);
	CHECK_INT(keeper_server_new(&world.server,
				    &(struct keeper_server_config){
					    .loop = bed.loop,
					    .keeper = { .cgroup_fd = bed.cgroup_fd,
							.proc_fd = bed.proc_fd,
							.shm_parent_fd = bed.shm_fd,
							.shm_fd = bed.shm_fd,
							.host_mount_ns_fd = -1 },
					    .rpc_listen_fd = unix_listen(bed.base_fd, "rpc.sock",
									 SOCK_STREAM, &err),
					    .channel_listen_fd = unix_listen(bed.base_fd, "fd.sock",
									     SOCK_SEQPACKET, &err),
					    .run_fd = bed.base_fd,
					    .exe_fd = -1,
					    .path = "",
					    .on_shut = on_shut,
				    },
				    &err),
		  0);
	bed.keeper = keeper_server_keeper(world.server);
	CHECK_INT(keeper_client_new(&world.peer, bed.loop,
				    unix_connect(bed.base_fd, "rpc.sock", SOCK_STREAM, &err), -1),
		  0);
	world.peer->ops->open(world.peer, &events, NULL, on_opened);
	BED_UNTIL(&bed, told.n_opened == 1 && told.n_synced == 1);
	CHECK_INT(told.n_synced, 1);
}

/* This process is in the leaf of the keeper, as a keeper is. */
static void begin(const char *script)
{
	_cleanup_fd_ int leaf_fd = -1;
	struct error err = ERROR_INIT;

	memset(&told, 0, sizeof(told));
	memset(&world, 0, sizeof(world));
	bed_open(&bed);
	CHECK_INT(cgroup_own_path(world.home, sizeof(world.home), &err), 0);
	leaf_fd = cgroup_make(bed.cgroup_fd, "keeper", &err);
	CHECK_INT(fd_write_file(leaf_fd, "cgroup.procs", "0"), 0);
	begin_server();
	world.id = bed_start(&bed, &(struct bed_start){ .name = "main", .script = script }, &err);
	CHECK(world.id >= 0);
	BED_UNTIL(&bed, bed.n_started == 1);
	CHECK_INT(bed.n_started, 1);
}

static void end(void)
{
	_cleanup_fd_ int top_fd = cgroup_open_root(NULL);

	(void)world.peer->ops->free(world.peer);
	keeper_server_shutdown(world.server);
	BED_UNTIL(&bed, world.shut);
	bed.keeper = NULL;
	world.server = keeper_server_free(world.server);
	(void)unlinkat(bed.base_fd, "rpc.sock", 0);
	(void)unlinkat(bed.base_fd, "fd.sock", 0);
	go_to(top_fd, world.home);
	CHECK_INT(cgroup_remove(bed.cgroup_fd, "keeper"), 0);
	bed_close(&bed);
}

/* A file of a group, "" where it is not there. */
static const char *file_of(const char *group, const char *name)
{
	static char text[4096];
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[256];

	text[0] = '\0';
	(void)str_printf(path, sizeof(path), "%s/%s", group, name);
	if (fd_read_file(bed.cgroup_fd, path, sizeof(text) - 1, &b) == 0) {
		memcpy(text, buf_data(&b), b.len);
		text[b.len] = '\0';
	}
	return text;
}

static void ask_usage(void)
{
	int n = told.n_done;

	world.peer->ops->usage(world.peer, on_usage, NULL);
	BED_UNTIL(&bed, told.n_done > n);
	CHECK_INT(told.n_done, n + 1);
}

static void limit(const char *id, const char *cell, const char *word)
{
	char *words[] = { (char *)(uintptr_t)word, NULL };
	int n = told.n_done;

	world.peer->ops->limit(world.peer, id, cell, words, on_done, NULL);
	BED_UNTIL(&bed, told.n_done > n);
	CHECK_INT(told.n_done, n + 1);
}

/* ---- the tests ---- */

static void its_usage_is_the_kernels(void)
{
	uint64_t before = 0, after;

	begin("i=0; while [ $i -lt 20000 ]; do i=$((i + 1)); done; exec sleep 1000");
	for (time_t since = unit_now(); unit_waits(since);) {
		before = flat_value(file_of("cell.c/main", "cpu.stat"), "usage_usec");
		if (before > 10000)
			break;
	}
	ask_usage();
	after = flat_value(file_of("cell.c/main", "cpu.stat"), "usage_usec");
	CHECK_INT(told.err.code, 0);
	CHECK_INT(told.n_usage, 3);
	CHECK_INT(told.n_wrong, 0);
	CHECK(told.usage[2].cpu_total_us >= before && told.usage[2].cpu_total_us <= after);
	/* Each has what is in it. */
	CHECK(told.usage[1].cpu_total_us >= before);
	CHECK(told.usage[0].cpu_total_us >= told.usage[1].cpu_total_us);
	end();
}

static void its_processes_are_told_with_their_containers(void)
{
	begin("exec sleep 1000");
	for (time_t since = unit_now(); !str_eq(told.command, "sleep 1000") && unit_waits(since);) {
		int n = told.n_done;

		memset(&told, 0, sizeof(told));
		told.n_done = n;
		world.peer->ops->processes(world.peer, on_processes, NULL);
		BED_UNTIL(&bed, told.n_done > n);
	}
	CHECK_INT(told.err.code, 0);
	CHECK_STR(told.command, "sleep 1000");
	CHECK_INT(told.n_mine, 1);
	CHECK_INT(told.n_processes, 2);
	CHECK_INT(told.n_wrong, 0);
	CHECK(!told.truncated);
	end();
}

/* A limit that needs no controller. */
static void a_limit_is_changed(void)
{
	begin("exec sleep 1000");
	limit(bed_id(world.id), "", "cgroup.max.depth=3");
	CHECK_INT(told.err.code, 0);
	CHECK_STR(file_of("cell.c/main", "cgroup.max.depth"), "3\n");
	limit("", "c", "cgroup.max.depth=4");
	CHECK_STR(file_of("cell.c", "cgroup.max.depth"), "4\n");
	limit("", "", "cgroup.max.depth=5");
	CHECK_STR(file_of(".", "cgroup.max.depth"), "5\n");
	CHECK_STR(file_of("cell.c/main", "cgroup.max.depth"), "3\n");
	/* What the kernel or the form refuses changes nothing. */
	limit("", "c", "cgroup.max.depth=x");
	CHECK_STR(told.err.field, "cgroup.max.depth");
	limit("", "c", "cgroup.procs=0");
	CHECK_INT(told.err.kind, ERROR_INVALID);
	CHECK_STR(file_of("cell.c", "cgroup.max.depth"), "4\n");
	end();
}

static void a_group_that_is_none_has_no_limits(void)
{
	begin("exec sleep 1000");
	limit("00000000000000ff", "", "cgroup.max.depth=3");
	CHECK_INT(told.err.kind, ERROR_NOT_FOUND);
	CHECK_STR(told.err.field, "id");
	limit("", "d", "cgroup.max.depth=3");
	CHECK_INT(told.err.kind, ERROR_NOT_FOUND);
	CHECK_STR(told.err.field, "cell");
	limit("", "c/main", "cgroup.max.depth=3");
	CHECK_INT(told.err.kind, ERROR_INVALID);
	limit(bed_id(world.id), "c", "cgroup.max.depth=3");
	CHECK_INT(told.err.kind, ERROR_INVALID);
	CHECK_STR(file_of("cell.c/main", "cgroup.max.depth"), "max\n");
	end();
}

BED_MAIN({ "its usage is the kernel's", its_usage_is_the_kernels },
	 { "its processes are told with their containers",
	   its_processes_are_told_with_their_containers },
	 { "a limit is changed", a_limit_is_changed },
	 { "a group that is none has no limits", a_group_that_is_none_has_no_limits })
