/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/walls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "isolate/ext4_file.h"

/* Keeps a word for the messages. */
static char *walls_keep(struct walls *w, char *word)
{
	w->words = xrealloc(w->words, w->n_words + 1, sizeof(*w->words));
	w->words[w->n_words++] = word;
	return word;
}

/* "64m", "1G", "4096", "16MiB": as podman and docker take it, and as we do elsewhere. */
int walls_size(const char *text, uint64_t *ret)
{
	static const char units[] = "kmgt";
	size_t len = strlen(text);
	_cleanup_str_ char *number = NULL;
	const char *unit;
	int shift, r;

	if (parse_size(text, ret) == 0)
		return 0;
	if (len > 1 && (text[len - 1] == 'b' || text[len - 1] == 'B'))
		len--;
	if (len < 2)
		return -EINVAL;
	unit = strchr(units, text[len - 1] | 0x20);
	if (!unit || !*unit)
		return -EINVAL;
	shift = 10 * ((int)(unit - units) + 1);
	number = xformat("%.*s", (int)len - 1, text);
	r = parse_u64(number, 0, UINT64_MAX >> shift, ret);
	*ret <<= r == 0 ? shift : 0;
	return r;
}

static int walls_octal(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long value = strtoul(text, &end, 8);

	if (!*text || *end || value > 07777)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

/* One option behind the last ':'; of a tmpfs where `fs` is not NULL. */
static int walls_option(Aurae__Runtime__V0__Mount *m, Aurae__Runtime__V0__Tmpfs *fs,
			const char *word)
{
	if (str_eq(word, "noexec"))
		m->no_exec = true;
	else if (fs && str_has_prefix(word, "size="))
		return walls_size(word + strlen("size="), &fs->size);
	else if (fs && str_has_prefix(word, "mode="))
		return walls_octal(word + strlen("mode="), &fs->mode);
	else if (!fs && (str_eq(word, "ro") || str_eq(word, "readonly")))
		m->read_only = true;
	/* What each of them is anyway. */
	else if (!str_eq(word, "rw") && !str_eq(word, "nosuid") && !str_eq(word, "nodev") &&
		 (fs || (!str_eq(word, "private") && !str_eq(word, "rprivate") &&
			 !str_eq(word, "rbind"))))
		return -EINVAL;
	return 0;
}

static int walls_options(Aurae__Runtime__V0__Mount *m, Aurae__Runtime__V0__Tmpfs *fs, char *words,
			 const char *option, struct error *err)
{
	char *rest = NULL;

	for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest))
		if (walls_option(m, fs, word) < 0)
			return error_refuse(err, ERROR_INVALID, "--%s: \"%s\" is no option of it",
					    option, word);
	return 0;
}

static int walls_volume(struct walls *w, Aurae__Runtime__V0__Mount *m, const char *value,
			struct error *err)
{
	char *source = walls_keep(w, xstrdup(value));
	char *target = strchr(source, ':'), *options, *real;

	if (!target || target == source || !target[1])
		return error_refuse(err, ERROR_INVALID,
				    "--volume is SOURCE:TARGET[:ro,noexec], not \"%s\"", value);
	*target++ = '\0';
	options = strchr(target, ':');
	if (options)
		*options++ = '\0';
	m->source = source;
	m->target = target;
	/* The daemon has another working directory, and follows no link: it is for us to name what
	 * the user means. */
	real = realpath(source, NULL);
	if (!real && (source[0] != '/' || errno != ENOENT))
		return error_set(err, -errno, "--volume: find %s", source);
	if (real)
		m->source = walls_keep(w, real);
	return options ? walls_options(m, NULL, options, "volume", err) : 0;
}

static int walls_tmpfs(struct walls *w, Aurae__Runtime__V0__Mount *m, Aurae__Runtime__V0__Tmpfs *fs,
		       const char *value, struct error *err)
{
	char *target = walls_keep(w, xstrdup(value));
	char *options = strchr(target, ':');

	if (options)
		*options++ = '\0';
	m->target = target;
	m->tmpfs = fs;
	return options ? walls_options(m, fs, options, "tmpfs", err) : 0;
}

static size_t walls_count(const struct args *a, const char *name)
{
	size_t pos = 0, n = 0;

	while (args_next(a, name, &pos))
		n++;
	return n;
}

static int walls_shm(Aurae__Runtime__V0__Mount *m, Aurae__Runtime__V0__Tmpfs *fs, const char *value,
		     struct error *err)
{
	static char target[] = "/dev/shm";

	m->target = target;
	m->tmpfs = fs;
	if (walls_size(value, &fs->size) < 0 || fs->size == 0)
		return error_refuse(err, ERROR_INVALID,
				    "--shm-size is a size such as 64m or 1g, not \"%s\"", value);
	return 0;
}

static int walls_take_mounts(struct walls *w, const struct args *a, struct error *err)
{
	size_t most = walls_count(a, "volume") + walls_count(a, "tmpfs"), pos = 0;
	const char *value;
	int r = 0;

	most += args_value(a, "shm-size") != NULL;
	w->mounts = xrealloc(NULL, most + 1, sizeof(*w->mounts));
	w->list = xrealloc(NULL, most + 1, sizeof(*w->list));
	w->tmpfs = xrealloc(NULL, most + 1, sizeof(*w->tmpfs));
	for (size_t i = 0; i < most; i++) {
		aurae__runtime__v0__mount__init(&w->mounts[i]);
		aurae__runtime__v0__tmpfs__init(&w->tmpfs[i]);
		w->list[i] = &w->mounts[i];
	}
	for (value = args_next(a, "volume", &pos); value && r == 0;
	     value = args_next(a, "volume", &pos))
		r = walls_volume(w, &w->mounts[w->n++], value, err);
	pos = 0;
	for (value = args_next(a, "tmpfs", &pos); value && r == 0;
	     value = args_next(a, "tmpfs", &pos)) {
		r = walls_tmpfs(w, &w->mounts[w->n], &w->tmpfs[w->n], value, err);
		w->n++;
	}
	value = args_value(a, "shm-size");
	if (value && r == 0) {
		r = walls_shm(&w->mounts[w->n], &w->tmpfs[w->n], value, err);
		w->n++;
	}
	return r;
}

