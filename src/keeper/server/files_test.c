/* SPDX-License-Identifier: Apache-2.0 */

/* Volumes that are given as files: a peer and a keeper in one loop, over real sockets, with a tmpfs
 * of the test's own as the keeper's place. */

#include "keeper/server/files.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/tree_list.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "instance/spawn.h"
#include "io/unix.h"
#include "isolate/mount/generations.h"
#include "keeper/client/client.h"
#include "keeper/message/convert_tree.h"
#include "keeper/server/given.h"
#include "keeper/server/server.h"
#include "loop/loop.h"
#include "loop/wait_test.h"
#include "scratch.h"
#include "unit.h"

static struct loop *l;
static char dir[64];
static int dir_fd;
static struct keeper_server *server;
static struct peer *peer;

static struct {
	int n_done;
	struct error err;
} told;

static void on_done(void *userdata, const struct error *err)
{
	told.n_done++;
	told.err = err ? *err : (struct error)ERROR_INIT;
}

static void on_nothing(void *userdata)
{
}

static void on_lost(void *userdata, const struct error *err)
{
}

static void on_container(void *userdata, const struct container_view *v)
{
}

static const struct peer_events events = { .on_container = on_container,
					   .on_synced = on_nothing,
					   .on_lost = on_lost };

static bool wait_done(int n)
{
	LOOP_WAIT(l, told.n_done == n);
	return told.n_done == n;
}

static void begin(void)
{
	struct keeper_server_config config = {
		.keeper = { .cgroup_fd = -1 }, .exe_fd = -1, .path = "", .on_shut = on_nothing
	};
	struct error err = ERROR_INIT;
	int rpc_fd = -1, fd_fd = -1;

	memset(&told, 0, sizeof(told));
	peer = NULL;
	server = NULL;
	(void)str_copy(dir, sizeof(dir), "/tmp/keeper-files-XXXXXX");
	CHECK(unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0);
	CHECK(mkdtemp(dir) != NULL);
	CHECK_INT(mount("own", dir, "tmpfs", 0, NULL), 0);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK_INT(loop_new(&l), 0);
	if (!l)
		return;
	config.loop = l;
	config.run_fd = config.keeper.shm_parent_fd = dir_fd;
	config.rpc_listen_fd = unix_listen(dir_fd, "rpc.sock", SOCK_STREAM, &err);
	config.channel_listen_fd = unix_listen(dir_fd, "fd.sock", SOCK_SEQPACKET, &err);
	CHECK_INT(keeper_server_new(&server, &config, &err), 0);
	if (!server)
		return;
	CHECK_INT(instance_connect(dir_fd, &rpc_fd, &fd_fd, &err), 0);
	if (keeper_client_new(&peer, l, rpc_fd, fd_fd) < 0)
		return;
	peer->ops->open(peer, &events, NULL, on_done);
	(void)wait_done(1);
}

static void end(void)
{
	if (peer)
		peer = peer->ops->free(peer);
	server = keeper_server_free(server);
	l = loop_free(l);
	dir_fd = fd_close(dir_fd);
	CHECK_INT(umount2(dir, MNT_DETACH), 0);
	CHECK_INT(scratch_remove(dir), 0);
}

static void is(const char *volume, const char *name, const char *expected)
{
	_cleanup_fd_ int fd = generations_open(dir_fd, volume);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = fd < 0 ? fd : rootfd_read(fd, name, 100, &b);

	if (r == 0)
		CHECK(b.len == strlen(expected) && memcmp(buf_data(&b), expected, b.len) == 0);
	else
		CHECK(r == -ENOMEM);
}

static struct tree_item items[2] = {
	{ .entry = { .type = TREE_DIRECTORY, .path = "root", .mode = 0755 } },
	{ .entry = { .type = TREE_FILE, .path = "root/a", .mode = 0400 } },
};

static void put(const char *volume, char *text)
{
	const struct tree_list list = { .items = items, .n = 2 };

	items[1].data = (uint8_t *)text;
	items[1].entry.size = strlen(text);
	peer->ops->put_files(peer, volume, &list, on_done, NULL);
}

