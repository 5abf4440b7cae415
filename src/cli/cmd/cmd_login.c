/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/images/authfile.h"
#include "cli/images/credentials.h"
#include "cli/images/registry_auth.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/prompt.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

#define LOGIN_SECRET_MAX 16384
#define LOGIN_DEFAULT "docker.io"

/* The host as references have it: of what docker takes a URL is one, too. */
static char *login_host(const struct args *args)
{
	const char *text = args->n_operands ? args->operands[0] : LOGIN_DEFAULT;
	static const char *const schemes[] = { "https://", "http://" };
	size_t n;

	if (credentials_is_host(text, LOGIN_DEFAULT))
		return xstrdup(LOGIN_DEFAULT);
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++)
		if (str_has_prefix(text, schemes[i]))
			text += strlen(schemes[i]);
	n = strlen(text);
	while (n > 0 && text[n - 1] == '/')
		n--;
	return xformat("%.*s", (int)n, text);
}

struct login {
	const struct cli *cli;
	const char *path; /* --authfile, or NULL */
	char *host, *user, *secret;
};

static void login_done(struct login *l)
{
	if (l->secret)
		explicit_bzero(l->secret, strlen(l->secret));
	free(l->host);
	free(l->user);
	free(l->secret);
}

/* Asks the registry whether it accepts the credentials. */
static int login_ask(const struct login *l, const struct credentials *c, struct error *err)
{
	Nacre__V1__LoginRequest request = NACRE__V1__LOGIN_REQUEST__INIT;
	Nacre__V1__RegistryAuth auth = NACRE__V1__REGISTRY_AUTH__INIT, *auths[] = { &auth };
	_cleanup_message_ Nacre__V1__LoginResponse *answer = NULL;

	auth.host = l->host;
	spec_set(&auth.username, (char *)(uintptr_t)c->username);
	spec_set(&auth.password, (char *)(uintptr_t)c->password);
	spec_set(&auth.identity_token, (char *)(uintptr_t)c->identity_token);
	spec_set(&auth.registry_token, (char *)(uintptr_t)c->registry_token);
	request.registry = l->host;
	request.auths = auths;
	request.n_auths = 1;
	answer = client_ask_once(&l->cli->daemon, "/nacre.v1.ImageService/Login", &request.base,
				 &nacre__v1__login_response__descriptor, 0, err);
	return answer ? 0 : err->code;
}

static int login_find(const struct login *l, struct arena *arena, struct credentials *ret,
		      struct error *err)
{
	return l->path ? credentials_find_in(ret, arena, l->host, l->path, err)
		       : credentials_find(ret, arena, l->host, err);
}

/* Those that are kept already, where the registry takes them: 1. */
static int login_with_kept(const struct login *l, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	struct credentials c;
	int r = login_find(l, &arena, &c, err);

	if (r <= 0)
		return r;
	r = login_ask(l, &c, err);
	if (r == 0)
		return 1;
	return err->kind == ERROR_UNAUTHENTICATED ? 0 : r;
}

/* All of standard input but the newline at its end. */
static int login_read_secret(struct login *l, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = fd_read_all(STDIN_FILENO, LOGIN_SECRET_MAX, &b);
	const char *text = b.len ? (const char *)buf_data(&b) : "";
	size_t n = b.len;

	if (r < 0)
		return error_set(err, r, "read the password from standard input");
	if (n > 0 && text[n - 1] == '\n')
		n--;
	if (n > 0 && text[n - 1] == '\r')
		n--;
	if (n == 0 || memchr(text, '\0', n))
		r = error_refuse(err, ERROR_INVALID, "there is no password on standard input");
	else
		l->secret = xformat("%.*s", (int)n, text);
	if (b.base)
		explicit_bzero(b.base, b.size);
	return r;
}

static int login_take_words(struct login *l, const struct args *args, struct error *err)
{
	char *user = args_value(args, "username"), *secret = args_value(args, "password");
	bool from_stdin = args_flag(args, "password-stdin");

	if (from_stdin && secret)
		return error_refuse(err, ERROR_INVALID,
				    "--password and --password-stdin exclude each other");
	if (!user && (from_stdin || secret))
		return error_refuse(err, ERROR_INVALID, "a password needs --username as well");
	if (user)
		l->user = xstrdup(user);
	if (secret) {
		(void)fputs("nacre: a password on the command line is seen by all users of this "
			    "machine: --password-stdin keeps it secret\n",
			    stderr);
		l->secret = xstrdup(secret);
	}
	return from_stdin ? login_read_secret(l, err) : 0;
}

static int login_prompt(struct login *l, struct error *err)
{
	int r = l->user ? 0 : prompt_line(&l->user, "username", false, err);

	return r == 0 && !l->secret ? prompt_line(&l->secret, "password", true, err) : r;
}

/* 1: with what was kept already. */
static int login_run(struct login *l, const struct args *args, struct error *err)
{
	struct credentials c = { .identity_token = "", .registry_token = "" };
	int r = login_take_words(l, args, err);

	if (r == 0 && !l->user)
		r = login_with_kept(l, err);
	if (r == 0)
		r = login_prompt(l, err);
	if (r != 0)
		return r;
	if (str_empty(l->user) || strchr(l->user, ':'))
		return error_refuse(err, ERROR_INVALID, "a username is not empty and has no ':'");
	c.username = l->user;
	c.password = l->secret;
	r = login_ask(l, &c, err);
	return r == 0 ? authfile_keep(l->path, l->host, l->user, l->secret, err) : r;
}

static int login_show_user(const struct login *l)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(REGISTRY_AUTH_MEMORY_MAX);
	struct error err = ERROR_INIT;
	struct credentials c;
	int r = login_find(l, &arena, &c, &err);

	if (r < 0)
		return cli_fail(&err);
	if (r == 0 || !*c.username)
		return cli_complain("not logged in to %s", l->host);
	(void)puts(c.username);
	return 0;
}

int cmd_login(const struct cli *cli, const struct args *args)
{
	_cleanup_(login_done) struct login l = { .cli = cli,
						 .path = args_value(args, "authfile"),
						 .host = login_host(args) };
	struct error err = ERROR_INIT;
	int r;

	if (args_flag(args, "get-login"))
		return login_show_user(&l);
	r = login_run(&l, args, &err);
	if (r < 0)
		return cli_fail(&err);
	(void)puts(r > 0 ? "Login Succeeded, with the credentials that are kept already"
			 : "Login Succeeded");
	return 0;
}

int cmd_logout(const struct cli *cli, const struct args *args)
{
	_cleanup_str_ char *host = login_host(args);
	bool all = args_flag(args, "all");
	struct error err = ERROR_INIT;
	int r;

	(void)cli;
	if (all && args->n_operands > 0)
		return cli_complain("--all is without a registry");
	r = authfile_forget(args_value(args, "authfile"), all ? NULL : host, &err);
	if (r < 0)
		return cli_fail(&err);
	if (r == 0 && !all)
		return cli_complain("not logged in to %s", host);
	(void)printf("Removed login credentials for %s\n", all ? "all registries" : host);
	return 0;
}
