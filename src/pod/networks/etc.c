/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/etc.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "network/attachment.h"
#include "pod/networks/names.h"
#include "pod/workload/model.h"
#include "pod/workload/workloads.h"

#define ETC_DIR "/etc/"
#define ETC_BLANK " \t\r"
#define ETC_SERVER "nameserver"
#define ETC_SEARCH "search"
/* As many search domains as Kubernetes takes. */
#define ETC_SEARCH_MAX 32
#define ETC_SEARCH_LEN_MAX 2048
/* Pods that share the network of a pod that shares it, and so on. */
#define ETC_SHARERS_MAX 8

static const char etc_localhost[] =
	"127.0.0.1\tlocalhost%s%s\n::1\tlocalhost ip6-localhost ip6-loopback\n";
static const char etc_no_server[] = "# There is no network but loopback here, and no name server.\n"
				    "options timeout:1 attempts:1\n";

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

/* Each of a list (NULL: none) as a line. */
static int etc_put_lines(struct buf *b, const char *word, char *const *list)
{
	int r = 0;

	for (size_t i = 0; list && list[i] && r == 0; i++)
		r = buf_addf(b, "%s%s\n", word, list[i]);
	return r;
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

static const char *etc_hostname(const struct etc_place *p)
{
	return p->wish && p->wish->hostname ? p->wish->hostname : p->name;
}

static int etc_put_address(struct buf *b, const struct etc_place *p, const struct prefix *address)
{
	const char *hostname = etc_hostname(p);
	char text[PREFIX_TEXT_MAX];

	if (!address->family)
		return 0;
	prefix_print_address(address, text);
	if (str_eq(hostname, p->name))
		return buf_addf(b, "%s\t%s\n", text, hostname);
	return buf_addf(b, "%s\t%s %s\n", text, hostname, p->name);
}

static int etc_put_own_hosts(struct buf *b, const struct etc_place *p)
{
	int r;

	if (!p->attachment)
		return buf_addf(b, etc_localhost, " ", etc_hostname(p));
	r = buf_addf(b, etc_localhost, "", "");
	/* There they follow its networks. */
	if (r == 0 && p->names && p->names->len > 0 && str_eq(etc_hostname(p), p->name))
		return 0;
	if (r == 0)
		r = etc_put_address(b, p, &p->attachment->ip4);
	return r < 0 ? r : etc_put_address(b, p, &p->attachment->ip6);
}

static int etc_put_known_hosts(struct buf *b, const struct etc_place *p)
{
	int r = 0;

	if (p->network == ETC_NETWORK_HOST)
		r = etc_read_host(p, "etc/hosts", ETC_HOST_MAX, b);
	if (r < 0)
		return r;
	if (r == 0 || b->len == 0)
		return etc_put_own_hosts(b, p);
	r = buf_data(b)[b->len - 1] == '\n' ? 0 : buf_add_str(b, "\n");
	if (r < 0 || etc_names(b, etc_hostname(p)))
		return r;
	return buf_addf(b, "127.0.0.1\t%s\n", etc_hostname(p));
}

static int etc_put_hosts(struct buf *b, const struct etc_place *p)
{
	int r = etc_put_known_hosts(b, p);

	if (r == 0 && p->wish)
		r = etc_put_lines(b, "", p->wish->hosts);
	if (r == 0 && p->names)
		r = buf_add(b, buf_data(p->names), p->names->len);
	return r;
}

/* ---- hostname ---- */

static int etc_put_hostname(struct buf *b, const struct etc_place *p)
{
	return buf_addf(b, "%s\n", etc_hostname(p));
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

static bool etc_is(const char *word, size_t len, const char *what)
{
	return len == strlen(what) && memcmp(word, what, len) == 0;
}

static bool etc_has(char *const *list)
{
	return list && list[0];
}

/* Whether somebody asked for something in place of lines that begin with this word. */
static bool etc_is_replaced(const struct etc_wish *wish, const char *word, size_t len)
{
	if (!wish)
		return false;
	if (etc_is(word, len, ETC_SERVER))
		return etc_has(wish->servers);
	if (etc_is(word, len, ETC_SEARCH) || etc_is(word, len, "domain"))
		return etc_has(wish->search);
	return etc_is(word, len, "options") && etc_has(wish->options);
}

/* Whether others can use a line that names a server, behind that word. */
static bool etc_is_far(const char *rest, size_t left, int n_servers)
{
	size_t n = etc_word(&rest, &left);

	return n > 0 && !etc_is_near(rest, n) && n_servers < ETC_SERVERS_MAX;
}

/* The domains behind "search", as many as resolvers take. -ENOMEM. */
static int etc_add_search(struct buf *to, const char *line, size_t left)
{
	size_t len = 0, n_domains = 0, n;

	for (n = etc_word(&line, &left); n > 0; n = etc_word(&line, &left)) {
		len += n + 1;
		if (n_domains == ETC_SEARCH_MAX || len > ETC_SEARCH_LEN_MAX)
			break;
		if (buf_add_str(to, n_domains == 0 ? ETC_SEARCH " " : " ") < 0 ||
		    buf_add(to, line, n) < 0)
			return -ENOMEM;
		n_domains++;
		etc_skip(&line, &left, n);
	}
	return n_domains ? buf_add_str(to, "\n") : 0;
}

/* Copies what others can use of a resolv.conf, or all of it. How many servers it has, or -ENOMEM.
 */
static int etc_add_lines(struct buf *to, const struct buf *from, const struct etc_place *p)
{
	const char *text = (const char *)buf_data(from), *line;
	bool all = p->network == ETC_NETWORK_HOST;
	size_t left = from->len, len;
	int n_servers = 0;

	while (etc_line(&text, &left, &line, &len)) {
		const char *word = line;
		size_t rest = len, n = etc_word(&word, &rest);
		bool is_server = etc_is(word, n, ETC_SERVER);

		if (etc_is_replaced(p->wish, word, n))
			continue;
		if (is_server && !all && !etc_is_far(word + n, rest - n, n_servers))
			continue;
		n_servers += is_server;
		if (!all && etc_is(word, n, ETC_SEARCH)) {
			if (etc_add_search(to, word + n, rest - n) < 0)
				return -ENOMEM;
			continue;
		}
		if (buf_add(to, line, len) < 0 || buf_add_str(to, "\n") < 0)
			return -ENOMEM;
	}
	return n_servers;
}

/* What the host has that nobody asked for otherwise. How many servers it has, or -ENOMEM. */
static int etc_put_hosts_own(struct buf *b, const struct etc_place *p)
{
	static const char *const paths[] = { "etc/resolv.conf", "run/systemd/resolve/resolv.conf",
					     "run/NetworkManager/no-stub-resolv.conf" };
	size_t n = p->network == ETC_NETWORK_HOST ? 1 : ARRAY_SIZE(paths);

	for (size_t i = 0; i < n; i++) {
		_cleanup_(buf_done) struct buf host = BUF_INIT;
		int r = etc_read_host(p, paths[i], CONTAINER_FILE_MAX - 1, &host);

		if (r > 0)
			r = etc_add_lines(b, &host, p);
		/* With servers of their own nobody needs those of another file. */
		if (r != 0 || n == 1 || (p->wish && etc_has(p->wish->servers)))
			return r;
		buf_clear(b);
	}
	return 0;
}

/* A list in one line; "." alone: none. */
static int etc_put_words(struct buf *b, const char *word, char *const *list)
{
	int r;

	if (!etc_has(list) || (str_eq(list[0], ".") && !list[1]))
		return 0;
	r = buf_add_str(b, word);
	for (size_t i = 0; list[i] && r == 0; i++)
		r = buf_addf(b, " %s", list[i]);
	return r < 0 ? r : buf_add_str(b, "\n");
}

static int etc_put_wish(struct buf *b, const struct etc_wish *wish)
{
	int r = etc_put_lines(b, ETC_SERVER " ", wish->servers);

	if (r == 0)
		r = etc_put_words(b, "search", wish->search);
	return r < 0 ? r : etc_put_words(b, "options", wish->options);
}

static int etc_put_resolv(struct buf *b, const struct etc_place *p)
{
	bool asked = p->wish && (etc_has(p->wish->servers) || etc_has(p->wish->search) ||
				 etc_has(p->wish->options));
	int r = 0;

	if (p->network == ETC_NETWORK_HOST && !asked) {
		r = etc_read_host(p, "etc/resolv.conf", ETC_HOST_MAX, b);
		return r < 0 ? r : 0;
	}
	if (p->network != ETC_NETWORK_LOOPBACK)
		r = etc_put_hosts_own(b, p);
	if (r == 0 && p->network != ETC_NETWORK_HOST && !(p->wish && etc_has(p->wish->servers)))
		r = buf_add_str(b, etc_no_server);
	return r < 0 || !asked ? MIN(r, 0) : etc_put_wish(b, p->wish);
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

int etc_make(struct etc *etc, const struct etc_place *place, struct error *err)
{
	for (size_t i = 0; i < ETC_FILES; i++) {
		struct buf *b = &etc->texts[i];
		int r = etc_files[i].put(b, place);

		if (r < 0)
			return error_set(err, r, "make %s of %s", etc_files[i].path, place->name);
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

	if (w->attachment)
		return ETC_NETWORK_ROUTED;
	if (!shares || (!i && w->kind == WORKLOAD_POD))
		return ETC_NETWORK_LOOPBACK;
	for (; i && !instance_is_node(i); i = i->parent) {
		if (!instance_kind_can(i->choice.kind, INSTANCE_LOCAL_PROCESS))
			return ETC_NETWORK_ROUTED;
		if (!i->host_network)
			return ETC_NETWORK_LOOPBACK;
	}
	return ETC_NETWORK_HOST;
}

/* The pod that it shares the network of, or itself. */
static const struct workload *etc_sharer(const struct workload *w)
{
	const struct workload *of = w, *next = w, *other;

	for (int depth = 0; next && next->net_of[0] && depth < ETC_SHARERS_MAX; depth++) {
		of = next;
		next = NULL;
		list_for_each (other, &w->all->list, struct workload, link)
			if (str_eq(other->id, of->net_of))
				next = other;
	}
	return next ? next : of;
}

int etc_make_for(struct etc *etc, const struct workload *w, struct error *err)
{
	_cleanup_(buf_done) struct buf names = BUF_INIT;
	_cleanup_fd_ int host_fd = -1;
	const struct workload *on = etc_sharer(w);
	struct etc_place place = { .name = name_last(w->path),
				   .network = etc_network_of(on),
				   .attachment = on->attachment,
				   .wish = w->etc,
				   .names = &names };

	if (names_block(&w->all->list, on, &names, &etc->names) < 0)
		return error_set(err, -ENOMEM, "make /etc/hosts of %s", w->path);
	/* Those of another one are as they were at the start. */
	if (on != w)
		etc->names = 0;

	if (place.network != ETC_NETWORK_LOOPBACK) {
		host_fd = rootfd_point(AT_FDCWD, "/");
		if (host_fd < 0)
			return error_set(err, host_fd, "open the root of the host");
	}
	place.host_fd = host_fd;
	return etc_make(etc, &place, err);
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
