/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/program.h"

#include <errno.h>
#include <signal.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cell/start/disk.h"
#include "cell/start/mounts.h"
#include "isolate/cgroup/limits_words.h"

#define PATH_DEFAULT "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

#define PROGRAM_HOSTNAME_MAX 64 /* of the kernel */

/* The kernel refuses -1 as an id, and our own rule for images stops at the same number. */
#define ID_NUMBER_MAX 2147483647U

static size_t strings_size(char *const *v)
{
	size_t size = 0;

	for (; v && *v; v++)
		size += strlen(*v) + 1 + sizeof(*v);
	return size;
}

static int env_check(char *const *env, struct error *err)
{
	size_t n = 0;

	for (; env && *env; env++) {
		if (**env == '=' || !strchr(*env, '='))
			return error_field(err, ERROR_INVALID, "env", "entry %zu is not NAME=VALUE",
					   n + 1);
		n++;
	}
	if (n > SPEC_ENV_MAX)
		return error_field(err, ERROR_INVALID, "env", "%zu entries are more than %d", n,
				   SPEC_ENV_MAX);
	return 0;
}

int program_check(char *const *argv, char *const *env, const char *cwd, const char *user,
		  struct error *err)
{
	size_t size;
	int r;

	if (!argv || str_empty(argv[0]))
		return error_field(err, ERROR_INVALID, "argv", "no program is given");
	r = env_check(env, err);
	if (r < 0)
		return r;
	size = strings_size(argv) + strings_size(env);
	if (size > SPEC_BYTES_MAX)
		return error_field(err, ERROR_INVALID, "argv",
				   "%zu bytes with env are more than %zu", size, SPEC_BYTES_MAX);
	if (!str_empty(cwd) && cwd[0] != '/')
		return error_field(err, ERROR_INVALID, "cwd", "\"%.64s\" is not absolute", cwd);
	if (cwd && strlen(cwd) > SPEC_PATH_MAX)
		return error_field(err, ERROR_INVALID, "cwd", "longer than %d bytes",
				   SPEC_PATH_MAX);
	if (user && strlen(user) > SPEC_USER_MAX)
		return error_field(err, ERROR_INVALID, "user", "longer than %d bytes",
				   SPEC_USER_MAX);
	return 0;
}

static int masks_check(char *const *paths, const char *field, struct error *err)
{
	if (strv_len(paths) > CONTAINER_MASKS_MAX)
		return error_field(err, ERROR_INVALID, field, "more than %d", CONTAINER_MASKS_MAX);
	for (; paths && *paths; paths++)
		if ((*paths)[0] != '/' || strlen(*paths) > SPEC_PATH_MAX)
			return error_field(err, ERROR_INVALID, field,
					   "\"%.200s\" is not absolute, or longer than %d bytes",
					   *paths, SPEC_PATH_MAX);
	return 0;
}

static int filter_check(const struct container_spec *spec, struct error *err)
{
	const struct container_filter *f = &spec->filter;

	if (spec->security.own_filter != (f->len > 0))
		return error_field(err, ERROR_INVALID, "filter", "it is there, or counts, alone");
	if (f->len > CONTAINER_FILTER_MAX || f->len % sizeof(struct sock_filter) ||
	    f->flags & ~(unsigned)CONTAINER_FILTER_FLAGS)
		return error_field(err, ERROR_INVALID, "filter",
				   "%zu bytes with flags %#x are no filter of a container", f->len,
				   f->flags);
	return 0;
}

static int walls_check(const struct container_security *s, const struct container_masks *masks,
		       struct error *err)
{
	int r = masks_check(masks->hidden, "hidden_paths", err);

	if (r == 0)
		r = masks_check(masks->read_only, "read_only_paths", err);
	if (r < 0)
		return r;
	if ((masks->hidden || masks->read_only) && !s->own_masks)
		return error_field(err, ERROR_INVALID, "own_masks",
				   "paths are named and do not count");
	if ((unsigned)s->pids >= CONTAINER_PIDS_COUNT)
		return error_field(err, ERROR_INVALID, "pids", "%u is unknown", (unsigned)s->pids);
	return 0;
}

