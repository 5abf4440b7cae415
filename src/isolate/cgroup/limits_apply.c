/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/flat.h"
#include "isolate/cgroup/limits.h"

/*
 * First the limits become a list of writes (a file, a text), in the order in which they are made.
 * Then every file is looked for, and only if all are there the writes happen, each after the old
 * text of its file was read. When one fails the others are taken back, the last one first.
 */

#define LIMITS_FILE_SIZE 256
#define LIMITS_WORD_SIZE 24
#define LIMITS_OLD_MAX ((size_t)256 * 1024)

struct limits_write {
	char file[LIMITS_FILE_SIZE];
	char *text;
	char *undo;     /* what to write to have the old state again; NULL: nothing is to be done */
	bool unlimited; /* "no limit": may be missing */
};

struct limits_plan {
	int dir_fd;
	struct limits_write *writes;
	size_t n, size;
};

static void limits_plan_done(struct limits_plan *p)
{
	for (size_t i = 0; i < p->n; i++) {
		free(p->writes[i].text);
		free(p->writes[i].undo);
	}
	free(p->writes);
}

static char *limits_read(int dir_fd, const char *file, int *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char *text;

	*ret = fd_read_file(dir_fd, file, LIMITS_OLD_MAX, &b);
	if (*ret < 0)
		return NULL;
	text = buf_take_str(&b);
	*ret = text ? 0 : -ENOMEM;
	return text;
}

static bool limits_has_file(const struct limits_plan *p, const char *file)
{
	_cleanup_fd_ int fd = sysio_openat(p->dir_fd, file, O_PATH | O_CLOEXEC, 0);

	return fd >= 0;
}

/* Takes over text, which may be NULL (no memory). */
static int limits_add(struct limits_plan *p, const char *file, char *text, bool unlimited)
{
	_cleanup_str_ char *own = text;

	if (!own)
		return -ENOMEM;
	if (p->n == p->size) {
		size_t size = p->size ? 2 * p->size : 32;
		struct limits_write *more = reallocarray(p->writes, size, sizeof(*more));

		if (!more)
			return -ENOMEM;
		p->writes = more;
		p->size = size;
	}
	p->writes[p->n] = (struct limits_write){ .unlimited = unlimited };
	(void)str_copy(p->writes[p->n].file, LIMITS_FILE_SIZE, file);
	p->writes[p->n++].text = TAKE_PTR(own);
	return 0;
}

static const char *limits_word(uint64_t value, char buf[LIMITS_WORD_SIZE])
{
	if (value == LIMIT_MAX)
		return "max";
	(void)str_printf(buf, LIMITS_WORD_SIZE, "%" PRIu64, value);
	return buf;
}

static int limits_add_number(struct limits_plan *p, const char *file, const struct limit *l)
{
	char word[LIMITS_WORD_SIZE];

	if (!l->set)
		return 0;
	return limits_add(p, file, strdup(limits_word(l->value, word)), l->value == LIMIT_MAX);
}

/* "QUOTA PERIOD"; what is not said stays as it is. */
static int limits_add_cpu_max(struct limits_plan *p, const struct isolate_limits *l)
{
	_cleanup_str_ char *old = NULL;
	char word[LIMITS_WORD_SIZE];
	const char *quota = "max";
	int r;

	if (!l->cpu_quota.set && !l->cpu_period.set)
		return 0;
	if (l->cpu_quota.set) {
		quota = limits_word(l->cpu_quota.value, word);
	} else {
		old = limits_read(p->dir_fd, "cpu.max", &r);
		/* The write says what is wrong with a group that has no such file. */
		if (r < 0 && r != -ENOENT)
			return r;
		if (old) {
			old[strcspn(old, " \n")] = '\0';
			quota = old;
		}
	}
	return limits_add(p, "cpu.max",
			  l->cpu_period.set ? str_format("%s %" PRIu64, quota, l->cpu_period.value)
					    : strdup(quota),
			  str_eq(quota, "max"));
}

