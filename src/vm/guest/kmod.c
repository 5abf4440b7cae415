/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/kmod.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "vm/guest/elf64.h"

#define KMOD_NEEDED_DEPTH_MAX 32
#define KMOD_NEEDS "depends="

/* Of a file, or built in. */
struct kmod_entry {
	char name[KMOD_NAME_MAX + 1];
	bool builtin;
	bool packed; /* .ko.xz, .ko.zst, .ko.gz */
	char *path;  /* below the tree's directory */
};

struct kmod_tree {
	int dir_fd;
	struct map entries;
	size_t n;
};

/* ---- the index ---- */

/* The name of the module of a file, where it is one: what stands before ".ko". */
static bool kmod_name_of(const char *file, char ret[KMOD_NAME_MAX + 1], bool *ret_packed)
{
	const char *end = strstr(file, ".ko");
	size_t len = end ? (size_t)(end - file) : 0;

	if (len == 0 || len > KMOD_NAME_MAX)
		return false;
	*ret_packed = end[3] != '\0';
	if (*ret_packed && !str_eq(end, ".ko.xz") && !str_eq(end, ".ko.zst") &&
	    !str_eq(end, ".ko.gz"))
		return false;
	for (size_t i = 0; i < len; i++)
		ret[i] = file[i] == '-' ? '_' : file[i];
	ret[len] = '\0';
	return true;
}

static void kmod_entry_free(struct kmod_entry *e)
{
	if (e)
		free(e->path);
	free(e);
}

/* path: NULL for one that is built in. The first of a name stays. */
static int kmod_tree_add(struct kmod_tree *t, const char *file, const char *path)
{
	struct kmod_entry *e;
	char name[KMOD_NAME_MAX + 1];
	bool packed;
	int r;

	if (!kmod_name_of(file, name, &packed) || map_get(&t->entries, name))
		return 0;
	if (++t->n > KMOD_FILES_MAX)
		return -EFBIG;
	e = calloc(1, sizeof(*e));
	if (!e)
		return -ENOMEM;
	memcpy(e->name, name, sizeof(e->name));
	e->packed = packed;
	e->builtin = !path;
	e->path = path ? strdup(path) : NULL;
	r = path && !e->path ? -ENOMEM : map_add(&t->entries, e->name, e);
	if (r < 0)
		kmod_entry_free(e);
	return r;
}

/* The files named in modules.builtin, a path a line. */
static int kmod_tree_read_builtin(struct kmod_tree *t, struct error *err)
{
	_cleanup_(buf_done) struct buf list = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *rest, *line;
	int r;

	r = fd_read_file(t->dir_fd, "modules.builtin", KMOD_BUILTIN_BYTES_MAX, &list);
	if (r == -ENOENT)
		return 0;
	if (r == 0)
		r = buf_add(&list, "", 1);
	if (r < 0)
		return error_set(err, r, "read modules.builtin");
	text = buf_take_str(&list);
	if (!text)
		return error_set(err, -ENOMEM, "read modules.builtin");
	rest = text;
	for (line = strsep(&rest, "\n"); line && r == 0; line = strsep(&rest, "\n")) {
		const char *slash = strrchr(line, '/');

		r = kmod_tree_add(t, slash ? slash + 1 : line, NULL);
	}
	return r < 0 ? error_set(err, r, "read modules.builtin") : 0;
}

static int kmod_tree_walk(struct kmod_tree *t, int dir_fd, const char *path, unsigned depth)
{
	_cleanup_strv_ char **names = NULL;
	int r = fd_list_dir(dir_fd, &names);

	for (size_t i = 0; r == 0 && names && names[i]; i++) {
		_cleanup_str_ char *below = str_format("%s%s%s", path, *path ? "/" : "", names[i]);
		_cleanup_fd_ int fd = -1;

		if (!below)
			return -ENOMEM;
		if (strstr(names[i], ".ko")) {
			r = kmod_tree_add(t, names[i], below);
			continue;
		}
		fd = sysio_openat(dir_fd, names[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW,
				  0);
		if (fd >= 0 && depth == KMOD_DEPTH_MAX)
			return -ELOOP;
		if (fd >= 0)
			r = kmod_tree_walk(t, fd, below, depth + 1);
	}
	return r;
}

int kmod_tree_open(struct kmod_tree **ret, int dir_fd, struct error *err)
{
	_cleanup_(kmod_tree_freep) struct kmod_tree *t = calloc(1, sizeof(*t));
	int r;

	if (!t)
		return error_set(err, -ENOMEM, "look at the modules");
	t->dir_fd = dir_fd;
	if (dir_fd >= 0) {
		r = kmod_tree_read_builtin(t, err);
		if (r < 0)
			return r;
		r = kmod_tree_walk(t, dir_fd, "", 0);
		if (r < 0)
			return error_set(err, r, "look through the modules");
	}
	*ret = TAKE_PTR(t);
	return 0;
}

struct kmod_tree *kmod_tree_free(struct kmod_tree *t)
{
	struct kmod_entry *e;
	size_t pos = 0;

	if (!t)
		return NULL;
	for (e = map_next(&t->entries, &pos); e; e = map_next(&t->entries, &pos)) {
		(void)map_remove(&t->entries, e->name);
		kmod_entry_free(e);
	}
	map_done(&t->entries);
	free(t);
	return NULL;
}

/* ---- one module ---- */

static int kmod_each_word(char *words, int (*fn)(void *, const char *, struct error *),
			  void *userdata, struct error *err)
{
	char *word;

	for (word = strsep(&words, ","); word; word = strsep(&words, ",")) {
		int r;

		for (char *p = word; *p; p++)
			*p = *p == '-' ? '_' : *p;
		r = *word ? fn(userdata, word, err) : 0;
		if (r < 0)
			return r;
	}
	return 0;
}

int kmod_each_needed(const uint8_t *data, size_t len,
		     int (*fn)(void *userdata, const char *name, struct error *err), void *userdata,
		     struct error *err)
{
	const uint8_t *info;
	size_t size;

	if (!elf_section(data, len, ".modinfo", &info, &size))
		return error_set(err, -EBADMSG, "it is no module of x86-64");
	/* Entries KEY=VALUE, each with its NUL. */
	while (size > 0) {
		const uint8_t *nul = memchr(info, '\0', size);
		size_t n = nul ? (size_t)(nul - info) : size;

		if (nul && n > strlen(KMOD_NEEDS) &&
		    memcmp(info, KMOD_NEEDS, strlen(KMOD_NEEDS)) == 0) {
			_cleanup_str_ char *words = strdup((const char *)info + strlen(KMOD_NEEDS));

			if (!words)
				return error_set(err, -ENOMEM, "read what it depends on");
			return kmod_each_word(words, fn, userdata, err);
		}
		n += nul ? 1 : 0;
		info += n;
		size -= n;
	}
	return 0;
}

static int kmod_read(const struct kmod_tree *t, const struct kmod_entry *e, struct buf *data,
		     struct error *err)
{
	int r;

	if (e->packed)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "the module %s is packed, and this program reads plain ones "
				    "only: unpack the modules first (xz -d, zstd -d --rm, gunzip)",
				    e->path);
	r = rootfd_read(t->dir_fd, e->path, KMOD_BYTES_MAX, data);
	return r < 0 ? error_set(err, r, "read the module %s", e->path) : 0;
}

