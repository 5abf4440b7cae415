/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/endpoint.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "registry/hosts.h"
#include "registry/limits.h"
#include "wire/message/fetchmsg.h"

#define ENDPOINT_SYSTEM_CA "/etc/ssl/certs/ca-certificates.crt"
#define ENDPOINT_SYSTEM_CA_MAX (8 << 20)
#define ENDPOINT_MEMORY_MAX (4 << 20)

static int endpoint_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "read how the registry is reached");
}

static void endpoint_done(struct endpoint *e)
{
	free(e->credentials);
	buf_done(&e->ca);
	buf_done(&e->cert);
	buf_done(&e->key);
	strv_free(e->headers);
}

void endpoints_done(struct endpoints *e)
{
	for (size_t i = 0; i < e->n; i++)
		endpoint_done(&e->list[i]);
	free(e->list);
	buf_done(&e->system_ca);
	e->list = NULL;
	e->n = 0;
}

static struct endpoint *endpoint_add(struct endpoints *e)
{
	struct endpoint *more;

	more = realloc(e->list, (e->n + 1) * sizeof(*more));
	if (!more)
		return NULL;
	e->list = more;
	more += e->n++;
	*more = (struct endpoint){ .can = FETCH_CAN_FLAGS };
	return more;
}

/* ---- the API's root ---- */

static int endpoint_root(struct endpoint *e, bool override_path, struct error *err)
{
	size_t len = strcspn(e->root.path, "?");

	if (e->root.path[len])
		return error_refuse(err, ERROR_INVALID, "the URL of a registry has no query");
	while (len > 0 && e->root.path[len - 1] == '/')
		e->root.path[--len] = '\0';
	if (override_path || str_has_suffix(e->root.path, "/v2"))
		return 0;
	if (len + sizeof("/v2") > sizeof(e->root.path))
		return error_refuse(err, ERROR_INVALID, "the URL of a registry is too long");
	(void)str_copy(e->root.path + len, sizeof(e->root.path) - len, "/v2");
	return 0;
}

/* Plain HTTP is for this machine's own registries, and where somebody said so. */
static int endpoint_check_plain(const struct endpoint *e, uint32_t flags, struct error *err)
{
	if (e->root.tls || flags & FETCH_HOST_PLAIN || url_reach(&e->root) == URL_LOOPBACK)
		return 0;
	return error_refuse(err, ERROR_PRECONDITION,
			    "plain HTTP to %s is for loopback only, unless it is asked for",
			    e->root.host);
}

static int endpoint_from_url(struct endpoint *e, const char *text, bool override_path,
			     struct error *err)
{
	char whole[URL_SIZE];
	int r;

	/* As containerd reads them: without a scheme it is https. */
	if (str_printf(whole, sizeof(whole), "%s%s", strstr(text, "://") ? "" : "https://", text) <
	    0)
		return error_refuse(err, ERROR_INVALID, "the URL of a registry is too long");
	r = url_parse(&e->root, whole, err);
	return r == 0 ? endpoint_root(e, override_path, err) : r;
}

/* Credentials of a mirror are those of its own host, as a reference would name it. */
static int endpoint_name(struct endpoint *e, const char *host, struct error *err)
{
	char text[URL_SIZE];

	if (host) {
		e->credentials = strdup(host);
	} else {
		url_format_origin(&e->root, text);
		e->credentials = strdup(strstr(text, "://") + 3);
	}
	return e->credentials ? 0 : endpoint_memory(err);
}

/* ---- files ---- */

/* What the node's administrator has put there, or has not. */
static int endpoint_unreadable(struct error *err, int r, const char *name)
{
	(void)error_set(err, r, "read %s", name);
	if (err && r != -ENOMEM)
		err->kind = ERROR_PRECONDITION;
	return r;
}

static int endpoint_file(int dir_fd, const char *name, struct buf *to, struct error *err)
{
	int r;

	r = fd_read_file(dir_fd, name, REGISTRY_FILE_MAX, to);
	if (r == 0)
		r = buf_add_str(to, "\n");
	return r < 0 ? endpoint_unreadable(err, r, name) : 0;
}

