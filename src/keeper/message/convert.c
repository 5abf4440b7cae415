/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/convert.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/signal_name.h"
#include "base/text/str.h"

#define EXEC_TIMEOUT_MAX_MS (UINT64_MAX / NSEC_PER_MSEC - 1)

char *convert_str(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

void convert_status(Nacre__Instance__V1__ContainerStatus *to, const struct container_view *view)
{
	nacre__instance__v1__container_status__init(to);
	to->id = convert_str(view->id);
	to->cell = convert_str(view->cell);
	to->name = convert_str(view->name);
	to->state = (uint32_t)view->status.state;
	to->pid = view->status.pid;
	to->exit_code = view->status.exit_code;
	to->signal = view->status.signal;
	to->started_at = view->status.started_at;
	to->finished_at = view->status.finished_at;
	to->reason = convert_str(view->status.reason);
	to->log_lost = view->status.log_lost;
	to->cell_group = view->status.cell_group;
	to->group = view->status.group;
}

void convert_user(Nacre__Instance__V1__ContainerUser *to, const struct process_identity *from)
{
	nacre__instance__v1__container_user__init(to);
	to->uid = from->uid;
	to->gid = from->gid;
	to->groups = (uint32_t *)(uintptr_t)from->groups;
	to->n_groups = from->n_groups;
}

int convert_identity(struct process_identity *to, const Nacre__Instance__V1__ContainerUser *from)
{
	if (from->n_groups > PROCESS_GROUPS_MAX)
		return -EPROTO;
	*to = (struct process_identity){ .uid = from->uid,
					 .gid = from->gid,
					 .n_groups = from->n_groups };
	for (size_t i = 0; i < from->n_groups; i++)
		to->groups[i] = from->groups[i];
	return 0;
}

int convert_view(struct container_view *to, const Nacre__Instance__V1__ContainerStatus *from)
{
	if (!from || from->state >= CONTAINER_STATE_COUNT)
		return -EPROTO;
	*to = (struct container_view){
		.id = from->id,
		.cell = from->cell,
		.name = from->name,
		.status = {
			.state = (enum container_state)from->state,
			.pid = from->pid,
			.exit_code = from->exit_code,
			.signal = from->signal,
			.started_at = from->started_at,
			.finished_at = from->finished_at,
			.log_lost = from->log_lost,
			.cell_group = from->cell_group,
			.group = from->group,
		},
	};
	(void)str_copy(to->status.reason, sizeof(to->status.reason), from->reason);
	return 0;
}

void convert_start_request(Nacre__Instance__V1__StartRequest *to, const struct cell_spec *cell,
			   const struct container_spec *spec)
{
	nacre__instance__v1__start_request__init(to);
	to->cell = convert_str(cell->name);
	to->shares_instance = cell->shares_instance;
	to->host_network = cell->host_network;
	to->ids_uid = cell->ids.uid;
	to->ids_gid = cell->ids.gid;
	to->ids_count = cell->ids.count;
	to->hostname = convert_str(cell->hostname);
	to->id = convert_str(spec->id);
	to->name = convert_str(spec->name);
	to->kind = (uint32_t)spec->kind;
	to->n_argv = strv_len(spec->argv);
	to->argv = (char **)(uintptr_t)spec->argv;
	to->n_env = strv_len(spec->env);
	to->env = (char **)(uintptr_t)spec->env;
	to->cwd = convert_str(spec->cwd);
	to->user = convert_str(spec->user);
	to->stdin_open = spec->stdin_open;
	to->rootfs_token = spec->rootfs_token;
	to->log_token = spec->log_token;
	to->log_dir_token = spec->log_dir_token;
	to->log_max_bytes = spec->log.max_bytes;
	to->log_max_files = spec->log.max_files;
	to->log_when_full = spec->log.drop;
	if (!spec->log.drop && spec->log.block_for != NSEC_NEVER)
		to->log_block_ms = MAX(spec->log.block_for / NSEC_PER_MSEC, (nsec_t)1);
	to->tty = spec->tty;
	to->width = spec->terminal.width;
	to->height = spec->terminal.height;
	to->hold_output = spec->hold_output;
	to->read_only_root = spec->read_only_root;
	to->late_fds = spec->late;
	to->image = convert_str(spec->image);
	to->n_limits = strv_len(spec->limits);
	to->limits = (char **)(uintptr_t)spec->limits;
	to->n_cell_limits = strv_len(cell->limits);
	to->cell_limits = (char **)(uintptr_t)cell->limits;
	to->keep_log = spec->keep_log;
	to->new_proc = spec->new_proc;
}

static void convert_rlimits_request(Nacre__Instance__V1__Security *to,
				    struct convert_security_lists *lists,
				    const struct container_security *from)
{
	to->rlimits = lists->rlimits;
	to->n_rlimits = from->n_rlimits;
	for (size_t i = 0; i < from->n_rlimits; i++) {
		Nacre__Instance__V1__Rlimit *m = &lists->limits[i];

		nacre__instance__v1__rlimit__init(m);
		m->resource = (uint32_t)from->rlimits[i].resource;
		m->soft = from->rlimits[i].soft;
		m->hard = from->rlimits[i].hard;
		lists->rlimits[i] = m;
	}
}

void convert_security_request(Nacre__Instance__V1__Security *to,
			      struct convert_security_lists *lists,
			      const struct container_spec *spec)
{
	const struct container_security *from = &spec->security;
	const struct container_masks *masks = &spec->masks;

	nacre__instance__v1__security__init(to);
	to->filter.data = (uint8_t *)(uintptr_t)spec->filter.insns;
	to->filter.len = spec->filter.len;
	to->filter_flags = spec->filter.flags;
	to->has_caps = from->has_caps;
	to->caps = from->caps;
	to->may_gain = from->may_gain;
	to->unfiltered = from->unfiltered;
	to->oom_score_adj = from->oom_score_adj;
	to->groups_exact = from->groups_exact;
	to->own_masks = from->own_masks;
	to->n_hidden_paths = strv_len(masks->hidden);
	to->hidden_paths = (char **)(uintptr_t)masks->hidden;
	to->n_read_only_paths = strv_len(masks->read_only);
	to->read_only_paths = (char **)(uintptr_t)masks->read_only;
	to->writable_sys = from->writable_sys;
	to->writable_groups = from->writable_groups;
	to->all_devices = from->all_devices;
	to->pids = from->pids;
	to->pids_of = (char *)(uintptr_t)from->pids_of;
	convert_rlimits_request(to, lists, from);
	to->groups = lists->groups;
	to->n_groups = from->n_groups;
	for (size_t i = 0; i < from->n_groups; i++)
		lists->groups[i] = from->groups[i];
}

void convert_disk(Nacre__Instance__V1__Disk *to, const struct container_disk *from)
{
	nacre__instance__v1__disk__init(to);
	to->serial = convert_str(from->serial);
	to->fs = convert_str(from->fs);
	to->upper_bytes = from->upper_bytes;
}

void convert_file(Nacre__Instance__V1__File *to, const struct container_file *from)
{
	nacre__instance__v1__file__init(to);
	to->path = convert_str(from->path);
	to->mode = from->mode;
	to->data.data = (uint8_t *)(uintptr_t)from->data;
	to->data.len = from->len;
}

void convert_mount(Nacre__Instance__V1__Mount *to, const struct container_mount *from)
{
	nacre__instance__v1__mount__init(to);
	to->target = convert_str(from->target);
	to->size = from->size;
	to->mode = from->mode;
	to->no_exec = from->no_exec;
	to->share = convert_str(from->share);
	to->read_only = from->read_only;
	to->propagation = from->propagation;
	to->access = from->access;
	to->uid = from->uid;
	to->gid = from->gid;
	to->scratch = from->scratch;
	to->one_file = from->one_file;
}

static int convert_list(char *const **to, char **from, size_t n, struct arena *arena,
			struct error *err)
{
	char **list = arena_zalloc(arena, n + 1, sizeof(*list));

	if (!list)
		return error_set(err, -ENOMEM, "take the request up");
	for (size_t i = 0; i < n; i++)
		list[i] = from[i];
	*to = list;
	return 0;
}

static bool id_is_valid(const char *id)
{
	return strlen(id) == ID_LEN && strspn(id, "0123456789abcdef") == ID_LEN;
}

static int convert_start_check_log(const Nacre__Instance__V1__StartRequest *from, struct error *err)
{
	if (from->log_max_bytes && from->log_max_bytes < LOG_BYTES_MIN)
		return error_field(err, ERROR_INVALID, "log_max_bytes", "less than %llu",
				   (unsigned long long)LOG_BYTES_MIN);
	if (from->log_max_bytes && (from->log_max_files < 1 || from->log_max_files > LOG_FILES_MAX))
		return error_field(err, ERROR_INVALID, "log_max_files", "not 1 to %d",
				   LOG_FILES_MAX);
	if (from->log_when_full > 1)
		return error_field(err, ERROR_INVALID, "log_when_full", "%u is none",
				   from->log_when_full);
	if (from->log_block_ms > LOG_BLOCK_MAX / NSEC_PER_MSEC)
		return error_field(err, ERROR_INVALID, "log_block_ms", "too large");
	return 0;
}

static int convert_sides(struct terminal_size *to, uint32_t width, uint32_t height,
			 struct error *err)
{
	if (width > TERMINAL_SIDE_MAX || height > TERMINAL_SIDE_MAX)
		return error_field(err, ERROR_INVALID, "terminal",
				   "%u by %u is more than %d a side", width, height,
				   TERMINAL_SIDE_MAX);
	*to = (struct terminal_size){ .width = (uint16_t)width, .height = (uint16_t)height };
	return 0;
}

int convert_size(struct terminal_size *to, const Nacre__Instance__V1__TerminalSize *from,
		 struct error *err)
{
	return convert_sides(to, from ? from->width : 0, from ? from->height : 0, err);
}

static bool convert_shares(const Nacre__Instance__V1__StartRequest *from)
{
	for (size_t i = 0; i < from->n_mounts; i++)
		if (!str_empty(from->mounts[i]->share))
			return true;
	return false;
}

/* What goes with a disk or a share, and what does not; the values are cell/spec.h's to judge. */
static int convert_start_check_disk(const Nacre__Instance__V1__StartRequest *from,
				    struct error *err)
{
	if (from->root_disk && from->rootfs_token)
		return error_field(err, ERROR_INVALID, "root_disk", "not with rootfs_token");
	if (from->root_disk && from->kind != CONTAINER_IMAGE)
		return error_field(err, ERROR_INVALID, "root_disk", "a plain process has none");
	if (from->n_files > 0 && !from->root_disk)
		return error_field(err, ERROR_INVALID, "files", "only with root_disk");
	if (from->late_fds && (from->root_disk || convert_shares(from)))
		return error_field(err, ERROR_INVALID, "late_fds",
				   "not with what the keeper makes itself");
	for (size_t i = 0; i < from->n_mounts; i++)
		if (from->mounts[i]->token && !str_empty(from->mounts[i]->share))
			return error_field(err, ERROR_INVALID, "mounts",
					   "a share comes without a token");
	for (size_t i = 0; i < from->n_mounts; i++)
		if ((from->mounts[i]->scratch || from->mounts[i]->one_file) &&
		    str_empty(from->mounts[i]->share))
			return error_field(err, ERROR_INVALID, "mounts",
					   "scratch and one_file are of a share");
	if (from->keep_log && (from->log_token || from->log_dir_token))
		return error_field(err, ERROR_INVALID, "keep_log", "not with a log's token");
	return 0;
}

static int convert_start_check(const Nacre__Instance__V1__StartRequest *from, struct error *err)
{
	int r;

	if (!name_is_label(from->cell))
		return error_field(err, ERROR_INVALID, "cell", "not a name of an object");
	if (!name_is_label(from->name))
		return error_field(err, ERROR_INVALID, "name", "not a name of an object");
	if (!id_is_valid(from->id))
		return error_field(err, ERROR_INVALID, "id", "not %d hexadecimal digits", ID_LEN);
	if (from->kind > CONTAINER_KIND_MAX)
		return error_field(err, ERROR_INVALID, "kind", "%u is none that this keeper knows",
				   from->kind);
	if (!from->n_argv || str_empty(from->argv[0]))
		return error_field(err, ERROR_INVALID, "argv", "empty");
	if (!str_empty(from->cwd) && from->cwd[0] != '/')
		return error_field(err, ERROR_INVALID, "cwd", "not an absolute path");
	if (strlen(from->image) > SPEC_IMAGE_MAX)
		return error_field(err, ERROR_INVALID, "image", "longer than %d bytes",
				   SPEC_IMAGE_MAX);
	if (from->kind == CONTAINER_IMAGE && !from->rootfs_token && !from->root_disk)
		return error_field(err, ERROR_INVALID, "rootfs_token", "an image needs one");
	if (from->kind == CONTAINER_PROCESS && from->rootfs_token)
		return error_field(err, ERROR_INVALID, "rootfs_token", "a plain process has none");
	if (from->kind == CONTAINER_VISITOR && !from->rootfs_token)
		return error_field(err, ERROR_INVALID, "rootfs_token", "a visitor needs one");
	r = convert_start_check_disk(from, err);
	return r < 0 ? r : convert_start_check_log(from, err);
}

static int convert_mounts(struct container_spec *to, const Nacre__Instance__V1__StartRequest *from,
			  struct arena *arena, struct error *err)
{
	struct container_mount *mounts = arena_zalloc(arena, from->n_mounts + 1, sizeof(*mounts));

	if (!mounts)
		return error_set(err, -ENOMEM, "take the request up");
	for (size_t i = 0; i < from->n_mounts; i++)
		mounts[i] = (struct container_mount){
			.target = from->mounts[i]->target,
			.token = from->mounts[i]->token,
			.size = from->mounts[i]->size,
			.mode = from->mounts[i]->mode,
			.no_exec = from->mounts[i]->no_exec,
			.share = from->mounts[i]->share,
			.read_only = from->mounts[i]->read_only,
			.propagation = (enum mount_propagation)from->mounts[i]->propagation,
			.access = from->mounts[i]->access,
			.uid = from->mounts[i]->uid,
			.gid = from->mounts[i]->gid,
			.scratch = from->mounts[i]->scratch,
			.one_file = from->mounts[i]->one_file,
		};
	to->mounts = mounts;
	to->n_mounts = from->n_mounts;
	return 0;
}

static int convert_files(struct container_spec *to, const Nacre__Instance__V1__StartRequest *from,
			 struct arena *arena, struct error *err)
{
	struct container_file *files = arena_zalloc(arena, from->n_files + 1, sizeof(*files));

	if (!files)
		return error_set(err, -ENOMEM, "take the request up");
	for (size_t i = 0; i < from->n_files; i++)
		files[i] = (struct container_file){
			.path = from->files[i]->path,
			.mode = from->files[i]->mode,
			.data = from->files[i]->data.data,
			.len = from->files[i]->data.len,
		};
	to->files = files;
	to->n_files = from->n_files;
	return 0;
}

/* What a keeper makes itself whom no descriptor can be passed to. */
static int convert_disks(struct container_spec *to, const Nacre__Instance__V1__StartRequest *from,
			 struct arena *arena, struct error *err)
{
	struct container_disk *disk;

	if (!from->root_disk)
		return 0;
	disk = arena_zalloc(arena, 1, sizeof(*disk));
	if (!disk)
		return error_set(err, -ENOMEM, "take the request up");
	*disk = (struct container_disk){
		.serial = from->root_disk->serial,
		.fs = from->root_disk->fs,
		.upper_bytes = from->root_disk->upper_bytes,
	};
	to->root_disk = disk;
	return convert_files(to, from, arena, err);
}

static int convert_masks(struct container_masks *to, const Nacre__Instance__V1__Security *from,
			 struct arena *arena, struct error *err)
{
	int r = 0;

	if (from && from->n_hidden_paths)
		r = convert_list(&to->hidden, from->hidden_paths, from->n_hidden_paths, arena, err);
	if (r == 0 && from && from->n_read_only_paths)
		r = convert_list(&to->read_only, from->read_only_paths, from->n_read_only_paths,
				 arena, err);
	return r;
}

static int convert_rlimits(struct container_security *to, const Nacre__Instance__V1__Security *from,
			   struct error *err)
{
	if (from->n_rlimits > ISOLATE_RLIMITS_MAX)
		return error_field(err, ERROR_INVALID, "security.rlimits",
				   "%zu are more than the limit of %d", from->n_rlimits,
				   ISOLATE_RLIMITS_MAX);
	for (size_t i = 0; i < from->n_rlimits; i++) {
		const Nacre__Instance__V1__Rlimit *m = from->rlimits[i];

		if (m->resource > INT32_MAX)
			return error_field(err, ERROR_INVALID, "security.rlimits", "%u is unknown",
					   m->resource);
		to->rlimits[i] = (struct isolate_rlimit){ .resource = (int)m->resource,
							  .soft = m->soft,
							  .hard = m->hard };
	}
	to->n_rlimits = from->n_rlimits;
	return 0;
}

static int convert_security(struct container_security *to,
			    const Nacre__Instance__V1__Security *from, struct error *err)
{
	if (!from)
		return 0;
	if (from->n_groups > CONTAINER_GROUPS_MAX)
		return error_field(err, ERROR_INVALID, "security.groups",
				   "%zu are more than the limit of %d", from->n_groups,
				   CONTAINER_GROUPS_MAX);
	to->has_caps = from->has_caps;
	to->caps = from->caps;
	to->may_gain = from->may_gain;
	to->unfiltered = from->unfiltered;
	to->oom_score_adj = from->oom_score_adj;
	to->groups_exact = from->groups_exact;
	to->own_masks = from->own_masks;
	to->writable_sys = from->writable_sys;
	to->writable_groups = from->writable_groups;
	to->all_devices = from->all_devices;
	to->pids = (enum container_pids)from->pids;
	if (str_copy(to->pids_of, sizeof(to->pids_of), from->pids_of) < 0)
		return error_field(err, ERROR_INVALID, "security.pids_of", "no id of a container");
	to->n_groups = from->n_groups;
	for (size_t i = 0; i < from->n_groups; i++)
		to->groups[i] = from->groups[i];
	return convert_rlimits(to, from, err);
}

int convert_start(struct cell_spec *cell, struct container_spec *spec,
		  const Nacre__Instance__V1__StartRequest *from, struct arena *arena,
		  struct error *err)
{
	int r;

	r = convert_start_check(from, err);
	if (r < 0)
		return r;
	*cell = (struct cell_spec){
		.name = from->cell,
		.shares_instance = from->shares_instance,
		.host_network = from->host_network,
		.ids = { from->ids_uid, from->ids_gid, from->ids_count },
		.hostname = from->hostname,
		.given_network = from->network_token != 0,
	};
	*spec = (struct container_spec){
		.name = from->name,
		.kind = (enum container_kind)from->kind,
		.cwd = from->cwd,
		.user = from->user,
		.stdin_open = from->stdin_open,
		.tty = from->tty,
		.hold_output = from->hold_output,
		.read_only_root = from->read_only_root,
		.late = from->late_fds,
		.keep_log = from->keep_log,
		.new_proc = from->new_proc,
		.image = from->image,
		.rootfs_token = from->rootfs_token,
		.log_token = from->log_token,
		.log_dir_token = from->log_dir_token,
		.log = { .max_bytes = from->log_max_bytes,
			 .max_files = from->log_max_files,
			 .drop = from->log_when_full == 1,
			 .block_for = from->log_block_ms ? from->log_block_ms * NSEC_PER_MSEC
							 : NSEC_NEVER },
	};
	(void)str_copy(spec->id, sizeof(spec->id), from->id);
	r = convert_sides(&spec->terminal, from->width, from->height, err);
	if (r == 0)
		r = convert_security(&spec->security, from->security, err);
	if (r == 0)
		r = convert_masks(&spec->masks, from->security, arena, err);
	if (r < 0)
		return r;
	if (from->security && from->security->filter.len > 0) {
		spec->security.own_filter = true;
		spec->filter = (struct container_filter){ from->security->filter.data,
							  from->security->filter.len,
							  from->security->filter_flags };
	}
	r = convert_mounts(spec, from, arena, err);
	if (r == 0)
		r = convert_disks(spec, from, arena, err);
	if (r == 0)
		r = convert_list(&spec->limits, from->limits, from->n_limits, arena, err);
	if (r == 0)
		r = convert_list(&cell->limits, from->cell_limits, from->n_cell_limits, arena, err);
	if (r == 0)
		r = convert_list(&spec->argv, from->argv, from->n_argv, arena, err);
	if (r < 0)
		return r;
	return convert_list(&spec->env, from->env, from->n_env, arena, err);
}

int convert_exec(struct keeper_exec_spec *to, const Nacre__Instance__V1__ExecRequest *from,
		 struct arena *arena, struct error *err)
{
	int r;

	if (!from->n_argv || str_empty(from->argv[0]))
		return error_field(err, ERROR_INVALID, "argv", "empty");
	if (from->timeout_ms > EXEC_TIMEOUT_MAX_MS)
		return error_field(err, ERROR_INVALID, "timeout_ms",
				   "%" PRIu64 " is more than the limit of %" PRIu64,
				   from->timeout_ms, EXEC_TIMEOUT_MAX_MS);
	*to = (struct keeper_exec_spec){
		.id = from->id,
		.cwd = from->cwd,
		.user = from->user,
		.timeout = from->timeout_ms ? from->timeout_ms * NSEC_PER_MSEC : NSEC_NEVER,
		.stdin_open = from->stdin,
		.tty = from->tty,
	};
	r = convert_size(&to->terminal, from->terminal, err);
	if (r < 0)
		return r;
	r = convert_list(&to->argv, from->argv, from->n_argv, arena, err);
	if (r < 0)
		return r;
	return convert_list(&to->env, from->env, from->n_env, arena, err);
}

int convert_attach(struct keeper_attach_spec *to, const Nacre__Instance__V1__AttachRequest *from,
		   struct error *err)
{
	*to = (struct keeper_attach_spec){
		.id = from->id,
		.stdin_open = from->stdin,
		.replay = from->replay,
	};
	return convert_size(&to->terminal, from->terminal, err);
}

int convert_signal(const Nacre__Instance__V1__SignalRequest *from, int *ret, struct error *err)
{
	if (from->signal < 1 || from->signal > SIGNAL_MAX_NUMBER)
		return error_field(err, ERROR_INVALID, "signal", "%u is none", from->signal);
	if (from->all && from->signal != SIGKILL)
		return error_field(err, ERROR_INVALID, "all", "only for signal %d", SIGKILL);
	*ret = (int)from->signal;
	return 0;
}
