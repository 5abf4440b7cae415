/* SPDX-License-Identifier: Apache-2.0 */
#include "init/reexec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/process/handover.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/keeper_env.h"
#include "instance/spawn.h"
#include "keeper/server/upgrade.h"

#define WORD_STATE "--resume"
#define WORD_MOUNTS "--host-mounts"

int reexec_parse(struct reexec *r, const char *word, const char *value, struct error *err)
{
	bool is_state = str_eq(word, WORD_STATE);
	uint64_t fd;

	if (!is_state && !str_eq(word, WORD_MOUNTS))
		return 0;
	if (str_empty(value) || parse_u64(value, HANDOVER_FD_MIN, INT32_MAX, &fd) < 0 ||
	    fd_set_cloexec((int)fd, true) < 0)
		return error_refuse(err, ERROR_INVALID, "keeper: %s: \"%.20s\" is not open", word,
				    value ?: "");
	*(is_state ? &r->state_fd : &r->host_mount_ns_fd) = (int)fd;
	return 1;
}

/* ---- executing ---- */

struct kept {
	const struct handover_writer *w;
	int state_fd, host_mount_ns_fd;
};

static int kept_set(const struct kept *k, bool stay)
{
	int r = 0;

	for (int fd = INSTANCE_FD_RPC; r == 0 && fd < INSTANCE_FD_END_OF_LIST; fd++)
		r = fd_set_cloexec(fd, !stay);
	for (size_t i = 0; r == 0 && i < k->w->n_fds; i++)
		r = fd_set_cloexec(k->w->fds[i], !stay);
	if (r == 0)
		r = fd_set_cloexec(k->state_fd, !stay);
	if (r == 0 && k->host_mount_ns_fd >= 0)
		r = fd_set_cloexec(k->host_mount_ns_fd, !stay);
	return r;
}

static int reexec_call(const char *path, bool node, const struct kept *kept)
{
	/* Longer than any title, which stands in their place later. */
	const char *argv[] = { "nacre", "keeper", "--title", path, NULL,
			       NULL,    NULL,     NULL,      NULL, NULL };
	char state[16], mounts[16];
	size_t n = 4;
	int r;

	(void)str_printf(state, sizeof(state), "%d", kept->state_fd);
	(void)str_printf(mounts, sizeof(mounts), "%d", kept->host_mount_ns_fd);
	argv[n++] = WORD_STATE;
	argv[n++] = state;
	if (kept->host_mount_ns_fd >= 0) {
		argv[n++] = WORD_MOUNTS;
		argv[n++] = mounts;
	}
	if (node)
		argv[n] = "--node";
	r = FAILPOINT("upgrade.exec");
	if (r < 0)
		return r;
	(void)execveat(INSTANCE_FD_EXE, "", (char *const *)(uintptr_t)argv, keeper_env(),
		       AT_EMPTY_PATH);
	return -errno;
}

int reexec_execute(const char *path, bool node, int host_mount_ns_fd, int exe_fd, int state_fd,
		   const struct handover_writer *w, struct error *err)
{
	const struct kept kept = { .w = w,
				   .state_fd = state_fd,
				   .host_mount_ns_fd = host_mount_ns_fd };
	_cleanup_fd_ int old = fd_copy(INSTANCE_FD_EXE);
	int r;

	if (old < 0)
		return error_set(err, old, "keep the program of this keeper");
	if (dup3(exe_fd, INSTANCE_FD_EXE, O_CLOEXEC) < 0)
		return error_set(err, -errno, "put the new program into its place");
	r = kept_set(&kept, true);
	if (r == 0)
		r = reexec_call(path, node, &kept);
	(void)error_set(err, r, "execute the new program");

	/* As it was. These are our own descriptors, so nothing can fail here. */
	(void)kept_set(&kept, false);
	(void)dup3(old, INSTANCE_FD_EXE, O_CLOEXEC);
	return r;
}

/* ---- the trial ---- */

int reexec_try(void)
{
	struct error err = ERROR_INIT;

	if (upgrade_try(UPGRADE_FD_STATE, &err) == 0)
		return EXIT_SUCCESS;
	(void)fd_write_full(UPGRADE_FD_WORDS, error_text(&err), strlen(error_text(&err)));
	return EXIT_FAILURE;
}