static int endpoint_apply(struct endpoint *e, const struct hosts_entry *h, int dir_fd,
			  struct error *err)
{
	int r = 0;

	e->can = h->can;
	e->insecure = e->insecure || h->skip_verify;
	e->dial_ms = h->dial_ms;
	for (size_t i = 0; r == 0 && i < h->n_ca; i++)
		r = endpoint_file(dir_fd, h->ca[i], &e->ca, err);
	/* The first pair: which of several a server would take is not known before it is asked. */
	if (r == 0 && h->n_client) {
		r = endpoint_file(dir_fd, h->client[0], &e->cert, err);
		if (r == 0)
			r = endpoint_file(dir_fd, h->client[1], &e->key, err);
	}
	for (size_t i = 0; r == 0 && i < h->n_headers; i++)
		if (strv_add(&e->headers, h->headers[i]) < 0)
			r = endpoint_memory(err);
	return r;
}

/* Docker's layout: *.crt are authorities, NAME.cert and NAME.key a client. */
static int endpoint_apply_files(struct endpoint *e, int dir_fd, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	char key[256];
	int r;

	r = fd_list_dir(dir_fd, &names);
	if (r < 0)
		return endpoint_unreadable(err, r, "the list of certificates");
	for (char **name = names; r == 0 && name && *name; name++) {
		if (str_has_suffix(*name, ".crt")) {
			r = endpoint_file(dir_fd, *name, &e->ca, err);
		} else if (str_has_suffix(*name, ".cert") && e->cert.len == 0) {
			(void)str_printf(key, sizeof(key), "%.*s.key", (int)strlen(*name) - 5,
					 *name);
			r = endpoint_file(dir_fd, *name, &e->cert, err);
			if (r == 0)
				r = endpoint_file(dir_fd, key, &e->key, err);
		}
	}
	return r;
}

/* The directory for a host in the first of the directories that has one; -ENOENT: none. */
static int endpoint_open_dir(char *const *dirs, const char *host, char *ret_path, size_t size)
{
	const char *port = strrchr(host, ':');
	char forms[3][FETCH_HOST_MAX + 2] = { "", "", "_default" };

	(void)str_copy(forms[1], sizeof(forms[1]), host);
	if (port && !strchr(port, ']'))
		(void)str_printf(forms[0], sizeof(forms[0]), "%.*s_%s_", (int)(port - host), host,
				 port + 1);
	for (; dirs && *dirs; dirs++) {
		for (size_t i = 0; i < ARRAY_SIZE(forms); i++) {
			int fd;

			if (!*forms[i] || str_printf(ret_path, size, "%s/%s", *dirs, forms[i]) < 0)
				continue;
			fd = sysio_openat(AT_FDCWD, ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC,
					  0);
			if (fd >= 0 || errno != ENOENT)
				return fd >= 0 ? fd : -errno;
		}
	}
	return -ENOENT;
}

/* ---- the list ---- */

static int endpoint_add_mirrors(struct endpoints *e, const struct endpoint_config *config,
				struct error *err)
{
	for (size_t i = 0; i < config->n_mirrors; i++) {
		const struct endpoint_mirror *m = &config->mirrors[i];
		struct endpoint *to;
		int r;

		if (!str_eq(m->host, config->host))
			continue;
		to = endpoint_add(e);
		if (!to)
			return endpoint_memory(err);
		to->mirror = true;
		to->can = m->can;
		to->insecure = m->flags & FETCH_HOST_INSECURE;
		r = endpoint_from_url(to, m->url, false, err);
		if (r == 0)
			r = endpoint_check_plain(to, m->flags, err);
		if (r == 0)
			r = endpoint_name(to, NULL, err);
		if (r < 0)
			return error_wrap(err, r, "mirror %s", m->url);
	}
	return 0;
}

