/* SPDX-License-Identifier: Apache-2.0 */
#include "plugin/record.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "wire/document/jsonwrite.h"

#define RECORD_SUFFIX ".json"
#define RECORD_GONE ".gone"
#define RECORD_NAME_SIZE (CNI_NAME_MAX + 16)

static const char *record_suffix(bool gone)
{
	return gone ? RECORD_GONE : RECORD_SUFFIX;
}

static int record_name(char ret[RECORD_NAME_SIZE], const char *container, const char *suffix)
{
	return cni_name_is_valid(container)
		       ? str_printf(ret, RECORD_NAME_SIZE, "%s%s", container, suffix)
		       : -EINVAL;
}

/* ---- reading ---- */

/* NULL: it is no text. */
static const char *record_text(const struct json_value *top, const char *name)
{
	const struct json_value *v = json_member(top, name);

	if (!v)
		return "";
	return v->kind == JSON_STRING ? v->text : NULL;
}

static int record_read(struct record *ret, struct arena *arena, const struct buf *file)
{
	_cleanup_(buf_done) struct buf config = BUF_INIT;
	struct json_value *top = NULL;
	void *copy;

	if (json_parse(&top, arena, buf_data(file), file->len, NULL) < 0 ||
	    top->kind != JSON_OBJECT)
		return -EBADMSG;
	*ret = (struct record){ .container = record_text(top, "container"),
				.interface = record_text(top, "interface"),
				.netns = record_text(top, "netns"),
				.args = record_text(top, "args"),
				.boot = record_text(top, "boot"),
				.config_tree = json_member(top, "config"),
				.offered = json_member(top, "offered"),
				.result = json_member(top, "result") };
	if (!ret->config_tree || str_empty(ret->container) || str_empty(ret->interface) ||
	    !ret->netns || !ret->args || !ret->boot)
		return -EBADMSG;
	if (json_write_value(&config, ret->config_tree) < 0)
		return -ENOMEM;
	copy = arena_memdup(arena, buf_data(&config), config.len);
	if (!copy)
		return -ENOMEM;
	return cni_config_parse(&ret->config, arena, copy, config.len, NULL) < 0 ? -EBADMSG : 0;
}

int record_load(struct record *ret, struct arena *arena, int dir_fd, const char *container,
		bool gone)
{
	_cleanup_(buf_done) struct buf file = BUF_INIT;
	char name[RECORD_NAME_SIZE];
	int r = record_name(name, container, record_suffix(gone));

	if (r >= 0)
		r = fd_read_file(dir_fd, name, RECORD_SIZE_MAX, &file);
	return r < 0 ? r : record_read(ret, arena, &file);
}

/* ---- writing ---- */

static int record_put_text(struct buf *b, const char *name, const char *value)
{
	int r = json_write_name(b, name);

	return r < 0 ? r : json_write_text(b, value);
}

static int record_put_tree(struct buf *b, const char *name, const struct json_value *v)
{
	int r = v ? json_write_name(b, name) : 0;

	return r < 0 || !v ? r : json_write_value(b, v);
}

static int record_print(struct buf *b, const struct record *rec)
{
	const char *const texts[][2] = { { "container", rec->container },
					 { "interface", rec->interface },
					 { "netns", rec->netns },
					 { "args", rec->args },
					 { "boot", rec->boot } };
	int r = buf_add_str(b, "{");

	for (size_t i = 0; i < ARRAY_SIZE(texts) && r == 0; i++)
		r = record_put_text(b, texts[i][0], texts[i][1]);
	if (r == 0)
		r = record_put_tree(b, "config", rec->config_tree);
	if (r == 0)
		r = record_put_tree(b, "offered", rec->offered);
	if (r == 0)
		r = record_put_tree(b, "result", rec->result);
	return r < 0 ? r : buf_add_str(b, "}\n");
}

static int record_write(int dir_fd, const char *temporary, const char *name, const struct buf *b)
{
	_cleanup_fd_ int fd = sysio_openat(
		dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	int r;

	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, buf_data(b), b->len);
	if (r == 0 && sysio_fsync(fd) < 0)
		r = -errno;
	if (r == 0 && sysio_renameat(dir_fd, temporary, dir_fd, name) < 0)
		r = -errno;
	if (r < 0)
		(void)sysio_unlinkat(dir_fd, temporary, 0);
	return r == 0 && sysio_fsync(dir_fd) < 0 ? -errno : r;
}

int record_save(const struct record *rec, int dir_fd, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char name[RECORD_NAME_SIZE], temporary[RECORD_NAME_SIZE];
	int r = record_name(name, rec->container, RECORD_SUFFIX);

	if (r >= 0)
		r = record_name(temporary, rec->container, ".new");
	if (r >= 0)
		r = record_print(&b, rec);
	if (r >= 0)
		r = record_write(dir_fd, temporary, name, &b);
	return r < 0 ? error_set(err, r, "write the record of a network's pod") : 0;
}

int record_mark_gone(int dir_fd, const char *container)
{
	char name[RECORD_NAME_SIZE], gone[RECORD_NAME_SIZE];

	if (record_name(name, container, RECORD_SUFFIX) < 0 ||
	    record_name(gone, container, RECORD_GONE) < 0)
		return -EINVAL;
	return sysio_renameat(dir_fd, name, dir_fd, gone) < 0 ? -errno : 0;
}

void record_remove(int dir_fd, const char *container)
{
	char name[RECORD_NAME_SIZE];

	for (int gone = 0; gone < 2; gone++)
		if (record_name(name, container, record_suffix(gone)) >= 0)
			(void)sysio_unlinkat(dir_fd, name, 0);
}

int record_list(int dir_fd, bool gone, char ***ret)
{
	_cleanup_strv_ char **names = NULL, **list = NULL;
	const char *suffix = record_suffix(gone);
	int r = fd_list_dir(dir_fd, &names);

	for (size_t i = 0; r >= 0 && names && names[i]; i++) {
		if (!str_has_suffix(names[i], suffix))
			continue;
		names[i][strlen(names[i]) - strlen(suffix)] = '\0';
		if (cni_name_is_valid(names[i]))
			r = strv_add(&list, names[i]);
	}
	if (r < 0)
		return r;
	*ret = TAKE_PTR(list);
	return 0;
}
