/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_FAKE_KEEPER_TEST_H
#define NACRE_KEEPER_FAKE_KEEPER_TEST_H

/* The functions of cell/layer/keeper.h for one test program: they do what the test says, and keep
 * what they were asked for. */

#include <fcntl.h>
#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "cell/layer/keeper.h"
#include "unit.h"

struct keeper {
	struct keeper_config config;
	bool held;
	const char *busy;
};

struct keeper_exec {
	const struct keeper_exec_ops *ops;
	void *userdata;
	bool paused, cancelled;
	/* The bytes that were typed; `done` of the write in hand. */
	char typed[64];
	bool closed;
	void (*done)(void *userdata, const struct error *err);
	struct terminal_size size;
	int sig;
};

struct keeper_attach {
	const struct keeper_attach_ops *ops;
	void *userdata;
	struct keeper_attach_spec spec;
	bool left;
};

static struct keeper k;
static struct keeper_exec x;
static struct keeper_attach seat;
static bool exists;
static struct container_view view = { .id = "0000000000000001",
				      .cell = "cell",
				      .name = "main",
				      .status = { .state = CONTAINER_RUNNING, .pid = 5 } };
static struct {
	struct container_fds fds;
	struct log_policy log;
	int sig;
	char argv1[16];
	keeper_started_fn done;
	void *userdata;
	bool late;
	unsigned n_supplied, n_withdrawn;
	struct error withdrawn;
} asked;

int keeper_new(struct keeper **ret, const struct keeper_config *config)
{
	k.config = *config;
	*ret = &k;
	return 0;
}

struct keeper *keeper_free(struct keeper *keeper)
{
	return NULL;
}

int keeper_start(struct keeper *keeper, const struct cell_spec *cell,
		 const struct container_spec *spec, struct container_fds *fds,
		 keeper_started_fn done, void *userdata, struct error *err)
{
	asked.fds = container_fds_take(fds);
	asked.log = spec->log;
	asked.late = spec->late;
	asked.done = done;
	asked.userdata = userdata;
	(void)str_copy(asked.argv1, sizeof(asked.argv1), spec->argv[1] ? spec->argv[1] : "");
	return 0;
}

void keeper_supply(struct keeper *keeper, const char *id, struct container_fds *fds)
{
	asked.fds = container_fds_take(fds);
	asked.n_supplied++;
}

void keeper_withdraw(struct keeper *keeper, const char *id, const struct error *err)
{
	asked.withdrawn = *err;
	asked.n_withdrawn++;
}

int keeper_signal(struct keeper *keeper, const char *id, int sig, bool all, struct error *err)
{
	if (!str_eq(id, view.id))
		return error_refuse(err, ERROR_NOT_FOUND, "no container %s", id);
	asked.sig = sig;
	return 0;
}

int keeper_change_log(struct keeper *keeper, const char *id, int fd, void (*changed)(void *data),
		      void *data, struct error *err)
{
	(void)fd_close(fd);
	if (!str_eq(id, view.id))
		return error_refuse(err, ERROR_NOT_FOUND, "no container %s", id);
	changed(data);
	return 0;
}

/* "/tmp", whatever that is to this process. */
int keeper_open_root(struct keeper *keeper, const char *id, const char **ret_name,
		     struct error *err)
{
	if (!str_eq(id, view.id))
		return error_refuse(err, ERROR_NOT_FOUND, "no container %s", id);
	*ret_name = view.name;
	return open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);
}

int keeper_remove(struct keeper *keeper, const char *id, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "container %s runs", id);
}

void keeper_remove_cell(struct keeper *keeper, const char *cell, void (*done)(void *userdata),
			void *userdata)
{
	done(userdata);
}

void keeper_each(struct keeper *keeper,
		 void (*fn)(void *userdata, const struct container_view *view), void *userdata)
{
	if (exists)
		fn(userdata, &view);
}

void keeper_shutdown(struct keeper *keeper, void (*done)(void *userdata), void *userdata)
{
	done(userdata);
}

void keeper_reap_orphans(struct keeper *keeper)
{
}

void keeper_hold(struct keeper *keeper, bool held)
{
	k.held = held;
}

const char *keeper_busy(struct keeper *keeper)
{
	return k.busy;
}

int keeper_write_state(struct keeper *keeper, struct handover_writer *w)
{
	return 0;
}

int keeper_read_state(struct keeper *keeper, struct handover_reader *r, struct error *err)
{
	return 0;
}

int keeper_exec(struct keeper *keeper, const struct keeper_exec_spec *spec,
		const struct keeper_exec_ops *ops, void *userdata, struct keeper_exec **ret,
		struct error *err)
{
	x = (struct keeper_exec){ .ops = ops, .userdata = userdata };
	*ret = &x;
	return 0;
}

void keeper_exec_pause(struct keeper_exec *exec, bool paused)
{
	exec->paused = paused;
}

void keeper_exec_cancel(struct keeper_exec *exec)
{
	exec->cancelled = true;
}

int keeper_exec_write(struct keeper_exec *exec, const void *data, size_t len, bool close,
		      void (*done)(void *userdata, const struct error *err), struct error *err)
{
	size_t at = strlen(exec->typed);

	CHECK(!exec->done);
	(void)str_printf(exec->typed + at, sizeof(exec->typed) - at, "%.*s", (int)len,
			 len ? (const char *)data : "");
	exec->closed = close;
	exec->done = done;
	return 0;
}

int keeper_exec_resize(struct keeper_exec *exec, const struct terminal_size *size,
		       struct error *err)
{
	exec->size = *size;
	return 0;
}

int keeper_exec_signal(struct keeper_exec *exec, int sig, struct error *err)
{
	exec->sig = sig;
	return 0;
}

int keeper_attach(struct keeper *keeper, const struct keeper_attach_spec *spec,
		  const struct keeper_attach_ops *ops, void *userdata, struct keeper_attach **ret,
		  struct error *err)
{
	seat = (struct keeper_attach){ .ops = ops, .userdata = userdata, .spec = *spec };
	*ret = &seat;
	return 0;
}

void keeper_attach_pause(struct keeper_attach *a, bool paused)
{
}

int keeper_attach_write(struct keeper_attach *a, const void *data, size_t len, bool close,
			void (*done)(void *userdata, const struct error *err), struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "closed");
}

int keeper_attach_resize(struct keeper_attach *a, const struct terminal_size *size,
			 struct error *err)
{
	return error_refuse(err, ERROR_INVALID, "input.terminal: none");
}

int keeper_attach_signal(struct keeper_attach *a, int sig, struct error *err)
{
	asked.sig = sig;
	return 0;
}

void keeper_attach_leave(struct keeper_attach *a)
{
	a->left = true;
}

int keeper_log_open(struct keeper *keeper, const char *id, uint64_t from,
		    const struct keeper_log_ops *ops, void *userdata, struct keeper_log **ret,
		    struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "no log is kept");
}

int keeper_write_stdin(struct keeper *keeper, const char *id, const void *data, size_t len,
		       bool close, void (*done)(void *userdata, const struct error *err),
		       void *userdata, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION, "no stdin");
}

#endif
