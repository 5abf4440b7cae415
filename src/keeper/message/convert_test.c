/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/convert.h"

#include <errno.h>
#include <stdint.h>

#include "base/macros.h"
#include "base/memory/arena.h"
#include "unit.h"

typedef void (*spoil_fn)(Nacre__Instance__V1__StartRequest *r);

static char *list[] = { (char[]){ "/bin/true" }, (char[]){ "x" }, NULL };

static void start_request(Nacre__Instance__V1__StartRequest *request)
{
	static const struct cell_spec cell = { .name = "web",
					       .shares_instance = true,
					       .host_network = true,
					       .hostname = "www.example" };
	static const struct container_spec spec = {
		.id = "0123456789abcdef",
		.name = "main",
		.argv = list,
		.env = list,
		.cwd = "/srv",
		.user = "1:2",
		.stdin_open = true,
		.rootfs_token = 7,
		.log_token = UINT64_MAX,
	};

	convert_start_request(request, &cell, &spec);
}

static void start_survives(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	Nacre__Instance__V1__StartRequest request, *back;
	struct container_spec spec;
	struct cell_spec cell;
	uint8_t data[512];
	size_t len;

	start_request(&request);
	len = nacre__instance__v1__start_request__pack(&request, data);
	back = nacre__instance__v1__start_request__unpack(NULL, len, data);
	CHECK_INT(convert_start(&cell, &spec, back, &arena, NULL), 0);
	CHECK_STR(cell.name, "web");
	CHECK(cell.shares_instance && cell.host_network);
	CHECK_STR(cell.hostname, "www.example");
	CHECK_STR(spec.id, "0123456789abcdef");
	CHECK_STR(spec.name, "main");
	CHECK_INT(spec.kind, CONTAINER_IMAGE);
	CHECK_STR(spec.argv[1], "x");
	CHECK(!spec.argv[2] && !spec.env[2]);
	CHECK_STR(spec.cwd, "/srv");
	CHECK_STR(spec.user, "1:2");
	CHECK(spec.stdin_open && spec.rootfs_token == 7 && spec.log_token == UINT64_MAX);
	nacre__instance__v1__start_request__free_unpacked(back, NULL);
}

static void spoil_cell(Nacre__Instance__V1__StartRequest *r)
{
	r->cell = convert_str("../x");
}

static void spoil_name(Nacre__Instance__V1__StartRequest *r)
{
	r->name = convert_str("");
}

static void spoil_id(Nacre__Instance__V1__StartRequest *r)
{
	r->id = convert_str("0123456789abcdeF");
}

static void spoil_long_id(Nacre__Instance__V1__StartRequest *r)
{
	r->id = convert_str("0123456789abcdef0");
}

static void spoil_kind(Nacre__Instance__V1__StartRequest *r)
{
	r->kind = CONTAINER_KIND_MAX + 1;
}

static void spoil_argv(Nacre__Instance__V1__StartRequest *r)
{
	r->n_argv = 0;
}

static void spoil_cwd(Nacre__Instance__V1__StartRequest *r)
{
	r->cwd = convert_str("srv");
}

static void spoil_rootfs(Nacre__Instance__V1__StartRequest *r)
{
	r->rootfs_token = 0;
}

static void spoil_process(Nacre__Instance__V1__StartRequest *r)
{
	r->kind = CONTAINER_PROCESS;
}

static void spoil_visitor(Nacre__Instance__V1__StartRequest *r)
{
	r->kind = CONTAINER_VISITOR;
	r->rootfs_token = 0;
}

/* ---- what the keeper makes itself ---- */

static Nacre__Instance__V1__Disk disk;
static Nacre__Instance__V1__File file, *files[] = { &file };
static Nacre__Instance__V1__Mount mount, *mounts[] = { &mount };

static void with_disk(Nacre__Instance__V1__StartRequest *r)
{
	static const struct container_disk from = { .serial = "slot1",
						    .fs = CONTAINER_DISK_FS,
						    .upper_bytes = 5 };
	static const struct container_file hosts = {
		.path = "/etc/hosts", .mode = 0644, .data = "x", .len = 1
	};
	static const struct container_mount share = { .target = "/v",
						      .share = "vol",
						      .read_only = true };

	convert_disk(&disk, &from);
	convert_file(&file, &hosts);
	convert_mount(&mount, &share);
	r->root_disk = &disk;
	r->files = files;
	r->n_files = 1;
	r->mounts = mounts;
	r->n_mounts = 1;
	r->rootfs_token = 0;
	r->log_token = 0;
	r->keep_log = true;
}

static void disks_survive(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	Nacre__Instance__V1__StartRequest request;
	struct container_spec spec;
	struct cell_spec cell;

	start_request(&request);
	with_disk(&request);
	CHECK_INT(convert_start(&cell, &spec, &request, &arena, NULL), 0);
	CHECK_STR(spec.root_disk->serial, "slot1");
	CHECK_STR(spec.root_disk->fs, CONTAINER_DISK_FS);
	CHECK(spec.root_disk->upper_bytes == 5 && spec.n_files == 1 && spec.keep_log);
	CHECK_STR(spec.files[0].path, "/etc/hosts");
	CHECK(spec.files[0].mode == 0644 && spec.files[0].len == 1);
	CHECK(*(const char *)spec.files[0].data == 'x');
	CHECK_STR(spec.mounts[0].share, "vol");
	CHECK(spec.mounts[0].read_only);
}

