/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/copy/untar.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/seccomp/strict.h"
#include "wire/format/tar_read.h"

/*
 * The process writes frames into a pipe: a head of a fixed size, and behind it path, target and
 * reason (or the text of an error), map and data, as long as the head says.
 */

#define UNTAR_PIECE ((size_t)64 * 1024)

enum untar_kind { UNTAR_FRAME_END, UNTAR_FRAME_ENTRY, UNTAR_FRAME_DATA, UNTAR_FRAME_ERROR };

struct untar_frame {
	uint32_t kind;
	uint32_t type; /* enum tree_type, or enum error_kind */
	uint32_t mode, uid, gid;
	uint32_t n_path, n_target, n_reason; /* bytes */
	uint32_t sparse, n_map;
	uint32_t n_data, rest;
	uint64_t mtime, size;
};

struct untar {
	pid_t pid; /* 0: it was waited for */
	int fd;
	char path[TREE_PATH_MAX], target[TREE_PATH_MAX], reason[ERROR_TEXT_MAX];
	struct tree_extent map[TREE_EXTENTS_MAX];
	uint8_t data[UNTAR_PIECE];
};

/* ---- the process ---- */

static struct tar_read untar_reader;
static uint8_t untar_piece[UNTAR_PIECE];

static int untar_put(const struct untar_frame *f, const struct tree_entry *e, const void *data)
{
	int r = fd_write_full(STDOUT_FILENO, f, sizeof(*f));

	if (r == 0 && f->n_path > 0)
		r = fd_write_full(STDOUT_FILENO, e->path, f->n_path);
	if (r == 0 && f->n_target > 0)
		r = fd_write_full(STDOUT_FILENO, e->target, f->n_target);
	if (r == 0 && f->n_reason > 0)
		r = fd_write_full(STDOUT_FILENO, e->reason, f->n_reason);
	if (r == 0 && f->n_map > 0)
		r = fd_write_full(STDOUT_FILENO, e->map, f->n_map * sizeof(*e->map));
	return r == 0 && f->n_data > 0 ? fd_write_full(STDOUT_FILENO, data, f->n_data) : r;
}

static int untar_on_entry(void *userdata, const struct tree_entry *e, struct error *err)
{
	const struct untar_frame f = {
		.kind = UNTAR_FRAME_ENTRY,
		.type = e->type,
		.mode = e->mode,
		.uid = e->uid,
		.gid = e->gid,
		.n_path = (uint32_t)strlen(e->path),
		.n_target = e->target ? (uint32_t)strlen(e->target) : 0,
		.n_reason = e->reason ? (uint32_t)strlen(e->reason) : 0,
		.sparse = e->map != NULL,
		.n_map = (uint32_t)e->n_map,
		.mtime = e->mtime,
		.size = e->size,
	};

	(void)userdata;
	return untar_put(&f, e, NULL) < 0 ? error_set(err, -EPIPE, "write") : 0;
}

static int untar_on_data(void *userdata, const uint8_t *data, size_t len, struct error *err)
{
	const struct untar_frame f = { .kind = UNTAR_FRAME_DATA, .n_data = (uint32_t)len };

	(void)userdata;
	return untar_put(&f, NULL, data) < 0 ? error_set(err, -EPIPE, "write") : 0;
}

static int untar_run(struct error *err)
{
	static const struct tar_read_ops ops = { .entry = untar_on_entry, .data = untar_on_data };
	int r = strict_enter(err);

	if (r < 0)
		return r;
	tar_read_init(&untar_reader, &ops, NULL);
	for (;;) {
		ssize_t n = read(STDIN_FILENO, untar_piece, sizeof(untar_piece));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_set(err, -errno, "read standard input");
		if (n == 0)
			return tar_read_finish(&untar_reader, err);
		r = tar_read_feed(&untar_reader, untar_piece, (size_t)n, err);
		if (r < 0)
			return r;
	}
}

int untar_main(void)
{
	struct untar_frame f = { .kind = UNTAR_FRAME_END };
	struct error err = ERROR_INIT;
	struct tree_entry text = { .path = err.text };

	if (untar_run(&err) < 0) {
		f.kind = UNTAR_FRAME_ERROR;
		f.type = err.kind;
		f.n_path = (uint32_t)strlen(err.text);
	}
	strict_exit(untar_put(&f, &text, NULL) < 0);
}

/* ---- whoever has started it ---- */

