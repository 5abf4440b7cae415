/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/spec.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/table/command.h"

#define SPEC_ENV_FILE_MAX ((size_t)1 << 20)

/* NAME=VALUE; NAME alone takes the value that it has here. */
static void spec_env_add(struct spec_env *e, const char *word)
{
	const char *value = strchr(word, '=') ? "" : getenv(word);

	/* As docker and podman do: a variable that is not set here is not set there. */
	if (!value)
		return;
	e->list = xrealloc(e->list, e->n + 2, sizeof(*e->list));
	e->list[e->n++] = strchr(word, '=') ? xstrdup(word) : xformat("%s=%s", word, value);
	e->list[e->n] = NULL;
}

/* A line of a file: as docker reads it, without quotes. Blanks before a name do not count. */
static int spec_env_line(struct spec_env *e, const char *file, size_t number, char *line,
			 struct error *err)
{
	size_t len = strlen(line);

	if (len && line[len - 1] == '\r')
		line[len - 1] = '\0';
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return 0;
	if (*line == '=' || strcspn(line, " \t") < strcspn(line, "="))
		return error_refuse(err, ERROR_INVALID,
				    "%s:%zu: a line is NAME=VALUE or NAME, not \"%.80s\"", file,
				    number, line);
	spec_env_add(e, line);
	return 0;
}

static int spec_env_file(struct spec_env *e, const char *file, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, file, O_RDONLY | O_CLOEXEC, 0);
	size_t number = 1;
	int r = fd < 0 ? -errno : fd_read_all(fd, SPEC_ENV_FILE_MAX, &b);

	if (r < 0)
		return error_set(err, r, "read %s", file);
	if (b.len && memchr(buf_data(&b), '\0', b.len))
		return error_refuse(err, ERROR_INVALID, "%s is no text: it has a NUL byte", file);
	text = buf_take_str(&b);
	if (!text)
		return error_set(err, -ENOMEM, "read %s", file);
	for (char *line = text; line; number++) {
		char *end = strchr(line, '\n');

		if (end)
			*end = '\0';
		r = spec_env_line(e, file, number, line, err);
		if (r < 0)
			return r;
		line = end ? end + 1 : NULL;
	}
	return 0;
}

/* What --env-host and --http-proxy take from here; what follows stands over it. */
static void spec_env_here(struct spec_env *e, const struct args *a)
{
	static const char *const proxies[] = {
		"http_proxy", "https_proxy", "ftp_proxy", "no_proxy",
		"HTTP_PROXY", "HTTPS_PROXY", "FTP_PROXY", "NO_PROXY"
	};

	for (char **word = environ; args_flag(a, "env-host") && *word; word++)
		if (strchr(*word, '=') && **word != '=')
			spec_env_add(e, *word);
	for (size_t i = 0; args_flag(a, "http-proxy") && i < ARRAY_SIZE(proxies); i++)
		spec_env_add(e, proxies[i]);
}

static int spec_env_take(struct spec_env *e, const struct args *a, bool has_files,
			 struct error *err)
{
	const char *word;
	size_t pos = 0;
	int r = 0;

	while (has_files && r == 0 && (word = args_next(a, "env-file", &pos)))
		r = spec_env_file(e, word, err);
	pos = 0;
	while (r == 0 && (word = args_next(a, "env", &pos))) {
		if (!*word || *word == '=')
			return error_refuse(err, ERROR_INVALID,
					    "--env is NAME=VALUE or NAME, not \"%s\"", word);
		spec_env_add(e, word);
	}
	return r;
}

int spec_env_init(struct spec_env *e, const struct args *a, bool has_files, struct error *err)
{
	*e = (struct spec_env){ .list = NULL };
	return spec_env_take(e, a, has_files, err);
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
	s->walls = walls_none;
	s->health = (struct health_options){ .arena = ARENA_INIT };
	s->list[0] = c;
	s->entrypoint[0] = args_value(a, "entrypoint");
	s->env = (struct spec_env){ .list = NULL };
	spec_env_here(&s->env, a);
	r = spec_env_take(&s->env, a, true, err);
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
	r = walls_take(&s->walls, c, a, err);
	return r < 0 ? r : health_options_take(&s->health, c, a, err);
}

void spec_container_done(struct spec_container *s)
{
	spec_env_done(&s->env);
	walls_done(&s->walls);
	health_options_done(&s->health);
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