static void spoil_disk(Nacre__Instance__V1__StartRequest *r)
{
	with_disk(r);
	r->rootfs_token = 7;
}

static void spoil_disk_of_process(Nacre__Instance__V1__StartRequest *r)
{
	with_disk(r);
	r->kind = CONTAINER_PROCESS;
}

static void spoil_files(Nacre__Instance__V1__StartRequest *r)
{
	with_disk(r);
	r->root_disk = NULL;
	r->rootfs_token = 7;
}

static void spoil_late(Nacre__Instance__V1__StartRequest *r)
{
	with_disk(r);
	r->late_fds = true;
}

static void spoil_share(Nacre__Instance__V1__StartRequest *r)
{
	with_disk(r);
	mount.token = 3;
}

static void spoil_kept_log(Nacre__Instance__V1__StartRequest *r)
{
	with_disk(r);
	r->log_token = 7;
}

static void wrong_start_names_the_field(void)
{
	static const struct {
		const char *field;
		spoil_fn spoil;
	} rows[] = {
		{ "cell:", spoil_cell },
		{ "name:", spoil_name },
		{ "id:", spoil_id },
		{ "id:", spoil_long_id },
		{ "kind:", spoil_kind },
		{ "argv:", spoil_argv },
		{ "cwd:", spoil_cwd },
		{ "rootfs_token:", spoil_rootfs },
		{ "rootfs_token:", spoil_process },
		{ "rootfs_token:", spoil_visitor },
		{ "root_disk:", spoil_disk },
		{ "root_disk:", spoil_disk_of_process },
		{ "files:", spoil_files },
		{ "late_fds:", spoil_late },
		{ "mounts:", spoil_share },
		{ "keep_log:", spoil_kept_log },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		Nacre__Instance__V1__StartRequest request;
		struct error err = ERROR_INIT;
		struct container_spec spec;
		struct cell_spec cell;

		start_request(&request);
		rows[i].spoil(&request);
		CHECK_INT(convert_start(&cell, &spec, &request, &arena, &err), -EINVAL);
		CHECK_INT(err.kind, ERROR_INVALID);
		CHECK(strncmp(err.text, rows[i].field, strlen(rows[i].field)) == 0);
	}
}

static void status_survives(void)
{
	struct container_view view = {
		.id = "0123456789abcdef",
		.cell = "web",
		.name = "main",
		.status = { .state = CONTAINER_FAILED,
			    .pid = 1LL << 40,
			    .exit_code = -1,
			    .signal = 9,
			    .started_at = UINT64_MAX,
			    .finished_at = 3,
			    .cell_group = 7,
			    .group = 1,
			    .reason = "it was\nso" },
	};
	struct container_view back;
	Nacre__Instance__V1__ContainerStatus status;

	convert_status(&status, &view);
	CHECK_INT(convert_view(&back, &status), 0);
	CHECK_STR(back.id, view.id);
	CHECK_STR(back.cell, view.cell);
	CHECK_STR(back.name, view.name);
	CHECK_STR(back.status.reason, view.status.reason);
	CHECK_INT(back.status.state, CONTAINER_FAILED);
	CHECK(back.status.pid == 1LL << 40 && back.status.exit_code == -1);
	CHECK(back.status.signal == 9 && back.status.finished_at == 3);
	CHECK(back.status.started_at == UINT64_MAX);
	CHECK(back.status.cell_group == 7 && back.status.group == 1);

	status.state = CONTAINER_STATE_COUNT;
	CHECK_INT(convert_view(&back, &status), -EPROTO);
	CHECK_INT(convert_view(&back, NULL), -EPROTO);
}

static void signals_are_checked(void)
{
	static const struct {
		uint32_t number;
		bool all;
		int r;
	} rows[] = { { 0, false, -EINVAL },  { 1, false, 0 },       { 64, false, 0 },
		     { 65, false, -EINVAL }, { 15, true, -EINVAL }, { 9, true, 0 } };

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		Nacre__Instance__V1__SignalRequest request;
		int sig;

		nacre__instance__v1__signal_request__init(&request);
		request.signal = rows[i].number;
		request.all = rows[i].all;
		CHECK_INT(convert_signal(&request, &sig, NULL), rows[i].r);
	}
}

static void exec_is_converted(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	Nacre__Instance__V1__ExecRequest request;
	struct keeper_exec_spec spec;

	nacre__instance__v1__exec_request__init(&request);
	CHECK_INT(convert_exec(&spec, &request, &arena, NULL), -EINVAL);
	request.argv = list;
	request.n_argv = 2;
	CHECK_INT(convert_exec(&spec, &request, &arena, NULL), 0);
	CHECK(spec.timeout == NSEC_NEVER);
	CHECK(spec.argv[1] && !spec.argv[2] && !spec.env[0]);
	request.timeout_ms = 5;
	CHECK_INT(convert_exec(&spec, &request, &arena, NULL), 0);
	CHECK(spec.timeout == 5 * NSEC_PER_MSEC);
	request.timeout_ms = UINT64_MAX;
	CHECK_INT(convert_exec(&spec, &request, &arena, NULL), -EINVAL);
}

UNIT_MAIN({ "a start survives the wire", start_survives },
	  { "a disk, files and shares survive it too", disks_survive },
	  { "a wrong start names its field", wrong_start_names_the_field },
	  { "a status survives the wire", status_survives },
	  { "signals are checked", signals_are_checked },
	  { "an exec is converted", exec_is_converted })