static int limits_add_cpu(struct limits_plan *p, const struct isolate_limits *l)
{
	bool both = l->cpu_burst.set && l->cpu_quota.set;
	int r = limits_add_number(p, "cpu.idle", &l->cpu_idle);

	if (r >= 0)
		r = limits_add_number(p, "cpu.weight", &l->cpu_weight);
	/* The burst is above neither the old quota nor the new one: it is nothing while that
	 * changes. */
	if (r >= 0 && both)
		r = limits_add(p, "cpu.max.burst", strdup("0"), l->cpu_burst.value == 0);
	if (r >= 0)
		r = limits_add_cpu_max(p, l);
	if (r >= 0 && l->cpu_burst.set && !(both && l->cpu_burst.value == 0))
		r = limits_add_number(p, "cpu.max.burst", &l->cpu_burst);
	return r;
}

static int limits_add_cpuset(struct limits_plan *p, const struct isolate_limits *l)
{
	int r = l->cpuset_cpus ? limits_add(p, "cpuset.cpus", strdup(l->cpuset_cpus), false) : 0;

	if (r >= 0 && l->cpuset_mems)
		r = limits_add(p, "cpuset.mems", strdup(l->cpuset_mems), false);
	return r;
}

/* BFQ's file counts as blkio did. device: "default" or "MAJOR:MINOR". */
static int limits_add_io_weight(struct limits_plan *p, const char *device, const struct limit *l)
{
	bool bfq = limits_has_file(p, "io.bfq.weight");

	if (!l->set)
		return 0;
	return limits_add(
		p, bfq ? "io.bfq.weight" : "io.weight",
		str_format("%s %" PRIu64, device, bfq ? l->value : limits_io_weight(l->value)),
		false);
}

static int limits_add_io_max(struct limits_plan *p, const char *device, const struct limit_io *io)
{
	const struct {
		const char *key;
		const struct limit *limit;
	} rates[] = { { "rbps", &io->rbps },
		      { "wbps", &io->wbps },
		      { "riops", &io->riops },
		      { "wiops", &io->wiops } };
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	bool unlimited = true, any = false;
	char word[LIMITS_WORD_SIZE];
	int r = buf_add_str(&b, device);

	for (size_t i = 0; i < ARRAY_SIZE(rates) && r >= 0; i++) {
		const struct limit *l = rates[i].limit;

		if (!l->set)
			continue;
		any = true;
		unlimited = unlimited && l->value == LIMIT_MAX;
		r = buf_addf(&b, " %s=%s", rates[i].key, limits_word(l->value, word));
	}
	if (r < 0 || !any)
		return r;
	return limits_add(p, "io.max", buf_take_str(&b), unlimited);
}

static int limits_add_io(struct limits_plan *p, const struct isolate_limits *l)
{
	int r = limits_add_io_weight(p, "default", &l->blkio_weight);

	for (size_t i = 0; i < l->n_io && r >= 0; i++) {
		char device[LIMITS_WORD_SIZE];

		(void)str_printf(device, sizeof(device), "%u:%u", l->io[i].major, l->io[i].minor);
		r = limits_add_io_weight(p, device, &l->io[i].weight);
		if (r >= 0)
			r = limits_add_io_max(p, device, &l->io[i]);
	}
	return r;
}

static int limits_add_hugetlb(struct limits_plan *p, const struct limit_hugetlb *h)
{
	static const char *const kinds[] = { ".rsvd", "" };
	char word[LIMITS_WORD_SIZE];
	char file[LIMITS_FILE_SIZE];
	int r = 0;

	/* Reservations too, where the kernel counts them: else a program is killed by SIGBUS for
	 * pages that mmap() promised. */
	for (size_t i = 0; i < ARRAY_SIZE(kinds) && r >= 0; i++) {
		(void)str_printf(file, sizeof(file), "hugetlb.%s%s.max", h->size, kinds[i]);
		if (!*kinds[i] || limits_has_file(p, file))
			r = limits_add(p, file, strdup(limits_word(h->max, word)),
				       h->max == LIMIT_MAX);
	}
	return r;
}

static int limits_add_rdma(struct limits_plan *p, const struct limit_rdma *d)
{
	char handles[LIMITS_WORD_SIZE], objects[LIMITS_WORD_SIZE];

	if (!d->handles.set && !d->objects.set)
		return 0;
	return limits_add(p, "rdma.max",
			  str_format("%s%s%s%s%s", d->device, d->handles.set ? " hca_handle=" : "",
				     d->handles.set ? limits_word(d->handles.value, handles) : "",
				     d->objects.set ? " hca_object=" : "",
				     d->objects.set ? limits_word(d->objects.value, objects) : ""),
			  false);
}