static int untar_spawn(struct untar *u, int to_fd)
{
	char *argv[] = { (char *)(uintptr_t) "nacre", (char *)(uintptr_t) "untar", NULL };
	char *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	int r = posix_spawn_file_actions_init(&actions);

	if (r != 0)
		return -r;
	r = posix_spawn_file_actions_adddup2(&actions, to_fd, STDOUT_FILENO);
	if (r == 0)
		r = posix_spawn(&u->pid, "/proc/self/exe", &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	return -r;
}

int untar_new(struct untar **ret, struct error *err)
{
	_cleanup_(untar_freep) struct untar *u = calloc(1, sizeof(*u));
	_cleanup_fd_ int to_fd = -1;
	int pair[2], r;

	if (!u)
		return error_set(err, -ENOMEM, "read a tar archive");
	u->fd = -1;
	if (pipe2(pair, O_CLOEXEC) < 0)
		return error_set(err, -errno, "make a pipe");
	u->fd = pair[0];
	to_fd = pair[1];
	r = untar_spawn(u, to_fd);
	if (r < 0)
		return error_set(err, r, "start the reader of the tar archive");
	*ret = TAKE_PTR(u);
	return 0;
}

static int untar_reap(struct untar *u)
{
	int status = 0;

	while (u->pid > 0 && waitpid(u->pid, &status, 0) < 0 && errno == EINTR)
		;
	u->pid = 0;
	return status;
}

struct untar *untar_free(struct untar *u)
{
	if (!u)
		return NULL;
	(void)fd_close(u->fd);
	/* A child that was not waited for keeps its number. */
	if (u->pid > 0)
		(void)kill(u->pid, SIGKILL);
	(void)untar_reap(u);
	free(u);
	return NULL;
}

int untar_fd(const struct untar *u)
{
	return u->fd;
}

/* It has said nothing more, and not that it is done. */
static int untar_lost(struct untar *u, struct error *err)
{
	int status = untar_reap(u);

	if (WIFSIGNALED(status))
		return error_refuse(err, ERROR_FAULT,
				    "the reader of the tar archive was killed by signal %d",
				    WTERMSIG(status));
	return error_refuse(err, ERROR_FAULT, "the reader of the tar archive has ended early");
}

static int untar_get(struct untar *u, void *to, size_t len, size_t max)
{
	return len > max ? -EBADMSG : fd_read_full(u->fd, to, len);
}

static int untar_get_text(struct untar *u, char *to, size_t len, size_t size)
{
	int r = untar_get(u, to, len, size - 1);

	if (r < 0)
		return r;
	to[len] = '\0';
	return strlen(to) == len ? 0 : -EBADMSG;
}

static int untar_get_parts(struct untar *u, const struct untar_frame *f)
{
	int r = untar_get_text(u, u->path, f->n_path, sizeof(u->path));

	if (r == 0)
		r = untar_get_text(u, u->target, f->n_target, sizeof(u->target));
	if (r == 0)
		r = untar_get_text(u, u->reason, f->n_reason, sizeof(u->reason));
	if (r == 0 && f->n_map > TREE_EXTENTS_MAX)
		r = -EBADMSG;
	if (r == 0)
		r = untar_get(u, u->map, f->n_map * sizeof(u->map[0]), sizeof(u->map));
	return r == 0 ? untar_get(u, u->data, f->n_data, sizeof(u->data)) : r;
}

static int untar_take_entry(const struct untar *u, const struct untar_frame *f,
			    struct tree_entry *ret)
{
	if (f->type > TREE_OTHER || f->mode > 07777)
		return -EBADMSG;
	*ret = (struct tree_entry){
		.type = (enum tree_type)f->type,
		.path = u->path,
		.mode = f->mode,
		.uid = f->uid,
		.gid = f->gid,
		.mtime = f->mtime,
		.size = f->size,
		.target = *u->target ? u->target : NULL,
		.map = f->sparse ? u->map : NULL,
		.n_map = f->n_map,
		.reason = u->reason,
	};
	return UNTAR_ENTRY;
}

int untar_next(struct untar *u, struct tree_entry *ret_entry, const uint8_t **ret_data,
	       size_t *ret_len, struct error *err)
{
	struct untar_frame f;
	int r = fd_read_full(u->fd, &f, sizeof(f));

	if (r == 0)
		r = untar_get_parts(u, &f);
	if (r == -EPIPE)
		return untar_lost(u, err);
	if (r == 0 && f.kind == UNTAR_FRAME_ENTRY)
		r = untar_take_entry(u, &f, ret_entry);
	else if (r == 0 && f.kind > UNTAR_FRAME_ERROR)
		r = -EBADMSG;
	if (r < 0)
		return error_set(err, r, "listen to the reader of the tar archive");
	if (f.kind == UNTAR_FRAME_ERROR)
		return error_refuse(
			err, f.type < ERROR_KIND_COUNT ? (enum error_kind)f.type : ERROR_FAULT,
			"%s", u->path);
	*ret_data = u->data;
	*ret_len = f.n_data;
	return f.kind == UNTAR_FRAME_DATA ? UNTAR_DATA : r;
}
