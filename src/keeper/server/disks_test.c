/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A keeper that is reached over a stream of bytes alone, with real containers from disks, which are
 * loop devices: started, written to, read, removed.
 */

#include "keeper/server/disks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cell/layer/bed_test.h"
#include "io/unix.h"
#include "isolate/disk/disk_bed_test.h"
#include "keeper/client/client.h"
#include "keeper/server/server.h"

#define BASE "/mnt" /* where the bed's own tmpfs is */

static struct bed bed;

static struct {
	struct keeper_server *server;
	struct peer *peer;
	struct disk_places places;
	char device[DISK_NAME_MAX + 1];
	int loop_fd;
	bool shut;
} world;

static struct {
	int n_opened, n_synced, n_started, n_done, n_ends;
	struct container_status status;
	struct error err;
	struct peer_log *log;
	struct buf text;
} told;

/* ---- what is told ---- */

static void on_shut(void *userdata)
{
	world.shut = true;
}

static void take_error(const struct error *err)
{
	told.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_opened(void *userdata, const struct error *err)
{
	told.n_opened++;
	take_error(err);
}

static void on_container(void *userdata, const struct container_view *view)
{
	told.status = view->status;
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

static void on_started(void *userdata, const struct container_view *view, const struct error *err)
{
	told.n_started++;
	if (view)
		told.status = view->status;
	take_error(err);
}

static void on_done(void *userdata, const struct error *err)
{
	told.n_done++;
	take_error(err);
}

static void on_lines(void *userdata, uint64_t at, const uint8_t *lines, size_t len)
{
	uint64_t next = at + bed_decode(lines, len, &told.text);

	CHECK_INT(world.peer->ops->log_take(told.log, next), 0);
}

static void on_eof(void *userdata, uint64_t at)
{
}

static void on_log_end(void *userdata, const struct error *err)
{
	told.n_ends++;
	told.log = NULL;
	take_error(err);
}

static const struct peer_log_ops log_ops = {
	.on_lines = on_lines,
	.on_eof = on_eof,
	.on_end = on_log_end,
};

/* ---- the world ---- */

static void put(const char *path, const char *text)
{
	_cleanup_fd_ int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && fd_write_full(fd, text, strlen(text)) == 0);
}

static void show_serial(const char *serial)
{
	char path[64];

	(void)str_printf(path, sizeof(path), BASE "/sys/%s", world.device);
	CHECK(mkdir(path, 0755) == 0 || errno == EEXIST);
	(void)str_printf(path, sizeof(path), BASE "/sys/%s/serial", world.device);
	put(path, serial);
}

static bool begin_disk(void)
{
	(void)mkdir(BASE "/sys", 0755);
	put(BASE "/image", "");
	world.loop_fd = -1;
	if (disk_bed_mkfs(BASE "/image", BASE "/root"))
		world.loop_fd = disk_bed_loop(BASE "/image", world.device);
	return world.loop_fd >= 0;
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
							.shm_parent_fd = (int)bed.last[0].pid,
							.shm_fd = bed.shm_fd,
							.host_mount_ns_fd = -1 },
					    .rpc_listen_fd = unix_listen(bed.base_fd, "rpc.sock",
									 SOCK_STREAM, &err),
					    .channel_listen_fd = unix_listen(bed.base_fd, "fd.sock",
									     SOCK_SEQPACKET, &err),
					    .run_fd = bed.base_fd,
					    .exe_fd = -1,
					    .path = "",
					    .disks = &world.places,
					    .on_shut = on_shut,
				    },
				    &err),
		  0);
	CHECK_INT(keeper_client_new(&world.peer, bed.loop,
				    unix_connect(bed.base_fd, "rpc.sock", SOCK_STREAM, &err), -1),
		  0);
	world.peer->ops->open(world.peer, &events, NULL, on_opened);
	BED_UNTIL(&bed, told.n_opened == 1 && told.n_synced == 1);
	CHECK_INT(told.n_synced, 1);
}