static int limits_add_named(struct limits_plan *p, const struct isolate_limits *l)
{
	char word[LIMITS_WORD_SIZE];
	int r = 0;

	for (size_t i = 0; i < l->n_hugetlb && r >= 0; i++)
		r = limits_add_hugetlb(p, &l->hugetlb[i]);
	for (size_t i = 0; i < l->n_rdma && r >= 0; i++)
		r = limits_add_rdma(p, &l->rdma[i]);
	for (size_t i = 0; i < l->n_misc && r >= 0; i++)
		r = limits_add(
			p, "misc.max",
			str_format("%s %s", l->misc[i].name, limits_word(l->misc[i].max, word)),
			l->misc[i].max == LIMIT_MAX);
	return r;
}

static int limits_add_memory(struct limits_plan *p, const struct isolate_limits *l)
{
	const struct {
		const char *file;
		const struct limit *limit;
	} files[] = { { "memory.oom.group", &l->memory_oom_group },
		      { "memory.min", &l->memory_min },
		      { "memory.low", &l->memory_low },
		      { "memory.high", &l->memory_high },
		      { "memory.swap.max", &l->memory_swap_max },
		      { "memory.max", &l->memory_max } };
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(files) && r >= 0; i++)
		r = limits_add_number(p, files[i].file, files[i].limit);
	return r;
}

static int limits_add_unified(struct limits_plan *p, const struct limit_file *f)
{
	_cleanup_str_ char *text = strdup(f->value);
	char *save = NULL;
	int r = text ? 0 : -ENOMEM;

	if (!text)
		return r;
	for (char *line = strtok_r(text, "\n", &save); line && r >= 0;
	     line = strtok_r(NULL, "\n", &save))
		r = limits_add(p, f->file, strdup(line), false);
	return r;
}

static int limits_plan_make(struct limits_plan *p, const struct isolate_limits *l)
{
	int r = limits_add_cpuset(p, l);

	if (r >= 0)
		r = limits_add_cpu(p, l);
	if (r >= 0)
		r = limits_add_number(p, "pids.max", &l->pids_max);
	if (r >= 0)
		r = limits_add_io(p, l);
	if (r >= 0)
		r = limits_add_named(p, l);
	if (r >= 0)
		r = limits_add_memory(p, l);
	for (size_t i = 0; i < l->n_unified && r >= 0; i++)
		r = limits_add_unified(p, &l->unified[i]);
	return r;
}

/* Whether all files are there. Those that are missing and limit nothing leave the list. */
static int limits_plan_look(struct limits_plan *p, struct error *err)
{
	size_t kept = 0;
	int r = 0;

	for (size_t i = 0; i < p->n; i++) {
		struct limits_write *w = &p->writes[i];
		int c = cgroup_controller_of(w->file);

		if (limits_has_file(p, w->file) || r < 0) {
			p->writes[kept++] = *w;
			continue;
		}
		if (w->unlimited) {
			free(w->text);
			continue;
		}
		r = c >= 0 ? cgroup_refuse_controller(p->dir_fd, (enum cgroup_controller)c, err)
			   : error_refuse(err, ERROR_PRECONDITION,
					  "this kernel does not have that");
		r = error_wrap_field(err, r, w->file);
		p->writes[kept++] = *w;
	}
	p->n = kept;
	return r;
}

static int limits_check_use(int dir_fd, const struct isolate_limits *l, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	uint64_t used;
	int r;

	if (!l->memory_check || !l->memory_max.set || l->memory_max.value == LIMIT_MAX)
		return 0;
	text = limits_read(dir_fd, "memory.current", &r);
	if (!text)
		return error_set(err, r, "read memory.current");
	if (!flat_number(text, &used) || used <= l->memory_max.value)
		return 0;
	return error_field(err, ERROR_PRECONDITION, "memory.max",
			   "the group uses %" PRIu64 " bytes already", used);
}

/* Files with a line for each device or resource: what the first word of a line names. */
static bool limits_is_keyed(const char *file)
{
	return str_has_prefix(file, "io.") || str_eq(file, "rdma.max") || str_eq(file, "misc.max");
}

