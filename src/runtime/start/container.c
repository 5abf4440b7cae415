/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/container.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "runtime/core/check.h"
#include "runtime/core/convert.h"
#include "runtime/start/security.h"
#include "volumes/secrets.h"

/* With room for some more behind them. */
static char **container_strv(struct arena *a, char **v, size_t n, size_t more)
{
	char **copy = arena_zalloc(a, n + 1 + more, sizeof(*copy));

	for (size_t i = 0; copy && i < n; i++)
		copy[i] = v[i];
	return copy;
}

static int container_check(const Aurae__Runtime__V0__Container *c, size_t i, size_t n,
			   struct error *err)
{
	char field[64];
	int r = 0;

#define FIELD(name) (str_printf(field, sizeof(field), "containers[%zu]." name, i) < 0 ? "" : field)
	if (str_empty(c->name) && n > 1)
		return error_field(err, ERROR_INVALID, FIELD("name"),
				   "required, since there are several");
	if (str_empty(c->image))
		return error_field(err, ERROR_INVALID, FIELD("image"), "required");
	r = check_name(FIELD("name"), c->name, err);
	/* One empty word resets the image's entrypoint. */
	if (r == 0 && c->n_command && !(c->n_command == 1 && str_empty(c->command[0])))
		r = check_words(FIELD("command"), c->command, c->n_command, err);
	if (r == 0 && c->n_args)
		r = check_args(FIELD("args"), c->args, c->n_args, err);
	if (r == 0)
		r = check_env(FIELD("env"), c->env, c->n_env, err);
	if (r == 0)
		r = check_dir(FIELD("working_dir"), c->working_dir, err);
	if (r == 0)
		r = check_user(FIELD("user"), c->user, err);
	if (r == 0 && c->terminal)
		r = check_size(FIELD("terminal"), c->terminal->width, c->terminal->height, err);
#undef FIELD
	return r;
}

/* Slots for their values, behind the other variables. */
static int container_take_secrets(struct arena *a, const Aurae__Runtime__V0__Container *from,
				  size_t i, struct pod_container_spec *to, struct error *err)
{
	struct pod_secret_env *list = arena_zalloc(a, from->n_secret_env + 1, sizeof(*list));
	char field[ERROR_FIELD_MAX];

	if (from->n_secret_env > SECRETS_OF_MOUNT_MAX)
		return error_field(err, ERROR_INVALID, "secret_env", "more than %d",
				   SECRETS_OF_MOUNT_MAX);
	for (size_t k = 0; list && k < from->n_secret_env; k++) {
		const Aurae__Runtime__V0__SecretVariable *v = from->secret_env[k];
		int r;

		(void)str_printf(field, sizeof(field), "containers[%zu].secret_env[%zu]", i, k);
		r = secret_check_name(field, v->name, err);
		if (r < 0)
			return r;
		if (str_empty(v->variable) || strchr(v->variable, '=') ||
		    !str_is_clean(v->variable))
			return error_field(err, ERROR_INVALID, field,
					   "variable: \"%.80s\" is no name of one", v->variable);
		list[k] = (struct pod_secret_env){ v->name, v->variable, arena_strdup(a, field) };
		if (!list[k].field)
			list = NULL;
	}
	if (!list)
		return error_set(err, -ENOMEM, "containers");
	to->secret_env = list;
	to->n_secret_env = from->n_secret_env;
	return 0;
}

int container_take(struct arena *a, const Aurae__Runtime__V0__Container *from, size_t i, size_t n,
		   struct pod_container_spec *to, struct error *err)
{
	char field[ERROR_FIELD_MAX];
	int r = container_check(from, i, n, err);

	if (r < 0)
		return r;
	*to = (struct pod_container_spec){
		.name = str_empty(from->name) ? RUN_CONTAINER_NAME : from->name,
		.image = from->image,
		.command = container_strv(a, from->command, from->n_command, 0),
		.args = container_strv(a, from->args, from->n_args, 0),
		.env = container_strv(a, from->env, from->n_env, from->n_secret_env),
		.working_dir = from->working_dir,
		.user = from->user,
		.stdin_open = from->stdin,
		.tty = from->tty,
		.terminal = convert_terminal(from->terminal),
		.hold_output = from->hold_output,
		.is_init = from->init_container,
	};
	if (!to->command || !to->args || !to->env)
		return error_set(err, -ENOMEM, "containers");
	r = container_take_secrets(a, from, i, to, err);
	if (r < 0)
		return r;
	(void)str_printf(field, sizeof(field), "containers[%zu].security", i);
	return security_take(a, to, from->security, field, err);
}