/* False: to be skipped. */
static bool begin(void)
{
	memset(&told, 0, sizeof(told));
	memset(&world, 0, sizeof(world));
	bed_open(&bed);
	if (!begin_disk()) {
		bed_close(&bed);
		return false;
	}
	world.places = (struct disk_places){
		.sys_fd = open(BASE "/sys", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.dev_fd = open("/dev", O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.bus_fd = -1,
	};
	begin_server();
	return true;
}

static void end(void)
{
	char path[64];

	(void)world.peer->ops->free(world.peer);
	keeper_server_shutdown(world.server);
	BED_UNTIL(&bed, world.shut);
	world.server = keeper_server_free(world.server);
	(void)str_printf(path, sizeof(path), BASE "/sys/%s/serial", world.device);
	(void)unlink(path);
	for (const char *const *name = (const char *const[]){ "rpc.sock", "fd.sock", NULL }; *name;
	     name++)
		(void)unlinkat(bed.base_fd, *name, 0);
	(void)fd_close(world.places.sys_fd);
	(void)fd_close(world.places.dev_fd);
	(void)fd_close(world.loop_fd);
	buf_done(&told.text);
	bed_close(&bed);
}

/* ---- what is asked ---- */

static void start(const char *serial, const char *script)
{
	static const struct container_file file = {
		.path = "/etc/hosts", .mode = 0644, .data = "127.0.0.1 here\n", .len = 15
	};
	const struct container_disk disk = { .serial = serial,
					     .fs = CONTAINER_DISK_FS,
					     .upper_bytes = 1 << 20 };
	char sh[] = "/bin/sh", c[] = "-c", text[256];
	char *argv[] = { sh, c, text, NULL };
	struct container_fds fds = CONTAINER_FDS_NONE;
	struct container_spec spec = { .name = "main",
				       .kind = CONTAINER_IMAGE,
				       .argv = argv,
				       .cwd = "",
				       .user = "app",
				       .log = { .block_for = NSEC_NEVER },
				       .root_disk = &disk,
				       .files = &file,
				       .n_files = 1,
				       .keep_log = true };
	struct cell_spec cell = { .name = "web", .shares_instance = true };

	(void)str_copy(text, sizeof(text), script);
	(void)str_copy(spec.id, sizeof(spec.id), bed_id(1));
	world.peer->ops->start(world.peer, &cell, &spec, &fds, on_started, NULL);
}

static void await_start(void)
{
	BED_UNTIL(&bed, told.n_started == 1);
	CHECK_INT(told.n_started, 1);
	if (told.err.code)
		printf("# %s\n", error_text(&told.err));
	if (told.status.reason[0])
		printf("# %s\n", told.status.reason);
}

static void read_log(void)
{
	CHECK_INT(world.peer->ops->log_open(world.peer, bed_id(1), 0, &log_ops, NULL, &told.log),
		  0);
	BED_UNTIL(&bed, told.n_ends == 1);
	CHECK_INT(told.err.code, 0);
}

static int is_free(void)
{
	return disk_is_free(&world.places, world.device);
}

/* ---- the tests ---- */

static void a_container_lives_on_a_disk(void)
{
	static const char said[] = "127.0.0.1 here\nuid=1000(app) gid=1000(app)";

	if (!begin())
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	show_serial("slot1");
	start("slot1", "cat /etc/hosts; id");
	await_start();
	CHECK(told.err.code == 0 && told.status.state != CONTAINER_FAILED);
	read_log();
	CHECK(told.text.len > strlen(said) &&
	      memcmp(buf_data(&told.text), said, strlen(said)) == 0);
	BED_UNTIL(&bed, told.status.state == CONTAINER_EXITED);
	CHECK_INT(told.status.state, CONTAINER_EXITED);
	world.peer->ops->remove(world.peer, bed_id(1), on_done, NULL);
	BED_UNTIL(&bed, told.n_done == 1);
	CHECK(told.n_done == 1 && told.err.code == 0);
	CHECK_INT(is_free(), 1);
	end();
}

static void a_removed_cell_lets_go_of_its_disks(void)
{
	if (!begin())
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	show_serial("slot1");
	start("slot1", "sleep 1000");
	await_start();
	CHECK_INT(told.status.state, CONTAINER_RUNNING);
	CHECK_INT(is_free(), 0);
	world.peer->ops->remove_cell(world.peer, "web", on_done, NULL);
	BED_UNTIL(&bed, told.n_done == 1);
	CHECK(told.n_done == 1 && told.err.code == 0);
	CHECK_INT(is_free(), 1);
	end();
}

static void a_disk_that_is_held_is_told(void)
{
	_cleanup_fd_ int held_fd = -1;
	char path[64];

	if (!begin())
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	show_serial("slot1");
	start("slot1", "true");
	await_start();
	read_log();
	BED_UNTIL(&bed, told.status.state == CONTAINER_EXITED);
	/* Somebody else than the container. */
	(void)str_printf(path, sizeof(path), "/dev/%s", world.device);
	for (time_t since = unit_now(); held_fd < 0 && unit_waits(since);)
		held_fd = open(path, O_RDONLY | O_EXCL | O_CLOEXEC);
	world.peer->ops->remove(world.peer, bed_id(1), on_done, NULL);
	BED_UNTIL(&bed, told.n_done == 1);
	CHECK(strstr(told.err.text, "slot1 is still held") != NULL);
	end();
}

static void a_disk_may_come_later(void)
{
	if (!begin())
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	start("slot2", "sleep 1000");
	for (int i = 0; i < 100; i++)
		bed_turn(&bed);
	CHECK_INT(told.n_started, 0);
	show_serial("slot2");
	await_start();
	CHECK_INT(told.status.state, CONTAINER_RUNNING);
	end();
}

static void a_disk_that_is_none_is_refused(void)
{
	if (!begin())
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	start("slot9", "true");
	await_start();
	CHECK_INT(told.status.state, CONTAINER_FAILED);
	CHECK(strstr(told.status.reason, "no disk with the serial slot9") != NULL);
	world.peer->ops->remove_cell(world.peer, "web", on_done, NULL);
	BED_UNTIL(&bed, told.n_done == 1);
	CHECK(told.n_done == 1 && told.err.code == 0);
	end();
}

static void a_start_may_be_killed_while_it_waits(void)
{
	if (!begin())
		SKIP("no loop device, no EROFS or no mkfs.erofs");
	start("slot9", "true");
	for (int i = 0; i < 20; i++)
		bed_turn(&bed);
	world.peer->ops->signal(world.peer, bed_id(1), SIGKILL, true, on_done, NULL);
	await_start();
	CHECK_INT(told.status.exit_code, 128 + SIGKILL);
	show_serial("slot9");
	world.peer->ops->remove_cell(world.peer, "web", on_done, NULL);
	BED_UNTIL(&bed, told.n_done == 2);
	CHECK(told.n_done == 2 && told.err.code == 0);
	CHECK_INT(is_free(), 1);
	end();
}

BED_MAIN({ "a container lives on a disk", a_container_lives_on_a_disk },
	 { "a removed cell lets go of its disks", a_removed_cell_lets_go_of_its_disks },
	 { "a disk that is held is told", a_disk_that_is_held_is_told },
	 { "a disk may come later", a_disk_may_come_later },
	 { "a disk that is none is refused", a_disk_that_is_none_is_refused },
	 { "a start may be killed while it waits", a_start_may_be_killed_while_it_waits })