/* ---- limits ---- */

/* "none" says that there is no limit. */
static int limit_size(const char *text, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return str_eq(text, "none") ? 0 : walls_size(text, ret);
}

static int limit_number(const char *text, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return str_eq(text, "none") ? 0 : parse_u64(text, 1, UINT32_MAX, ret);
}

/* "1.5" CPUs as microseconds of every 100 milliseconds. */
static int limit_cpus(const char *text, Aurae__Runtime__V0__Resources *to)
{
	const char *dot = strchr(text, '.');
	_cleanup_str_ char *whole =
		xformat("%.*s", dot ? (int)(dot - text) : (int)strlen(text), text);
	uint64_t cpus, thousandths = 0;
	char digits[] = "000";

	if (str_eq(text, "none")) {
		to->cpu_quota = -1;
		return 0;
	}
	if (dot && (strlen(dot + 1) < 1 || strlen(dot + 1) > 3))
		return -EINVAL;
	if (dot)
		memcpy(digits, dot + 1, strlen(dot + 1));
	if (parse_u64(*whole ? whole : "0", 0, 1 << 20, &cpus) < 0 ||
	    strspn(digits, "0123456789") != 3)
		return -EINVAL;
	for (size_t i = 0; i < 3; i++)
		thousandths = 10 * thousandths + (uint64_t)(digits[i] - '0');
	to->cpu_quota = (int64_t)((1000 * cpus + thousandths) * 100);
	to->cpu_period = 100000;
	return to->cpu_quota >= 1000 ? 0 : -EINVAL;
}

static int limit_swap(const char *text, Aurae__Runtime__V0__Resources *to)
{
	to->no_swap = str_eq(text, "0");
	return to->no_swap ? 0 : limit_size(text, &to->memory_swap);
}

static int limit_memory(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_size(text, &to->memory);
}

static int limit_low(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_size(text, &to->memory_low);
}

static int limit_high(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_size(text, &to->memory_high);
}

static int limit_weight(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return parse_u64(text, 1, 10000, &to->cpu_weight);
}

static int limit_pids(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_number(text, &to->pids);
}

static int limit_cpuset(const char *text, Aurae__Runtime__V0__Resources *to)
{
	to->cpuset_cpus = (char *)(uintptr_t)text;
	return 0;
}

static int limit_mems(const char *text, Aurae__Runtime__V0__Resources *to)
{
	to->cpuset_mems = (char *)(uintptr_t)text;
	return 0;
}

static const struct {
	const char *option, *form;
	int (*take)(const char *text, Aurae__Runtime__V0__Resources *to);
} walls_limit_options[] = {
	{ "memory", "a size such as 64m, or none", limit_memory },
	{ "memory-low", "a size such as 64m, or none", limit_low },
	{ "memory-high", "a size such as 64m, or none", limit_high },
	{ "swap", "a size such as 64m, 0 or none", limit_swap },
	{ "cpus", "a number such as 0.5 or 2, from 0.01, or none", limit_cpus },
	{ "cpu-weight", "1 to 10000", limit_weight },
	{ "cpuset-cpus", "a list such as 0-3,7", limit_cpuset },
	{ "cpuset-mems", "a list such as 0,1", limit_mems },
	{ "pids-limit", "a number, or none", limit_pids },
};

int walls_limits(Aurae__Runtime__V0__Resources **ret, Aurae__Runtime__V0__Resources *to,
		 const struct args *a, struct error *err)
{
	aurae__runtime__v0__resources__init(to);
	*ret = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(walls_limit_options); i++) {
		const char *text = args_value(a, walls_limit_options[i].option);

		if (!text)
			continue;
		if (walls_limit_options[i].take(text, to) < 0)
			return error_refuse(err, ERROR_INVALID, "--%s is %s, not \"%s\"",
					    walls_limit_options[i].option,
					    walls_limit_options[i].form, text);
		*ret = to;
	}
	return 0;
}

static int walls_disk(Aurae__Runtime__V0__Container *to, const struct args *a, struct error *err)
{
	const char *text = args_value(a, "disk");

	if (text && (walls_size(text, &to->disk) < 0 || to->disk < EXT4_FILE_MIN ||
		     to->disk > EXT4_FILE_MAX))
		return error_refuse(err, ERROR_INVALID,
				    "--disk is a size of 16m to 1t, such as 64m, not \"%s\"", text);
	return 0;
}

int walls_take(struct walls *w, Aurae__Runtime__V0__Container *to, const struct args *a,
	       struct error *err)
{
	int r = walls_take_mounts(w, a, err);

	to->mounts = w->list;
	to->n_mounts = w->n;
	to->read_only_root = args_flag(a, "read-only");
	if (r == 0)
		r = walls_disk(to, a, err);
	if (r == 0)
		r = security_options_take(&w->security, to, a, err);
	return r < 0 ? r : walls_limits(&to->resources, &w->resources, a, err);
}

void walls_done(struct walls *w)
{
	for (size_t i = 0; i < w->n_words; i++)
		free(w->words[i]);
	free(w->words);
	free(w->mounts);
	free(w->list);
	free(w->tmpfs);
	security_options_done(&w->security);
	*w = (struct walls)WALLS_INIT;
}