int program_check_container(const struct cell_spec *cell, const struct container_spec *spec,
			    struct error *err)
{
	int r;

	if (!cell->name || !name_is_label(cell->name))
		return error_field(err, ERROR_INVALID, "cell", "\"%.64s\" is not a label",
				   cell->name ?: "");
	if (cell->shares_instance && cell->host_network)
		return error_field(err, ERROR_INVALID, "host_network",
				   "the cell shares the network of the instance");
	if (cell->given_network &&
	    (cell->shares_instance || cell->host_network || spec->kind != CONTAINER_IMAGE))
		return error_field(err, ERROR_INVALID, "network_token",
				   "only for a container from an image, in a cell with a network "
				   "of its own");
	if (!str_empty(cell->hostname) &&
	    (!str_is_clean(cell->hostname) || strlen(cell->hostname) > PROGRAM_HOSTNAME_MAX))
		return error_field(err, ERROR_INVALID, "hostname",
				   "\"%.80s\" is no name that a system can have", cell->hostname);
	if (!memchr(spec->id, '\0', sizeof(spec->id)) || !name_is_label(spec->id))
		return error_field(err, ERROR_INVALID, "id", "\"%.16s\" is not an identifier",
				   spec->id);
	if (!spec->name || !name_is_label(spec->name))
		return error_field(err, ERROR_INVALID, "name", "\"%.64s\" is not a label",
				   spec->name ?: "");
	if ((unsigned)spec->kind > CONTAINER_KIND_MAX)
		return error_field(err, ERROR_INVALID, "kind", "%d is unknown", (int)spec->kind);
	if (spec->new_proc && spec->kind != CONTAINER_VISITOR)
		return error_field(err, ERROR_INVALID, "new_proc", "only for a visitor");
	if (spec->late && spec->kind == CONTAINER_VISITOR)
		return error_field(err, ERROR_INVALID, "late_fds", "not for a visitor");
	if (spec->tty && spec->kind != CONTAINER_IMAGE)
		return error_field(err, ERROR_INVALID, "tty", "only for a container of an image");
	if ((spec->n_mounts > 0 || spec->read_only_root) && spec->kind != CONTAINER_IMAGE)
		return error_field(err, ERROR_INVALID, "mounts",
				   "only for a container of an image");
	if (spec->security.oom_score_adj < -1000 || spec->security.oom_score_adj > 1000)
		return error_field(err, ERROR_INVALID, "security",
				   "the OOM score is not from -1000 to 1000");
	if (spec->security.n_groups > CONTAINER_GROUPS_MAX)
		return error_field(err, ERROR_INVALID, "security", "more than %d groups",
				   CONTAINER_GROUPS_MAX);
	if (spec->security.n_rlimits > ISOLATE_RLIMITS_MAX)
		return error_field(err, ERROR_INVALID, "security",
				   "more than %d limits of processes", ISOLATE_RLIMITS_MAX);
	r = walls_check(&spec->security, &spec->masks, err);
	if (r == 0)
		r = filter_check(spec, err);
	if (r < 0)
		return r;
	r = mounts_check(spec->mounts, spec->n_mounts, err);
	if (r == 0)
		r = disk_check(spec, err);
	if (r == 0)
		r = limits_words_check(spec->limits, err);
	if (r == 0)
		r = limits_words_check(cell->limits, err);
	if (r < 0)
		return r;
	return program_check(spec->argv, spec->env, spec->cwd, spec->user, err);
}