/*
 * A signed module ends with the signature, 12 bytes of which the last four are its length (big
 * endian), and these words.
 */
#define KMOD_SIGNED "~Module signature appended~\n"
#define KMOD_SIGNATURE_INFO 12

static void kmod_trim_signature(struct buf *data)
{
	const size_t tail = strlen(KMOD_SIGNED) + KMOD_SIGNATURE_INFO;
	const uint8_t *info = buf_data(data) + data->len - tail;
	size_t len;

	if (data->len < tail ||
	    memcmp(info + KMOD_SIGNATURE_INFO, KMOD_SIGNED, strlen(KMOD_SIGNED)) != 0)
		return;
	len = (size_t)info[8] << 24 | (size_t)info[9] << 16 | (size_t)info[10] << 8 | info[11];
	if (len <= data->len - tail)
		data->len -= tail + len;
}

/* ---- the order ---- */

struct kmod_walk {
	struct kmod_list *list;
	struct kmod_tree *tree;
	enum kmod_want want;
	unsigned depth;
};

static struct kmod *kmod_list_find(const struct kmod_list *list, const char *name)
{
	for (size_t i = 0; i < list->n; i++)
		if (str_eq(list->items[i].name, name))
			return &list->items[i];
	return NULL;
}

static int kmod_list_push(struct kmod_list *list, const char *name, enum kmod_want want,
			  struct buf *data, struct error *err)
{
	struct kmod *more;

	if (list->n == KMOD_LOAD_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "more than %d modules", KMOD_LOAD_MAX);
	more = reallocarray(list->items, list->n + 1, sizeof(*more));
	if (!more)
		return error_set(err, -ENOMEM, "list the modules");
	list->items = more;
	more = &list->items[list->n++];
	*more = (struct kmod){ .want = want, .data = *data };
	(void)str_copy(more->name, sizeof(more->name), name);
	*data = (struct buf)BUF_INIT;
	return 0;
}

/* Depth first: what it needs goes before it. */
static int kmod_walk_to(void *userdata, const char *name, struct error *err)
{
	struct kmod_walk *w = userdata;
	const struct kmod_entry *e = map_get(&w->tree->entries, name);
	struct kmod *known = kmod_list_find(w->list, name);
	_cleanup_(buf_done) struct buf data = BUF_INIT;
	int r;

	if (known) {
		known->want = MIN(known->want, w->want);
		return 0;
	}
	if (!e)
		return error_refuse(err, ERROR_NOT_FOUND, "this kernel has no module %s", name);
	if (e->builtin)
		return 0;
	if (++w->depth > KMOD_NEEDED_DEPTH_MAX)
		return error_refuse(err, ERROR_INVALID, "the module %s needs itself", name);
	r = kmod_read(w->tree, e, &data, err);
	if (r < 0)
		return r;
	kmod_trim_signature(&data);
	r = kmod_each_needed(buf_data(&data), data.len, kmod_walk_to, w, err);
	if (r < 0)
		return error_wrap(err, r, "module %s", name);
	w->depth--;
	return kmod_list_push(w->list, name, w->want, &data, err);
}

int kmod_list_add(struct kmod_list *list, struct kmod_tree *t, const char *name,
		  enum kmod_want want, bool *ret_missing, struct error *err)
{
	struct kmod_walk w = { .list = list, .tree = t, .want = want };

	if (t->dir_fd < 0)
		return 0;
	if (want != KMOD_MUST && !map_get(&t->entries, name)) {
		if (ret_missing)
			*ret_missing = true;
		return 0;
	}
	return kmod_walk_to(&w, name, err);
}

void kmod_list_done(struct kmod_list *list)
{
	for (size_t i = 0; i < list->n; i++)
		buf_done(&list->items[i].data);
	free(list->items);
	*list = (struct kmod_list)KMOD_LIST_INIT;
}
