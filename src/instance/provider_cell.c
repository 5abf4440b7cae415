/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/provider_cell.h"

#include <signal.h>
#include <sys/wait.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "instance/end.h"
#include "instance/link.h"
#include "instance/pids.h"
#include "instance/place.h"
#include "instance/spare.h"
#include "instance/spawn.h"
#include "isolate/cgroup/cgroup.h"

#define CELL_HELLO_LIMIT (6 * NSEC_PER_SEC)
#define CELL_STOP_GRACE (5 * NSEC_PER_SEC)

/* ---- making ---- */

/* An instance that was made ahead is READY: what is asked of it follows behind hello, and waits for
 * no answer. It is recorded with its keeper. */
static int cell_use_spare(struct instance *i, struct spare_keeper *spare)
{
	int r;

	(void)str_copy(i->id, sizeof(i->id), spare->id);
	i->pidfd = TAKE_FD(spare->pidfd);
	i->report_fd = TAKE_FD(spare->report_fd);
	i->dir_fd = TAKE_FD(spare->dir_fd);
	i->cgroup_fd = TAKE_FD(spare->cgroup_fd);
	i->peer = TAKE_PTR(spare->peer);
	i->pid = spare->pid;
	i->start_time = spare->start_time;
	i->ahead = true;
	i->state = INSTANCE_READY;
	r = str_printf(i->cgroup, sizeof(i->cgroup), "%s/" SPARE_GROUP_PREFIX "%s",
		       i->all->config.cgroup, i->id);
	return MIN(r, 0);
}

static int cell_draw(struct instance *i)
{
	struct spare_keeper spare = SPARE_KEEPER_INIT;

	bool special = i->host_network || i->host_pids || i->host_ipc || i->host_uts || i->joins ||
		       i->cgroup[0] || i->sysctls || isolate_ids_are_set(&i->ids);

	if (instance_is_own(i) && !special && i->owner[0] && spare_take(i->all->spare, &spare))
		return cell_use_spare(i, &spare);
	return id_new(i->id);
}

static void cell_withdraw(struct instance *i)
{
	struct spare_keeper spare = SPARE_KEEPER_INIT;

	if (!i->ahead)
		return;
	(void)str_copy(spare.id, sizeof(spare.id), i->id);
	spare.pidfd = TAKE_FD(i->pidfd);
	spare.report_fd = TAKE_FD(i->report_fd);
	spare.dir_fd = TAKE_FD(i->dir_fd);
	spare.cgroup_fd = TAKE_FD(i->cgroup_fd);
	spare.peer = TAKE_PTR(i->peer);
	spare.pid = i->pid;
	spare.start_time = i->start_time;
	spare_return(i->all->spare, &spare);
}

static int cell_make_keeper(struct instance *i, struct error *err)
{
	_cleanup_(isolate_child_done) struct isolate_child child = ISOLATE_CHILD_INIT;
	struct instance_spawn spec = {
		.title = instance_is_node(i) ? "node" : i->path,
		.exe_fd = i->all->exe_fd,
		.walled = !instance_is_node(i),
		.host_network = i->host_network,
		.host_pids = i->host_pids,
		.host_ipc = i->host_ipc,
		.host_uts = i->host_uts,
		.joins = i->joins,
		.ids = i->ids,
		.sysctls = i->sysctls,
	};
	int r;

	r = FAILPOINT("instance.create");
	if (r < 0)
		return error_set(err, r, "make instance %s", i->path);
	r = place_make_dir(i, err);
	if (r < 0)
		return r;
	r = place_open_cgroup(i, err);
	if (r < 0)
		return r;
	/* An earlier keeper of the node that cannot be used may still live in there. */
	if (instance_is_node(i))
		(void)cgroup_kill(i->cgroup_fd);
	spec.dir_fd = i->dir_fd;
	spec.cgroup_fd = i->cgroup_fd;
	r = instance_spawn(&spec, &child, err);
	instance_drop_joins(i);
	if (r < 0)
		return r;

	i->pid = child.pid;
	i->pidfd = TAKE_FD(child.pidfd);
	i->report_fd = TAKE_FD(child.report_fd);
	(void)process_start_time(-1, i->pid, &i->start_time);
	FAILPOINT_AFTER("instance.create");
	return 0;
}

/* ---- its end ---- */