/* Two that are asked for at once take effect in their order. */
static void takes_files(void)
{
	char one[] = "one", two[] = "two";

	begin();
	if (told.n_done == 1 && !told.err.code) {
		CHECK(peer->ops->takes_files(peer));
		told.n_done = 0;
		put("v0", one);
		put("v0", two);
		if (wait_done(2) && !told.err.code)
			is("v0", "a", "two");
	}
	CHECK_STR(told.err.text, "");
	end();
}

static void refuses_files(void)
{
	static const char *const names[] = { "", ".x", "a/b", "a b" };
	char text[] = "x";

	begin();
	for (size_t i = 0; i < ARRAY_SIZE(names) && told.n_done == 1 && !told.err.code; i++) {
		told.n_done = 0;
		put(names[i], text);
		if (!wait_done(1))
			break;
		CHECK_INT(told.err.kind, ERROR_INVALID);
		CHECK_STR(told.err.field, "volume");
		told.err = (struct error)ERROR_INIT;
	}
	for (size_t i = 0; i <= FILES_VOLUMES_MAX && told.n_done == 1 && !told.err.code; i++) {
		char name[16];

		(void)str_printf(name, sizeof(name), "v%zu", i);
		told.n_done = 0;
		items[0].entry.path = "..";
		put(name, text);
		if (!wait_done(1))
			break;
		CHECK_INT(told.err.kind, i == FILES_VOLUMES_MAX ? ERROR_EXHAUSTED : ERROR_INVALID);
		told.err = (struct error)ERROR_INIT;
	}
	items[0].entry.path = "root";
	end();
}

/* ---- disks ---- */

static void piece(const char *serial, uint64_t offset, uint64_t size, size_t len)
{
	static const uint8_t data[GIVEN_PIECE_MAX + 1];
	const struct peer_piece p = {
		.serial = serial, .offset = offset, .size = size, .data = data, .len = len
	};

	told.n_done = 0;
	told.err = (struct error)ERROR_INIT;
	peer->ops->put_disk(peer, &p, on_done, NULL);
}

static bool is_told(enum error_kind kind, const char *field)
{
	if (!wait_done(1) || told.err.code == -ENOMEM)
		return false;
	CHECK_INT(told.err.kind, kind);
	CHECK_STR(told.err.field, field);
	return true;
}

/* None of them becomes whole here: that is a device of the kernel's (tests/cloud/test_ec2_pods.py).
 */
static void refuses_pieces(void)
{
	static const struct {
		const char *serial;
		uint64_t offset, size;
		size_t len;
		const char *field;
	} wrong[] = {
		{ "", 0, 10, 5, "serial" },
		{ "A", 0, 10, 5, "serial" },
		{ "a/b", 0, 10, 5, "serial" },
		{ "123456789012345678901", 0, 10, 5, "serial" },
		{ "a", 0, 10, 0, "data" },
		{ "a", 0, UINT64_C(1) << 30, GIVEN_PIECE_MAX + 1, "data" },
		{ "a", 0, 4, 5, "size" },
		{ "a", 6, 10, 5, "size" },
		{ "a", UINT64_MAX, 10, 5, "size" },
		{ "a", 5, 10, 4, "offset" },
	};
	bool goes = true;

	begin();
	goes = told.n_done == 1 && !told.err.code;
	for (size_t i = 0; i < ARRAY_SIZE(wrong) && goes; i++) {
		piece(wrong[i].serial, wrong[i].offset, wrong[i].size, wrong[i].len);
		goes = is_told(ERROR_INVALID, wrong[i].field);
	}
	end();
}

