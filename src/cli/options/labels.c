/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/labels.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

#define LABELS_FILE_MAX ((size_t)1 << 20)

typedef Aurae__Runtime__V0__Meta__LabelsEntry labels_entry;

static labels_entry *labels_find(const struct labels *l, const char *key)
{
	for (size_t i = 0; i < l->n; i++)
		if (str_eq(l->list[i]->key, key))
			return l->list[i];
	return NULL;
}

static void labels_add(struct labels *l, const char *word)
{
	_cleanup_str_ char *key = xformat("%.*s", (int)strcspn(word, "="), word);
	const char *value = strchr(word, '=') ? strchr(word, '=') + 1 : "";
	labels_entry *e = labels_find(l, key);

	if (!e) {
		e = xrealloc(NULL, 1, sizeof(*e));
		aurae__runtime__v0__meta__labels_entry__init(e);
		e->key = TAKE_PTR(key);
		e->value = NULL;
		l->list = xrealloc(l->list, l->n + 1, sizeof(*l->list));
		l->list[l->n++] = e;
	}
	free(e->value);
	e->value = xstrdup(value);
}

static int labels_line(struct labels *l, const char *file, size_t number, char *line,
		       struct error *err)
{
	line[strcspn(line, "\r")] = '\0';
	line += strspn(line, " \t");
	if (!*line || *line == '#')
		return 0;
	if (*line == '=')
		return error_refuse(err, ERROR_INVALID,
				    "%s:%zu: a line is NAME=VALUE or NAME, not \"%.80s\"", file,
				    number, line);
	labels_add(l, line);
	return 0;
}

static int labels_file(struct labels *l, const char *file, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char *rest, *line;
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, file, O_RDONLY | O_CLOEXEC, 0);
	int r = fd < 0 ? -errno : fd_read_all(fd, LABELS_FILE_MAX, &b);

	if (r < 0)
		return error_set(err, r, "--label-file: read %s", file);
	if (b.len && memchr(buf_data(&b), '\0', b.len))
		return error_refuse(err, ERROR_INVALID,
				    "--label-file: %s is no text: it has a NUL byte", file);
	text = buf_take_str(&b);
	if (!text)
		return error_set(err, -ENOMEM, "--label-file: read %s", file);
	rest = text;
	for (size_t number = 1; (line = strsep(&rest, "\n")); number++) {
		r = labels_line(l, file, number, line, err);
		if (r < 0)
			return r;
	}
	return 0;
}

int labels_init(struct labels *l, Aurae__Runtime__V0__Meta *meta, const struct args *a,
		struct error *err)
{
	const char *word;
	size_t pos = 0;
	int r = 0;

	*l = (struct labels){ .list = NULL };
	while (r == 0 && (word = args_next(a, "label-file", &pos)))
		r = labels_file(l, word, err);
	pos = 0;
	while (r == 0 && (word = args_next(a, "label", &pos))) {
		if (!*word || *word == '=')
			return error_refuse(err, ERROR_INVALID,
					    "--label is NAME=VALUE or NAME, not \"%.80s\"", word);
		labels_add(l, word);
	}
	meta->labels = l->list;
	meta->n_labels = l->n;
	return r;
}

void labels_done(struct labels *l)
{
	for (size_t i = 0; i < l->n; i++) {
		free(l->list[i]->key);
		free(l->list[i]->value);
		free(l->list[i]);
	}
	free(l->list);
	*l = (struct labels){ .list = NULL };
}

void labels_view(struct json *j, const char *key, const Nacre__V1__Workload *w)
{
	json_put_object(j, key);
	for (size_t i = 0; i < w->n_labels; i++)
		json_put_string(j, w->labels[i]->key, w->labels[i]->value);
	json_put_end(j);
}

char *labels_words(const Nacre__V1__Workload *w)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < w->n_labels; i++) {
		char *longer = xformat("%s%s%s=%s", all, i ? "," : "", w->labels[i]->key,
				       w->labels[i]->value);

		free(all);
		all = longer;
	}
	return all;
}
