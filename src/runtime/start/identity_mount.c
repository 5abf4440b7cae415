/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/identity_mount.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "pod/workload/make.h"

#define IDENTITY_VARIABLE "SPIFFE_ENDPOINT_SOCKET"
#define IDENTITY_SOCKET "workload.sock"

int identity_mount_take(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
			const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.identity", field);
	if (!str_empty(m->source) || m->tmpfs || !str_empty(m->volume) || m->anonymous)
		return error_field(err, ERROR_INVALID, name,
				   "not beside a source, a volume or a tmpfs");
	if (!str_empty(m->propagation))
		return error_field(err, ERROR_INVALID, name, "nothing is mounted there later");
	to->source = "the Workload API";
	to->is_identity = to->read_only = to->no_exec = true;
	return 0;
}

int identity_mount_name(struct arena *a, struct pod_container_spec *to, const char *field,
			struct error *err)
{
	const struct pod_mount_spec *m = NULL;
	char **env, *word, name[ERROR_FIELD_MAX];
	size_t n = 0;

	(void)str_printf(name, sizeof(name), "%s.mounts", field);
	for (size_t i = 0; i < to->n_mounts; i++) {
		if (!to->mounts[i].is_identity)
			continue;
		if (m)
			return error_field(err, ERROR_INVALID, name,
					   "only one of them can have `identity`");
		m = &to->mounts[i];
	}
	for (; m && to->env && to->env[n]; n++)
		if (str_has_prefix(to->env[n], IDENTITY_VARIABLE "="))
			return 0;
	if (!m)
		return 0;
	/* With the room behind them that secrets have (container_take()). */
	env = arena_zalloc(a, n + 2 + to->n_secret_env, sizeof(*env));
	word = arena_printf(a, IDENTITY_VARIABLE "=unix://%s/" IDENTITY_SOCKET, m->mount.target);
	if (!env || !word)
		return error_set(err, -ENOMEM, "%s", field);
	for (size_t i = 0; i < n; i++)
		env[i] = to->env[i];
	env[n] = word;
	to->env = env;
	return 0;
}

int identity_mount_check(int dir_fd, const char *field, struct error *err)
{
	if (dir_fd >= 0)
		return 0;
	return error_field(err, ERROR_PRECONDITION, field,
			   "this kernel cannot say which process has connected to a socket "
			   "(SO_PEERPIDFD): Linux 6.5 or newer can");
}
