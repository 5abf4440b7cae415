/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/storage/shares.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "pod/storage/mirror.h"
#include "pod/storage/volume.h"
#include "pod/workload/model.h"

/* The same path may be another directory by the time that it is opened for the next mount. */
static bool share_is_of(const struct pod_share *s, const struct pod_mount_spec *from,
			const struct stat *st)
{
	if (!str_eq(s->source, from->source) ||
	    (!s->again && (s->dev != st->st_dev || s->ino != st->st_ino)))
		return false;
	/* What the machine has stays as it is. */
	return !s->asked || !s->read_only || from->read_only;
}

static struct pod_share *shares_find(const struct workload *w, const struct pod_mount_spec *from,
				     const struct stat *st)
{
	struct pod_share *s;

	list_for_each (s, &w->shares, struct pod_share, link)
		if (!s->scratch && share_is_of(s, from, st))
			return s;
	return NULL;
}

static struct pod_share *shares_add(struct workload *w, const char *source)
{
	struct pod_share *s = calloc(1, sizeof(*s));
	char *copy = strdup(source);

	if (!s || !copy) {
		free(s);
		free(copy);
		return NULL;
	}
	*s = (struct pod_share){ .workload = w, .source = copy, .fd = -1, .read_only = true };
	(void)str_printf(s->name, sizeof(s->name), "v%zu", w->n_shares++);
	list_init(&s->link);
	list_add_tail(&w->shares, &s->link);
	return s;
}

bool shares_has(const struct pod_container *c, const struct pod_share *s)
{
	for (char *const *name = c->shares; name && *name; name++)
		if (str_eq(*name, s->name))
			return true;
	return false;
}

static int shares_note(struct pod_container *c, const struct pod_share *s,
		       struct container_mount *to)
{
	to->share = s->name;
	return shares_has(c, s) ? 0 : strv_add(&c->shares, s->name);
}

static struct pod_share *shares_find_scratch(const struct workload *w, const char *name)
{
	struct pod_share *s;

	list_for_each (s, &w->shares, struct pod_share, link)
		if (s->scratch && str_eq(s->name, name))
			return s;
	return NULL;
}

/* Nothing is to be put: the machine makes it for the first that mounts it. */
static int shares_take_scratch(struct workload *w, const struct pod_mount_spec *from,
			       struct container_mount *to, struct error *err)
{
	struct pod_share *s = shares_find_scratch(w, from->scratch);

	if (!s) {
		s = shares_add(w, from->scratch);
		if (!s)
			return error_set(err, -ENOMEM, "%s", from->field);
		s->scratch = s->asked = s->there = true;
		if (str_copy(s->name, sizeof(s->name), from->scratch) < 0)
			return error_field(err, ERROR_INVALID, from->field,
					   "the name of a volume is longer than %d bytes",
					   CONTAINER_SHARE_MAX);
	}
	to->share = s->name;
	to->read_only = from->read_only;
	to->no_exec = from->no_exec;
	to->scratch = true;
	to->one_file = from->one_file;
	return 0;
}

int shares_take(struct pod_container *c, const struct pod_mount_spec *from,
		struct container_mount *to, struct error *err)
{
	struct pod_share *s;
	struct stat st;
	int fd;

	if (from->scratch)
		return shares_take_scratch(c->workload, from, to, err);
	if (fstat(from->fd, &st) < 0)
		return error_set(err, -errno, "%s", from->field);
	s = shares_find(c->workload, from, &st);
	if (!s) {
		s = shares_add(c->workload, from->source);
		if (!s)
			return error_set(err, -ENOMEM, "%s", from->field);
		s->dev = st.st_dev;
		s->ino = st.st_ino;
	}
	s->one_file = S_ISREG(st.st_mode) &&
		      !instance_kind_can(c->workload->choice.kind, INSTANCE_NODE_MOUNTS);
	/* Of the mounts of one source, the one that can be written to is what all are given. */
	if (!s->asked && (s->fd < 0 || (s->read_only && !from->read_only))) {
		fd = fd_copy(from->fd);
		if (fd < 0)
			return error_set(err, fd, "%s", from->field);
		(void)fd_close(s->fd);
		s->fd = fd;
		s->read_only = from->read_only;
	}
	to->read_only = from->read_only;
	to->no_exec = from->no_exec;
	to->one_file = s->one_file;
	return shares_note(c, s, to) < 0 ? error_set(err, -ENOMEM, "%s", from->field) : 0;
}

int shares_take_image(struct pod_container *c, const struct pod_mount_spec *from, int fd,
		      const char *id, struct container_mount *to, struct error *err)
{
	struct pod_share *s = shares_add(c->workload, id);
	struct stat st;

	if (!s || fstat(fd, &st) < 0) {
		(void)fd_close(fd);
		return error_set(err, s ? -errno : -ENOMEM, "%s", from->field);
	}
	s->fd = fd;
	s->dev = st.st_dev;
	s->ino = st.st_ino;
	to->read_only = true;
	to->no_exec = from->no_exec;
	return shares_note(c, s, to) < 0 ? error_set(err, -ENOMEM, "%s", from->field) : 0;
}

struct pod_share *shares_again(struct workload *w, const char *name, const char *source)
{
	struct pod_share *s = shares_add(w, source);
	uint64_t number;

	if (!s)
		return NULL;
	(void)str_copy(s->name, sizeof(s->name), name);
	if (parse_u64(name + 1, 0, UINT32_MAX, &number) == 0)
		w->n_shares = MAX(w->n_shares, (size_t)number + 1);
	s->again = s->asked = s->there = true;
	return s;
}

struct pod_share *shares_recall(struct workload *w, const char *name, const char *source,
				bool read_only, dev_t dev, ino_t ino)
{
	struct pod_share *s = shares_again(w, name, source);

	if (!s)
		return NULL;
	s->again = false;
	s->read_only = read_only;
	s->dev = dev;
	s->ino = ino;
	return s;
}

struct pod_share *share_free(struct pod_share *s)
{
	list_remove(&s->link);
	s->mirror = mirror_free(s->mirror);
	(void)fd_close(s->fd);
	free(s->source);
	free(s);
	return NULL;
}

void shares_free(struct workload *w)
{
	struct pod_share *s;

	list_for_each (s, &w->shares, struct pod_share, link)
		(void)share_free(s);
}
