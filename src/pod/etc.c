/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/etc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/fd.h"
#include "base/macros.h"
#include "base/rootfd.h"
#include "base/str.h"
#include "pod/model.h"

#define ETC_DIR "/etc/"
#define ETC_BLANK " \t\r"
#define ETC_SERVER "nameserver"

static const char etc_localhost[] =
	"127.0.0.1\tlocalhost %s\n::1\tlocalhost ip6-localhost ip6-loopback\n";
static const char etc_no_server[] = "# There is no network but loopback here, and no name server.\n"
				    "options timeout:1 attempts:1\n";

struct etc_place {
	const char *name;
	enum etc_network network;
	int host_fd;
};

/* ---- files of the host ---- */

/* 1, or 0 where it counts as missing; -ENOMEM. */
static int etc_read_host(const struct etc_place *p, const char *path, size_t max, struct buf *b)
{
	int r = rootfd_read(p->host_fd, path, max, b);

	if (r == -ENOMEM)
		return r;
	if (r < 0)
		buf_clear(b);
	return r >= 0;
}

/* The next line of *text without its end; false behind the last one. */
static bool etc_line(const char **text, size_t *left, const char **ret, size_t *ret_len)
{
	const char *end = *left ? memchr(*text, '\n', *left) : NULL;
	size_t len = end ? (size_t)(end - *text) : *left;

	if (*left == 0)
		return false;
	*ret = *text;
	*ret_len = len;
	len += end != NULL;
	*text += len;
	*left -= len;
	return true;
}

/* The next word of a line; 0 at its end. */
static size_t etc_word(const char **line, size_t *left)
{
	size_t n = 0;

	while (*left && strchr(ETC_BLANK, **line)) {
		(*line)++;
		(*left)--;
	}
	while (n < *left && (*line)[n] && !strchr(ETC_BLANK, (*line)[n]))
		n++;
	return n;
}

static void etc_skip(const char **line, size_t *left, size_t n)
{
	*line += n;
	*left -= n;
}

/* ---- hosts ---- */

static bool etc_line_names(const char *line, size_t left, const char *name)
{
	size_t n = etc_word(&line, &left); /* the address */

	while (n > 0 && *line != '#') {
		etc_skip(&line, &left, n);
		n = etc_word(&line, &left);
		if (n == strlen(name) && memcmp(line, name, n) == 0)
			return true;
	}
	return false;
}

static bool etc_names(const struct buf *hosts, const char *name)
{
	const char *text = (const char *)buf_data(hosts), *line;
	size_t left = hosts->len, len;

	while (etc_line(&text, &left, &line, &len))
		if (etc_line_names(line, len, name))
			return true;
	return false;
}

static int etc_put_hosts(struct buf *b, const struct etc_place *p)
{
	int r = 0;

	if (p->network == ETC_NETWORK_HOST)
		r = etc_read_host(p, "etc/hosts", ETC_HOST_MAX, b);
	if (r < 0)
		return r;
	if (r == 0 || b->len == 0)
		return buf_addf(b, etc_localhost, p->name);
	if (etc_names(b, p->name))
		return 0;
	r = buf_data(b)[b->len - 1] == '\n' ? 0 : buf_add_str(b, "\n");
	return r < 0 ? r : buf_addf(b, "127.0.0.1\t%s\n", p->name);
}

/* ---- hostname ---- */

static int etc_put_hostname(struct buf *b, const struct etc_place *p)
{
	return buf_addf(b, "%s\n", p->name);
}

/* ---- resolv.conf ---- */

/* Whether an address means the host itself, or needs the name of one of its devices. */
static bool etc_is_near(const char *address, size_t len)
{
	static const char *const own[] = { "::1", "::", "0.0.0.0" };

	for (size_t i = 0; i < ARRAY_SIZE(own); i++)
		if (len == strlen(own[i]) && memcmp(address, own[i], len) == 0)
			return true;
	return (len >= 4 && memcmp(address, "127.", 4) == 0) || memchr(address, '%', len) != NULL;
}

/* Copies what others can use of a resolv.conf. How many servers it has, or -ENOMEM. */
static int etc_add_far(struct buf *to, const struct buf *from)
{
	const char *text = (const char *)buf_data(from), *line;
	size_t left = from->len, len;
	int n_servers = 0;

	while (etc_line(&text, &left, &line, &len)) {
		const char *word = line;
		size_t rest = len, n = etc_word(&word, &rest);

		if (n == strlen(ETC_SERVER) && memcmp(word, ETC_SERVER, n) == 0) {
			etc_skip(&word, &rest, n);
			n = etc_word(&word, &rest);
			if (n == 0 || etc_is_near(word, n))
				continue;
			n_servers++;
		}
		if (buf_add(to, line, len) < 0 || buf_add_str(to, "\n") < 0)
			return -ENOMEM;
	}
	return n_servers;
}

