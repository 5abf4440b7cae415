/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/target.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/remote/contexts.h"

#define TARGET_CA "ca.crt"

void target_done(struct client_target *t)
{
	while (t->n_owned > 0)
		free(t->owned[--t->n_owned]);
}

static const char *target_keep(struct client_target *t, char *text)
{
	assert(t->n_owned < TARGET_OWNED_MAX);
	t->owned[t->n_owned++] = text;
	return text;
}

char *target_text(const struct client_target *t)
{
	bool six = t->host && strchr(t->host, ':');

	if (t->socket)
		return xstrdup(t->socket);
	return xformat("%s%s%s:%s", six ? "[" : "", t->host, six ? "]" : "", t->port);
}

int target_check_local(const struct client_target *t, const char *what, struct error *err)
{
	_cleanup_str_ char *text = NULL;

	if (t->socket)
		return 0;
	text = target_text(t);
	return error_refuse(err, ERROR_UNSUPPORTED,
			    "%s: the daemon at %s does not see the files of this host", what, text);
}

char *target_directory(void)
{
	const char *given = getenv("NACRE_CERT_PATH");
	const char *config = getenv("XDG_CONFIG_HOME");
	const char *home = getenv("HOME");

	if (!str_empty(given))
		return xstrdup(given);
	if (!str_empty(config))
		return xformat("%s/nacre", config);
	return str_empty(home) ? NULL : xformat("%s/.config/nacre", home);
}

/* ---- the name of a host ---- */

/* "NAME", "NAME:PORT", "192.0.2.1:PORT", "[2001:db8::1]:PORT"; "tcp://" in front does no harm. */
static int target_read_host(struct client_target *t, const char *text, struct error *err)
{
	const char *at = strncmp(text, "tcp://", 6) == 0 ? text + 6 : text;
	const char *port = NULL;
	uint64_t number;
	size_t len;

	if (*at == '[') {
		len = strcspn(++at, "]");
		port = at[len] ? at + len + 1 : NULL;
		if (!port || (*port && *port != ':'))
			len = 0;
	} else {
		len = strcspn(at, ":");
		port = at + len;
	}
	t->port = port && *port ? port + 1 : TARGET_PORT;
	if (len == 0 || len > 253 || strcspn(at, "/ @") < len ||
	    parse_u64(t->port, 1, UINT16_MAX, &number) < 0)
		return error_refuse(err, ERROR_INVALID,
				    "\"%.200s\" is no host: NAME, NAME:PORT or [ADDRESS]:PORT",
				    text);
	t->host = target_keep(t, xformat("%.*s", (int)len, at));
	if (!t->server_name)
		t->server_name = t->host;
	return 0;
}

/* ---- certificates in a directory ---- */

/* The stem of the only certificate in it besides the authority's; NULL with err. */
static char *target_find_own(const char *dir, struct error *err)
{
	_cleanup_str_ char *found = NULL;
	const struct dirent *e;
	int fd = sysio_openat(AT_FDCWD, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	DIR *d = fd >= 0 ? fdopendir(fd) : NULL;
	bool many = false;

	if (!d) {
		(void)fd_close(fd);
		(void)error_refuse(
			err, ERROR_PRECONDITION,
			"%s: %s (`nacre identity issue NAME --out DIR` on the node makes "
			"certificates; or --tls-ca, --tls-cert, --tls-key)",
			dir, strerror(errno));
		return NULL;
	}
	for (e = readdir(d); e; e = readdir(d)) {
		if (!str_has_suffix(e->d_name, ".crt") || str_eq(e->d_name, TARGET_CA))
			continue;
		many = many || found;
		free(found);
		found = xformat("%s/%.*s", dir, (int)strlen(e->d_name) - 4, e->d_name);
	}
	(void)closedir(d);
	if (!found || many)
		(void)error_refuse(
			err, ERROR_PRECONDITION,
			"%s has %s user's certificate (NAME.crt with NAME.key): choose one "
			"with --tls-cert and --tls-key",
			dir, many ? "more than one" : "no");
	return found && !many ? TAKE_PTR(found) : NULL;
}

static int target_find_files(struct client_target *t, struct error *err)
{
	_cleanup_str_ char *dir = NULL, *own = NULL;

	if (t->ca && t->cert && t->key)
		return 0;
	dir = target_directory();
	if (!dir)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"which certificates? There is neither NACRE_CERT_PATH nor a home "
			"directory, and not all of --tls-ca, --tls-cert and --tls-key");
	if (!t->cert != !t->key)
		return error_refuse(err, ERROR_INVALID,
				    "--tls-cert and --tls-key go together: one of them is missing");
	if (!t->ca)
		t->ca = target_keep(t, xformat("%s/" TARGET_CA, dir));
	if (t->cert)
		return 0;
	own = target_find_own(dir, err);
	if (!own)
		return err->code;
	t->cert = target_keep(t, xformat("%s.crt", own));
	t->key = target_keep(t, xformat("%s.key", own));
	return 0;
}

