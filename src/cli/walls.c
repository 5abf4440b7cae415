/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/walls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/parse.h"
#include "base/str.h"
#include "cli/alloc.h"

/* Keeps a word for the messages. */
static char *walls_keep(struct walls *w, char *word)
{
	w->words = xrealloc(w->words, w->n_words + 1, sizeof(*w->words));
	w->words[w->n_words++] = word;
	return word;
}

/* "64m", "1G", "4096", "16MiB": as podman and docker take it, and as we do elsewhere. */
static int walls_size(const char *text, uint64_t *ret)
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

static int walls_take_mounts(struct walls *w, const struct args *a, struct error *err)
{
	size_t most = walls_count(a, "volume") + walls_count(a, "tmpfs"), pos = 0;
	const char *value;
	int r = 0;

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
	return r;
}

int walls_take(struct walls *w, Aurae__Runtime__V0__Container *to, const struct args *a,
	       struct error *err)
{
	int r = walls_take_mounts(w, a, err);

	to->mounts = w->list;
	to->n_mounts = w->n;
	to->read_only_root = args_flag(a, "read-only");
	return r;
}

void walls_done(struct walls *w)
{
	for (size_t i = 0; i < w->n_words; i++)
		free(w->words[i]);
	free(w->words);
	free(w->mounts);
	free(w->list);
	free(w->tmpfs);
	*w = (struct walls)WALLS_INIT;
}