/* The line of `old` that begins as `text` does, or what says that there was none. */
static char *limits_undo_line(const char *file, const char *old, const char *text)
{
	size_t len = strcspn(text, " ");

	for (const char *line = old; *line; line += strcspn(line, "\n"), line += *line == '\n')
		if (strncmp(line, text, len) == 0 && line[len] == ' ')
			return strndup(line, strcspn(line, "\n"));
	if (str_eq(file, "io.max"))
		return str_format("%.*s rbps=max wbps=max riops=max wiops=max", (int)len, text);
	return str_format("%.*s default", (int)len, text);
}

static char *limits_undo_of(const char *file, const char *old, const char *text)
{
	if (limits_is_keyed(file))
		return limits_undo_line(file, old, text);
	/* An empty list is set by an empty line: no byte is no write. */
	return strdup(*old ? old : "\n");
}

static bool limits_is_list(const char *file)
{
	return str_eq(file, "cpuset.cpus") || str_eq(file, "cpuset.mems");
}

/* The numbers that are in effect, for the caller to free; NULL with errno's number in *ret. */
static char *limits_effective(int dir_fd, const char *list, int *ret)
{
	char file[LIMITS_FILE_SIZE + 16];
	char *text;

	(void)str_printf(file, sizeof(file), "%s.effective", list);
	text = limits_read(dir_fd, file, ret);
	if (text)
		text[strcspn(text, "\n")] = '\0';
	return text;
}

/* The kernel takes a list, and uses what there is of it; but numbers that the machine cannot have
 * are ERANGE (refused: it did so). */
static int limits_check_list(int dir_fd, const struct limits_write *w, bool refused,
			     struct error *err)
{
	_cleanup_str_ char *here = NULL;
	int r;

	here = limits_effective(dir_fd, w->file, &r);
	if (!here)
		return error_set(err, r, "%s: read what is in effect", w->file);
	if (!refused && flat_list_within(w->text, here))
		return 0;
	return error_field(err, ERROR_PRECONDITION, w->file, "of %s only %s are here", w->text,
			   *here ? here : "none");
}

/* Whether the kernel says that it does not take this, here or at all; anything else is a fault. */
static bool limits_is_refusal(int r)
{
	static const int refusals[] = { EINVAL, ERANGE, EBUSY, ENODEV, ENXIO,     ENOSPC,
					EPERM,  EACCES, E2BIG, EEXIST, EOPNOTSUPP };

	for (size_t i = 0; i < ARRAY_SIZE(refusals); i++)
		if (r == -refusals[i])
			return true;
	return false;
}

static int limits_write_one(int dir_fd, struct limits_write *w, struct error *err)
{
	_cleanup_str_ char *old = NULL;
	bool list = limits_is_list(w->file);
	int r;

	old = limits_read(dir_fd, w->file, &r);
	if (!old)
		return error_set(err, r, "%s: read", w->file);
	w->undo = limits_undo_of(w->file, old, w->text);
	if (!w->undo)
		return error_set(err, -ENOMEM, "%s", w->file);
	r = fd_write_file(dir_fd, w->file, w->text);
	if (r >= 0)
		return list ? limits_check_list(dir_fd, w, false, err) : 0;
	free(TAKE_PTR(w->undo));
	if (list && r == -ERANGE)
		return limits_check_list(dir_fd, w, true, err);
	if (limits_is_refusal(r))
		return error_field(err, ERROR_PRECONDITION, w->file,
				   "the kernel does not take \"%.128s\": %s", w->text,
				   strerror(-r));
	return error_wrap_field(err, error_set(err, r, "write \"%.128s\"", w->text), w->file);
}

static void limits_take_back(struct limits_plan *p)
{
	for (size_t i = p->n; i > 0; i--)
		if (p->writes[i - 1].undo)
			(void)fd_write_file(p->dir_fd, p->writes[i - 1].file,
					    p->writes[i - 1].undo);
}

int limits_apply(int cgroup_fd, const struct isolate_limits *limits, struct error *err)
{
	_cleanup_(limits_plan_done) struct limits_plan p = { .dir_fd = cgroup_fd };
	int r = limits_check(limits, err);

	if (r < 0)
		return r;
	r = limits_plan_make(&p, limits);
	if (r < 0)
		return error_set(err, r, "limits of a cgroup");
	r = limits_plan_look(&p, err);
	if (r >= 0)
		r = limits_check_use(cgroup_fd, limits, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < p.n && r >= 0; i++)
		r = limits_write_one(cgroup_fd, &p.writes[i], err);
	if (r < 0)
		limits_take_back(&p);
	return r;
}