/* A step before the program that failed; 0 where there is none, or it cannot be told. */
static int cell_read_report(struct instance *i, struct error *err)
{
	struct isolate_child child = {
		.pid = i->pid, .pidfd = -1, .report_fd = i->report_fd, .give_fd = -1
	};
	int exit_code;

	return i->report_fd < 0 ? 0 : isolate_child_report(&child, &exit_code, err);
}

static void cell_explain(struct instance *i, int code, int status, char *ret, size_t size)
{
	char words[INSTANCE_LAST_WORDS_MAX + 1] = "";
	struct error err = ERROR_INIT;

	if (i->dir_fd >= 0)
		instance_last_words(i->dir_fd, words, sizeof(words));
	if (i->broken)
		(void)str_copy(ret, size, error_text(&i->last_error));
	else if (cell_read_report(i, &err) < 0) {
		(void)error_wrap(&err, err.code, "its keeper could not start");
		(void)error_copy(&i->last_error, &err);
		(void)str_copy(ret, size, error_text(&err));
	} else if (code == CLD_KILLED || code == CLD_DUMPED)
		(void)str_printf(ret, size, "its keeper was killed by signal %d%s%s", status,
				 words[0] ? ": " : "", words);
	else if (code == CLD_EXITED && status != 0)
		(void)str_printf(ret, size, "its keeper exited with %d%s%s", status,
				 words[0] ? ": " : "", words);
	else
		(void)str_printf(ret, size, "its keeper ended%s%s",
				 words[0] ? ": " : " without a word (killed?)", words);
}

static void cell_on_child(struct loop_child *child, int code, int status)
{
	struct instance *i = container_of(child, struct instance, child);
	char reason[INSTANCE_REASON_MAX];

	cell_explain(i, code, status, reason, sizeof(reason));
	log_info("a keeper has ended", LOG_STR("instance", i->path), LOG_INT("pid", i->pid),
		 LOG_STR("reason", reason));
	instance_ended(i, reason);
}

static void cell_watch(struct instance *i)
{
	loop_child_init(&i->child, i->all->config.loop, i->pidfd, cell_on_child);
}

static void cell_kill(struct instance *i)
{
	if (i->cgroup_fd >= 0)
		(void)cgroup_kill(i->cgroup_fd);
	if (i->pidfd >= 0)
		(void)pidfd_kill(i->pidfd, SIGKILL);
}

/* ---- the table ---- */

static int cell_plan(struct provider *p, struct error *err)
{
	(void)p;
	(void)err;
	return 0;
}

static int cell_create(struct instance *i, struct error *err)
{
	int r = i->ahead ? 0 : cell_make_keeper(i, err);

	if (r == 0)
		cell_watch(i);
	return r;
}

static int cell_connect(struct instance *i, int *ret_rpc_fd, int *ret_fd_fd, struct error *err)
{
	return instance_connect(i->dir_fd, ret_rpc_fd, ret_fd_fd, err);
}

static int cell_adopt(struct instance *i, pid_t pid, unsigned long long start_time,
		      struct error *err)
{
	char words[INSTANCE_LAST_WORDS_MAX + 1] = "";
	int r;

	r = place_make_dir(i, err);
	if (r == 0)
		r = place_open_cgroup(i, err);
	if (r < 0)
		return r;
	r = instance_find_process(i, pid, start_time);
	if (r < 0)
		return error_set(err, r, "look for process %d", (int)pid);
	if (r > 0) {
		cell_watch(i);
		r = instance_connect_own(i, err);
		/* A process that is dead but not reaped yet does not listen. */
		if (r == 0 || err->kind != ERROR_UNAVAILABLE)
			return r;
	}
	instance_last_words(i->dir_fd, words, sizeof(words));
	return error_refuse(err, ERROR_UNAVAILABLE,
			    "its keeper ended while the daemon was away%s%s", words[0] ? ": " : "",
			    words);
}

struct provider *provider_cell(void)
{
	static const char *const leaves[] = { "keeper", NULL };
	static const char *const sockets[] = { "rpc.sock", "fd.sock", NULL };
	static const struct provider_ops ops = {
		.hello_limit = CELL_HELLO_LIMIT,
		.stop_grace = CELL_STOP_GRACE,
		.leaves = leaves,
		.sockets = sockets,
		.plan = cell_plan,
		.draw = cell_draw,
		.withdraw = cell_withdraw,
		.create = cell_create,
		.connect = cell_connect,
		.adopt = cell_adopt,
		.kill = cell_kill,
	};
	static struct provider provider = { &ops };

	return &provider;
}