/* ---- which daemon ---- */

static const char *target_option(const struct args *before, const struct args *after,
				 const char *name, const char *variable)
{
	const char *behind = args_value(after, name), *front = args_value(before, name);

	if (behind || front)
		return behind ? behind : front;
	front = variable ? getenv(variable) : NULL;
	return str_empty(front) ? NULL : front;
}

static const char *or_else(struct client_target *t, const char *first, const char *second)
{
	return first ? first : second ? target_keep(t, xstrdup(second)) : NULL;
}

/* Fills in from a context the members that the command line left empty. name NULL: the one in use,
 * if there is one.
 */
static int target_use_context(struct client_target *t, const char *name, const char **ret_host,
			      const char **ret_socket, struct error *err)
{
	_cleanup_(contexts_freep) struct contexts *all = NULL;
	const struct context *c;
	int r = contexts_load(&all, err);

	if (r < 0 || (!name && !all->current))
		return r;
	c = contexts_find(all, name ? name : all->current);
	if (!c)
		return error_refuse(err, ERROR_NOT_FOUND,
				    "there is no context %.80s (nacre context ls)",
				    name ? name : all->current);
	*ret_host = or_else(t, NULL, c->fields[CONTEXT_HOST]);
	*ret_socket = or_else(t, NULL, c->fields[CONTEXT_SOCKET]);
	t->ca = or_else(t, t->ca, c->fields[CONTEXT_TLS_CA]);
	t->cert = or_else(t, t->cert, c->fields[CONTEXT_TLS_CERT]);
	t->key = or_else(t, t->key, c->fields[CONTEXT_TLS_KEY]);
	t->server_name = or_else(t, t->server_name, c->fields[CONTEXT_TLS_NAME]);
	return 0;
}

/* The context that --context names, or $NACRE_CONTEXT. */
static int target_read_context(struct client_target *t, const struct args *before,
			       const struct args *after, const char **ret_host,
			       const char **ret_socket, struct error *err)
{
	const char *name = target_option(before, after, "context", NULL);

	if (!name && str_empty(getenv("NACRE_HOST")) && str_empty(getenv("NACRE_SOCKET")))
		name = target_option(before, after, "context", "NACRE_CONTEXT");
	return name ? target_use_context(t, name, ret_host, ret_socket, err) : 0;
}

static int target_find(struct client_target *t, const struct args *before, const struct args *after,
		       struct error *err)
{
	const char *host = target_option(before, after, "host", NULL);
	const char *socket = target_option(before, after, "socket", NULL);
	int r;

	*t = (struct client_target){
		.ca = target_option(before, after, "tls-ca", NULL),
		.cert = target_option(before, after, "tls-cert", NULL),
		.key = target_option(before, after, "tls-key", NULL),
		.server_name = target_option(before, after, "tls-name", NULL),
	};
	if (host && socket)
		return error_refuse(err, ERROR_INVALID, "--host and --socket exclude each other");
	if (!host && !socket) {
		r = target_read_context(t, before, after, &host, &socket, err);
		if (r < 0)
			return r;
	}
	if (!host && !socket)
		host = target_option(before, after, "host", "NACRE_HOST");
	if (!host && !socket)
		socket = target_option(before, after, "socket", "NACRE_SOCKET");
	if (!host && !socket) {
		r = target_use_context(t, NULL, &host, &socket, err);
		if (r < 0)
			return r;
	}
	if (!host) {
		t->socket = socket ? socket : CLI_SOCKET_DEFAULT;
		t->ca = t->cert = t->key = t->server_name = NULL;
		return 0;
	}
	r = target_read_host(t, host, err);
	return r == 0 ? target_find_files(t, err) : r;
}

int target_settle(struct client_target *ret, const struct args *before, const struct args *after,
		  struct error *err)
{
	int r = target_find(ret, before, after, err);

	if (r < 0)
		target_done(ret);
	return r;
}