static int user_numeric(const char *user, struct isolate_user *ret, struct error *err)
{
	const char *colon = strchr(user, ':');
	uint64_t uid = 0, gid = 0;
	char number[16];
	int r = 0;

	if (colon) {
		r = parse_u64(colon + 1, 0, ID_NUMBER_MAX, &gid);
		if (r == 0 && (size_t)(colon - user) >= sizeof(number))
			r = -ERANGE;
		if (r == 0)
			(void)str_printf(number, sizeof(number), "%.*s", (int)(colon - user), user);
	} else if (*user) {
		r = str_copy(number, sizeof(number), user);
	} else {
		(void)str_copy(number, sizeof(number), "0");
	}
	if (r == 0)
		r = parse_u64(number, 0, ID_NUMBER_MAX, &uid);
	if (r == 0 && !colon)
		gid = uid;
	if (r < 0)
		return error_field(err, ERROR_INVALID, "user",
				   "\"%.64s\" is not uid or uid:gid in numbers", user);

	*ret = (struct isolate_user){ .uid = (uid_t)uid, .gid = (gid_t)gid };
	return str_copy(ret->home, sizeof(ret->home), uid == 0 ? "/root" : "/");
}

int program_user(enum container_kind kind, int root_fd, const char *user, struct isolate_user *ret,
		 struct error *err)
{
	if (kind != CONTAINER_IMAGE)
		return user_numeric(user ?: "", ret, err);
	return isolate_user_find(root_fd, user ?: "", ret, err);
}

static int env_default(char ***env, const char *name, const char *value)
{
	_cleanup_str_ char *entry = NULL;

	if (strv_env_get(*env, name))
		return 0;
	entry = str_format("%s=%s", name, value);
	return entry ? strv_add(env, entry) : -ENOMEM;
}

int program_env(char ***ret, char *const *env, const char *home, const char *hostname)
{
	_cleanup_strv_ char **v = strv_copy(env);
	int r = 0;

	if (!v)
		return -ENOMEM;
	if (!strv_env_get(v, "PATH"))
		r = strv_add(&v, PATH_DEFAULT);
	if (r == 0)
		r = env_default(&v, "HOME", str_empty(home) ? "/" : home);
	if (r == 0 && hostname)
		r = env_default(&v, "HOSTNAME", hostname);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	return 0;
}

int program_env_terminal(char ***env)
{
	return env_default(env, "TERM", "xterm");
}

int program_env_over(char ***ret, char *const *env, char *const *over)
{
	_cleanup_strv_ char **v = strv_copy(env);
	int r = 0;

	if (!v)
		return -ENOMEM;
	for (; over && *over && r == 0; over++)
		r = strv_env_put(&v, *over);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(v);
	return 0;
}

void program_plan(struct isolate_plan *plan, enum container_kind kind,
		  const struct isolate_user *user)
{
	plan->uid = user->uid;
	plan->gid = user->gid;
	plan->n_groups = user->n_groups;
	memcpy(plan->groups, user->groups, sizeof(plan->groups));

	plan->give_stdio = true;
	plan->new_session = true;
	plan->oom_score_adj = 0;
	/* Whatever kills the keeper, its workloads end with it: a layer never outlives its owner.
	 */
	plan->death_signal = SIGKILL;

	if (kind != CONTAINER_IMAGE) {
		plan->caps = ISOLATE_CAPS_ALL;
		return;
	}
	plan->caps = isolate_caps_default;
	plan->no_new_privs = true;
	plan->seccomp = isolate_seccomp_default(isolate_caps_default);
	plan->default_rlimits = true;
}

void program_secure(struct isolate_plan *plan, const struct container_security *security)
{
	if (security->has_caps)
		plan->caps = security->caps;
	plan->no_new_privs = !security->may_gain;
	plan->oom_score_adj = security->oom_score_adj;
	plan->rlimits = security->rlimits;
	plan->n_rlimits = security->n_rlimits;
	plan->seccomp = security->unfiltered ? NULL : isolate_seccomp_default(plan->caps);
}

void program_add_groups(struct isolate_user *user, const struct container_security *security)
{
	if (security->groups_exact)
		user->n_groups = 0;
	for (size_t i = 0; i < security->n_groups && user->n_groups < ISOLATE_GROUPS_MAX; i++)
		user->groups[user->n_groups++] = security->groups[i];
}
