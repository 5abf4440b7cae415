/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/spec.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "cli/command.h"

int spec_env_init(struct spec_env *e, const struct args *a, struct error *err)
{
	size_t pos = 0;

	*e = (struct spec_env){ .list = NULL };
	for (;;) {
		const char *word = args_next(a, "env", &pos), *value;

		if (!word)
			return 0;
		if (!*word || *word == '=')
			return error_refuse(err, ERROR_INVALID,
					    "--env is NAME=VALUE or NAME, not \"%s\"", word);
		value = strchr(word, '=') ? "" : getenv(word);
		/* As docker and podman do: a variable that is not set here is not set there. */
		if (!value)
			continue;
		e->list = xrealloc(e->list, e->n + 2, sizeof(*e->list));
		e->list[e->n++] = strchr(word, '=') ? xstrdup(word) : xformat("%s=%s", word, value);
		e->list[e->n] = NULL;
	}
}

void spec_env_done(struct spec_env *e)
{
	strv_free(e->list);
	*e = (struct spec_env){ .list = NULL };
}

void spec_set(char **field, char *value)
{
	if (value)
		*field = value;
}

int spec_container_init(struct spec_container *s, const struct args *a, struct error *err)
{
	static char main_name[] = "main";
	Aurae__Runtime__V0__Container *c = &s->message;
	int r;

	aurae__runtime__v0__container__init(c);
	s->walls = (struct walls)WALLS_INIT;
	s->list[0] = c;
	s->entrypoint[0] = args_value(a, "entrypoint");
	r = spec_env_init(&s->env, a, err);
	if (r < 0)
		return r;
	c->name = main_name;
	c->image = a->operands[0];
	c->command = s->entrypoint;
	c->n_command = s->entrypoint[0] ? 1 : 0;
	c->args = a->operands + 1;
	c->n_args = a->n_operands - 1;
	c->env = s->env.list;
	c->n_env = s->env.n;
	spec_set(&c->working_dir, args_value(a, "cwd"));
	spec_set(&c->user, args_value(a, "user"));
	return walls_take(&s->walls, c, a, err);
}

void spec_container_done(struct spec_container *s)
{
	spec_env_done(&s->env);
	walls_done(&s->walls);
}

char **spec_values(const struct args *args, const char *name, size_t *ret_n)
{
	char **list = NULL;
	size_t pos = 0, n = 0;

	for (;;) {
		char *value = args_next(args, name, &pos);

		if (!value)
			break;
		list = xrealloc(list, n + 1, sizeof(*list));
		list[n++] = value;
	}
	*ret_n = n;
	return list;
}

int spec_milliseconds(const struct args *a, const char *name, uint64_t otherwise, uint64_t *ret,
		      struct error *err)
{
	const char *text = args_value(a, name);
	nsec_t time;

	*ret = otherwise;
	if (!text)
		return 0;
	if (parse_duration(text, &time) < 0)
		return error_refuse(err, ERROR_INVALID,
				    "--%s is a time such as 10, 500ms or 5m, not \"%s\"", name,
				    text);
	*ret = time / NSEC_PER_MSEC;
	return 0;
}

int spec_detach(struct detach *d, const struct args *a, bool tty, struct error *err)
{
	const char *keys = args_value(a, "detach-keys");
	int r = detach_parse(d, keys ? keys : DETACH_KEYS_DEFAULT, err);

	if (!tty)
		d->n = 0;
	return r;
}

int spec_report(Aurae__Runtime__V0__ContainerStatus *const *containers, size_t n)
{
	int status = 0;

	for (size_t i = 0; i < n; i++) {
		const Aurae__Runtime__V0__ContainerStatus *c = containers[i];

		for (size_t k = 0; k < c->n_warnings; k++)
			(void)cli_complain("warning: container %s: %s", c->name, c->warnings[k]);
		if (!str_eq(c->state, "failed"))
			continue;
		if (n > 1)
			(void)cli_complain("container %s: %s", c->name, c->reason);
		else
			(void)cli_complain("%s", *c->reason ? c->reason : "it did not start");
		if (!status)
			status = c->exit_code ? c->exit_code : CLI_FAILED;
	}
	return status;
}

/* "bridge=br0,address=192.0.2.5/24". */
int spec_nic_init(struct spec_nic *n, const struct args *a, struct error *err)
{
	const char *text = args_value(a, "nic");
	char *rest = NULL;

	*n = (struct spec_nic){ .message = AURAE__RUNTIME__V0__NIC__INIT };
	if (!text)
		return 0;
	n->list[0] = &n->message;
	n->words = xstrdup(text);
	for (char *word = strtok_r(n->words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		char *value = strchr(word, '=');

		if (value)
			*value++ = '\0';
		if (value && str_eq(word, "bridge"))
			n->message.bridge = value;
		else if (value && str_eq(word, "address"))
			n->message.address = value;
		else if (value && str_eq(word, "gateway"))
			n->message.gateway = value;
		else if (value && str_eq(word, "mac"))
			n->message.mac = value;
		else
			return error_refuse(
				err, ERROR_INVALID,
				"--nic: \"%s\" is none of bridge=NAME, address=ADDRESS/LENGTH, "
				"gateway=ADDRESS, mac=MAC",
				word);
	}
	return 0;
}

void spec_nic_done(struct spec_nic *n)
{
	free(n->words);
	n->words = NULL;
}