static int etc_put_far(struct buf *b, const struct etc_place *p)
{
	static const char *const paths[] = { "etc/resolv.conf", "run/systemd/resolve/resolv.conf",
					     "run/NetworkManager/no-stub-resolv.conf" };

	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		_cleanup_(buf_done) struct buf host = BUF_INIT;
		int r = etc_read_host(p, paths[i], CONTAINER_FILE_MAX - 1, &host);

		if (r > 0)
			r = etc_add_far(b, &host);
		if (r != 0)
			return r < 0 ? r : 0;
		buf_clear(b);
	}
	return buf_add_str(b, etc_no_server);
}

static int etc_put_resolv(struct buf *b, const struct etc_place *p)
{
	int r;

	if (p->network == ETC_NETWORK_LOOPBACK)
		return buf_add_str(b, etc_no_server);
	if (p->network == ETC_NETWORK_ROUTED)
		return etc_put_far(b, p);
	r = etc_read_host(p, "etc/resolv.conf", ETC_HOST_MAX, b);
	return r < 0 ? r : 0;
}

/* ---- all of them ---- */

static const struct etc_file {
	const char *path;
	int (*put)(struct buf *b, const struct etc_place *p);
} etc_files[ETC_FILES] = {
	{ ETC_DIR "hosts", etc_put_hosts },
	{ ETC_DIR "hostname", etc_put_hostname },
	{ ETC_DIR "resolv.conf", etc_put_resolv },
};

int etc_make(struct etc *etc, const char *name, enum etc_network network, int host_fd,
	     struct error *err)
{
	const struct etc_place place = { .name = name, .network = network, .host_fd = host_fd };

	for (size_t i = 0; i < ETC_FILES; i++) {
		struct buf *b = &etc->texts[i];
		int r = etc_files[i].put(b, &place);

		if (r < 0)
			return error_set(err, r, "make %s of %s", etc_files[i].path, name);
		etc->files[i] = (struct container_file){ .path = etc_files[i].path,
							 .mode = 0644,
							 .data = b->len ? buf_data(b) : NULL,
							 .len = b->len };
	}
	return 0;
}

void etc_done(struct etc *etc)
{
	for (size_t i = 0; i < ETC_FILES; i++)
		buf_done(&etc->texts[i]);
}

enum etc_network etc_network_of(const struct workload *w)
{
	const struct instance *i = w->instance;
	bool shares =
		w->kind == WORKLOAD_POD ? !str_eq(w->network, "none") : str_eq(w->network, "host");

	if (!shares || (!i && w->kind == WORKLOAD_POD))
		return ETC_NETWORK_LOOPBACK;
	for (; i && !instance_is_node(i); i = i->parent) {
		if (i->choice.kind == INSTANCE_VM)
			return ETC_NETWORK_ROUTED;
		if (!i->host_network)
			return ETC_NETWORK_LOOPBACK;
	}
	return ETC_NETWORK_HOST;
}

int etc_make_for(struct etc *etc, const struct workload *w, struct error *err)
{
	enum etc_network network = etc_network_of(w);
	_cleanup_fd_ int host_fd = -1;

	if (network != ETC_NETWORK_LOOPBACK) {
		host_fd = rootfd_point(AT_FDCWD, "/");
		if (host_fd < 0)
			return error_set(err, host_fd, "open the root of the host");
	}
	return etc_make(etc, name_last(w->path), network, host_fd, err);
}

int etc_fill(int root_fd, const struct etc *etc, struct error *err)
{
	_cleanup_fd_ int dir_fd = rootfd_make_dir_through(root_fd, "etc");

	/* Nothing is looked up there. */
	if (dir_fd == -ENOTDIR || dir_fd == -ELOOP)
		return 0;
	if (dir_fd < 0)
		return error_set(err, dir_fd, "make /etc of a container");
	for (size_t i = 0; i < ETC_FILES; i++) {
		const struct container_file *f = &etc->files[i];
		int r = rootfd_put(dir_fd, f->path + strlen(ETC_DIR), f->mode, f->data, f->len);

		if (r == -ENOTEMPTY)
			return error_refuse(err, ERROR_PRECONDITION,
					    "the image has a directory that is not empty at %s, "
					    "where the node writes a file",
					    f->path);
		if (r < 0)
			return error_set(err, r, "write %s of a container", f->path);
	}
	return 0;
}
