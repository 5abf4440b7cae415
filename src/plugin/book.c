/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/book.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "plugin/chain.h"

#define BOOK_ARENA ((size_t)32 << 20)
#define BOOK_PATIENCE (10 * NSEC_PER_SEC) /* with one VERSION or STATUS */

void book_init(struct book *b)
{
	(void)pthread_mutex_init(&b->lock, NULL);
}

void book_done(struct book *b)
{
	buf_done(&b->text);
	(void)pthread_mutex_destroy(&b->lock);
}

/* ---- the directory ---- */

static bool book_is_configuration(const char *name)
{
	return str_has_suffix(name, ".conflist") || str_has_suffix(name, ".conf") ||
	       str_has_suffix(name, ".json");
}

static int book_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Their names, sorted. -ENOENT: there is no such directory. */
static int book_list(int dir_fd, char ***ret)
{
	_cleanup_strv_ char **names = NULL, **list = NULL;
	int r = fd_list_dir(dir_fd, &names);

	for (size_t i = 0; r >= 0 && names && names[i] && i < BOOK_FILES_MAX; i++)
		if (book_is_configuration(names[i]))
			r = strv_add(&list, names[i]);
	if (r < 0)
		return r;
	if (list)
		qsort(list, strv_len(list), sizeof(*list), book_compare);
	*ret = TAKE_PTR(list);
	return 0;
}

static int book_read(int dir_fd, const char *name, struct buf *text, struct arena *arena,
		     struct cni_config *ret, struct error *err)
{
	int r = fd_read_file(dir_fd, name, CNI_CONFIG_MAX, text);

	if (r < 0)
		return error_set(err, r, "read %s", name);
	r = cni_config_parse(ret, arena, buf_data(text), text->len, err);
	return r < 0 ? error_wrap(err, r, "%s", name) : 0;
}

static int book_none(const struct book *b, struct error *err)
{
	return error_refuse(err, ERROR_PRECONDITION,
			    "no CNI configuration file in %.200s (install that of your network, or "
			    "name its directory in network.cni.conf_dir)",
			    b->conf_dir);
}

static int book_open(const struct book *b, char ***ret, struct error *err)
{
	int fd = sysio_openat(AT_FDCWD, b->conf_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (fd < 0)
		return errno == ENOENT ? book_none(b, err)
				       : error_set(err, -errno, "open %.200s", b->conf_dir);
	r = book_list(fd, ret);
	if (r < 0) {
		(void)fd_close(fd);
		return error_set(err, r, "read %.200s", b->conf_dir);
	}
	return fd;
}

/* The first one. */
static int book_first(const struct book *b, struct buf *text, struct arena *arena,
		      struct cni_config *ret, struct error *err)
{
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int fd = book_open(b, &names, err);

	if (fd < 0)
		return fd;
	if (!names)
		return book_none(b, err);
	return book_read(fd, names[0], text, arena, ret, err);
}

/* ---- whether it serves ---- */

static bool book_tell(struct book *b, bool ready, const char *network, const struct error *err)
{
	char reason[ERROR_TEXT_MAX] = "";
	bool is_new;

	(void)str_copy(reason, sizeof(reason), ready ? "" : error_text(err));
	(void)pthread_mutex_lock(&b->lock);
	is_new = ready != b->ready || !str_eq(network, b->network) || !str_eq(reason, b->reason);
	b->ready = ready;
	(void)str_copy(b->network, sizeof(b->network), network);
	(void)str_copy(b->reason, sizeof(b->reason), reason);
	(void)pthread_mutex_unlock(&b->lock);
	return is_new;
}

/* Whether the plugins are there is looked at once, and again while they are not. */
static int book_ask_plugins(struct book *b, const struct cni_config *config, struct arena *arena,
			    struct error *err)
{
	const struct chain chain = { .config = config,
				     .bin_dirs = b->bin_dirs,
				     .path = b->path,
				     .container = "",
				     .arena = arena,
				     .limit = BOOK_PATIENCE,
				     .pause = NSEC_PER_SEC,
				     .cancel_fd = b->cancel_fd };
	int r = b->checked ? 0 : chain_version(&chain, err);

	b->checked = r == 0;
	return r < 0 ? r : chain_status(&chain, err);
}

static void book_replace(struct book *b, struct buf *text)
{
	struct buf old;

	(void)pthread_mutex_lock(&b->lock);
	old = b->text;
	b->text = *text;
	(void)pthread_mutex_unlock(&b->lock);
	*text = (struct buf)BUF_INIT;
	buf_done(&old);
	b->checked = false;
}

static bool book_is_same(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && (a->len == 0 || memcmp(buf_data(a), buf_data(b), a->len) == 0);
}

bool book_refresh(struct book *b)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(BOOK_ARENA);
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct error err = ERROR_INIT;
	struct cni_config config;
	int r = book_first(b, &text, &arena, &config, &err);

	if (r < 0 && err.kind == ERROR_PRECONDITION) {
		buf_clear(&text);
		book_replace(b, &text);
		return book_tell(b, false, "", &err);
	}
	/* A file that is being written is whole soon. */
	if (r < 0 && b->text.len > 0)
		return false;
	if (r < 0)
		return book_tell(b, false, "", &err);
	if (!book_is_same(&text, &b->text)) {
		struct buf copy = BUF_INIT;

		if (buf_add(&copy, buf_data(&text), text.len) < 0)
			return false;
		book_replace(b, &copy);
	}
	r = book_ask_plugins(b, &config, &arena, &err);
	return book_tell(b, r == 0, config.name, &err);
}

/* ---- asked for ---- */

static int book_current(struct book *b, struct buf *ret, struct error *err)
{
	int r;

	(void)pthread_mutex_lock(&b->lock);
	if (b->text.len == 0)
		r = error_refuse(err, ERROR_PRECONDITION, "%s", b->reason);
	else
		r = buf_add(ret, buf_data(&b->text), b->text.len);
	(void)pthread_mutex_unlock(&b->lock);
	return r == -ENOMEM ? error_set(err, r, "read the configuration of a network") : r;
}

int book_find(struct book *b, const char *network, struct buf *ret, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(BOOK_ARENA);
	_cleanup_strv_ char **names = NULL;
	_cleanup_fd_ int fd = -1;
	struct cni_config config;

	if (!*network)
		return book_current(b, ret, err);
	fd = book_open(b, &names, err);
	if (fd < 0)
		return fd;
	for (size_t i = 0; names && names[i]; i++) {
		buf_clear(ret);
		arena_done(&arena);
		if (book_read(fd, names[i], ret, &arena, &config, NULL) == 0 &&
		    str_eq(config.name, network))
			return 0;
	}
	return error_field(err, ERROR_NOT_FOUND, "network",
			   "no CNI configuration in %.200s has the name %s", b->conf_dir, network);
}