static void takes_pieces_in_their_order(void)
{
	bool goes = true;

	begin();
	goes = told.n_done == 1 && !told.err.code;
	for (size_t i = 0; i < GIVEN_MAX && goes; i++) {
		char serial[8];

		(void)str_printf(serial, sizeof(serial), "d%zu", i);
		piece(serial, 0, 100, 10);
		goes = wait_done(1) && !told.err.code;
	}
	if (goes) {
		piece("more", 0, 100, 10);
		goes = is_told(ERROR_EXHAUSTED, "");
	}
	if (goes) {
		piece("d0", 10, 100, 10);
		goes = wait_done(1) && !told.err.code;
	}
	/* Not again, not further on, not of another size; and what came before is none the worse.
	 */
	if (goes) {
		piece("d0", 10, 100, 10);
		goes = is_told(ERROR_INVALID, "offset");
	}
	if (goes) {
		piece("d0", 30, 100, 10);
		goes = is_told(ERROR_INVALID, "offset");
	}
	if (goes) {
		piece("d0", 20, 100, 10);
		goes = wait_done(1) && !told.err.code;
		CHECK(goes || told.err.code == -ENOMEM);
	}
	if (goes) {
		piece("d1", 10, 101, 10);
		(void)is_told(ERROR_INVALID, "offset");
	}
	end();
}

/* ---- messages ---- */

static struct {
	Nacre__Instance__V1__PutFilesRequest request;
	Nacre__Instance__V1__VolumeFile files[VOLUME_FILES_MAX + 2], *list[VOLUME_FILES_MAX + 2];
	Nacre__V1__CopyEntry entry;
} m;

static void make_message(size_t n)
{
	static const struct tree_entry e = { .type = TREE_FILE, .path = "root/a" };

	nacre__instance__v1__put_files_request__init(&m.request);
	convert_entry(&m.entry, &e);
	for (size_t i = 0; i < n; i++) {
		nacre__instance__v1__volume_file__init(&m.files[i]);
		m.files[i].entry = &m.entry;
		m.list[i] = &m.files[i];
	}
	m.request.volume = (char *)(uintptr_t) "v0";
	m.request.files = m.list;
	m.request.n_files = n;
}

static int read_message(enum error_kind kind, const char *field)
{
	struct tree_list l2 = TREE_LIST_INIT;
	struct error err = ERROR_INIT;
	int r = convert_files_back(&l2, &m.request, &err);

	if (r == 0)
		tree_list_done(&l2);
	else if (err.code != -ENOMEM)
		CHECK(err.kind == kind && str_eq(err.field, field));
	CHECK(l2.n == 0 && !l2.items);
	return err.code == -ENOMEM ? 0 : r;
}

static void keeps_limits(void)
{
	uint8_t *big = calloc(1, VOLUME_BYTES_MAX + 1);

	make_message(VOLUME_FILES_MAX + 1);
	CHECK_INT(read_message(0, ""), 0);
	make_message(VOLUME_FILES_MAX + 2);
	CHECK(read_message(ERROR_INVALID, "files") <= 0);
	make_message(0);
	CHECK(read_message(ERROR_INVALID, "files") < 0);
	make_message(2);
	if (big) {
		m.files[0].data = (ProtobufCBinaryData){ .data = big, .len = VOLUME_BYTES_MAX };
		CHECK_INT(read_message(0, ""), 0);
		m.files[1].data = (ProtobufCBinaryData){ .data = big, .len = 1 };
		CHECK(read_message(ERROR_INVALID, "files") <= 0);
	}
	make_message(1);
	m.files[0].entry = NULL;
	CHECK(read_message(ERROR_INVALID, "files") <= 0);
	make_message(1);
	m.entry.type = NACRE__V1__COPY_ENTRY__TYPE__TYPE_OTHER;
	CHECK(read_message(ERROR_INVALID, "files") <= 0);
	make_message(1);
	m.entry.mode = 010000;
	CHECK(read_message(ERROR_INVALID, "files") <= 0);
	make_message(1);
	m.entry.path = (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t) "a\0b", .len = 3 };
	CHECK(read_message(ERROR_INVALID, "files") <= 0);
	free(big);
}

UNIT_MAIN({ "takes_files", takes_files }, { "refuses_files", refuses_files },
	  { "refuses_pieces", refuses_pieces },
	  { "takes_pieces_in_their_order", takes_pieces_in_their_order },
	  { "keeps_limits", keeps_limits })