static int endpoint_add_hosts(struct endpoints *e, const struct endpoint_config *config,
			      const struct hosts *h, int dir_fd, struct error *err)
{
	struct url own;
	int r;

	r = url_of_host(&own, config->host, true, err);
	for (size_t i = 0; r == 0 && i < h->n_entries; i++) {
		const struct hosts_entry *from = &h->entries[i];
		struct endpoint *to = endpoint_add(e);

		if (!to)
			return endpoint_memory(err);
		r = endpoint_from_url(to, from->url, from->override_path, err);
		/* The administrator's file asks for it. */
		if (r == 0) {
			to->mirror = !str_eq(to->root.host, own.host) || to->root.port != own.port;
			r = endpoint_name(to, to->mirror ? NULL : config->host, err);
		}
		if (r == 0)
			r = endpoint_apply(to, from, dir_fd, err);
	}
	return r;
}

static int endpoint_add_server(struct endpoints *e, const struct endpoint_config *config,
			       const struct hosts *h, int dir_fd, struct error *err)
{
	struct endpoint *to = endpoint_add(e);
	bool plain = config->host_flags & FETCH_HOST_PLAIN;
	int r;

	if (!to)
		return endpoint_memory(err);
	/* A registry on this machine has TLS where somebody has put its certificates. */
	r = url_of_host(&to->root, config->host, true, err);
	if (r < 0)
		return r;
	if (dir_fd < 0 && url_reach(&to->root) == URL_LOOPBACK)
		plain = true;
	to->insecure = config->host_flags & FETCH_HOST_INSECURE;
	if (h && h->server.url) {
		r = endpoint_from_url(to, h->server.url, h->server.override_path, err);
	} else {
		r = url_of_host(&to->root, config->host, !plain, err);
		if (r == 0)
			r = endpoint_root(to, false, err);
	}
	if (r == 0)
		r = endpoint_name(to, config->host, err);
	if (r == 0 && h)
		r = endpoint_apply(to, &h->server, dir_fd, err);
	else if (r == 0 && dir_fd >= 0)
		r = endpoint_apply_files(to, dir_fd, err);
	return r;
}

static int endpoint_load_dir(struct endpoints *e, const struct endpoint_config *config, int dir_fd,
			     struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(ENDPOINT_MEMORY_MAX);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct hosts hosts;
	int r;

	r = fd_read_file(dir_fd, "hosts.toml", REGISTRY_FILE_MAX, &text);
	if (r == -ENOENT)
		return endpoint_add_server(e, config, NULL, dir_fd, err);
	if (r < 0)
		return endpoint_unreadable(err, r, "hosts.toml");
	r = hosts_parse(&hosts, &arena, text.len ? (const char *)buf_data(&text) : "", text.len,
			err);
	if (r == 0)
		r = endpoint_add_hosts(e, config, &hosts, dir_fd, err);
	if (r == 0)
		r = endpoint_add_server(e, config, &hosts, dir_fd, err);
	return r;
}

static int endpoint_load_system(struct endpoints *e, struct error *err)
{
	int r = fd_read_file(AT_FDCWD, ENDPOINT_SYSTEM_CA, ENDPOINT_SYSTEM_CA_MAX, &e->system_ca);

	/* A machine without any authority can still reach what brings its own. */
	return r < 0 && r != -ENOENT ? endpoint_unreadable(err, r, ENDPOINT_SYSTEM_CA) : 0;
}

int endpoints_load(struct endpoints *e, const struct endpoint_config *config, struct error *err)
{
	_cleanup_fd_ int dir_fd = -1;
	char path[PATH_MAX];
	int r;

	r = endpoint_load_system(e, err);
	if (r == 0)
		r = endpoint_add_mirrors(e, config, err);
	if (r < 0)
		return r;
	dir_fd = endpoint_open_dir(config->dirs, config->host, path, sizeof(path));
	if (dir_fd == -ENOENT)
		return endpoint_add_server(e, config, NULL, -1, err);
	if (dir_fd < 0)
		return endpoint_unreadable(err, dir_fd, path);
	r = endpoint_load_dir(e, config, dir_fd, err);
	return r < 0 ? error_wrap(err, r, "%s", path) : 0;
}
