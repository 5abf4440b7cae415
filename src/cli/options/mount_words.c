/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/mount_words.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"

/* ---- values ---- */

/* Keeps a word for the messages. */
static char *mount_keep(struct mount_words *w, char *word)
{
	w->words = xrealloc(w->words, w->n_words + 1, sizeof(*w->words));
	w->words[w->n_words++] = word;
	return word;
}

/* As podman and docker take it, and as we do elsewhere. */
int mount_words_size(const char *text, uint64_t *ret)
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

static int mount_octal(const char *text, uint32_t *ret)
{
	char *end;
	unsigned long value = strtoul(text, &end, 8);

	if (!*text || *end || value > 07777)
		return -EINVAL;
	*ret = (uint32_t)value;
	return 0;
}

/* A flag alone is true. */
static int mount_truth(const char *text, protobuf_c_boolean *ret)
{
	if (!text || str_eq(text, "true") || str_eq(text, "1"))
		*ret = true;
	else if (str_eq(text, "false") || str_eq(text, "0"))
		*ret = false;
	else
		return -EINVAL;
	return 0;
}

/* ---- one option ---- */

enum mount_kind { MOUNT_OF_BIND = 1, MOUNT_OF_VOLUME = 2, MOUNT_OF_TMPFS = 4, MOUNT_OF_IMAGE = 8 };
#define MOUNT_OF_SOURCE (MOUNT_OF_BIND | MOUNT_OF_VOLUME)
#define MOUNT_OF_ANY (MOUNT_OF_SOURCE | MOUNT_OF_TMPFS | MOUNT_OF_IMAGE)

struct mount_target {
	Aurae__Runtime__V0__Mount *m;
	Aurae__Runtime__V0__Tmpfs *fs;
};

static int mount_set_ro(struct mount_target *t, char *value)
{
	return mount_truth(value, &t->m->read_only);
}

static int mount_set_rw(struct mount_target *t, char *value)
{
	t->m->read_only = false;
	return value ? -EINVAL : 0;
}

static int mount_set_noexec(struct mount_target *t, char *value)
{
	return mount_truth(value, &t->m->no_exec);
}

static int mount_set_nothing(struct mount_target *t, char *value)
{
	return value ? -EINVAL : 0;
}

static int mount_set_ignored(struct mount_target *t, char *value)
{
	return value ? 0 : -EINVAL;
}

static int mount_set_nocopy(struct mount_target *t, char *value)
{
	return mount_truth(value, &t->m->no_copy);
}

static int mount_set_chown(struct mount_target *t, char *value)
{
	return mount_truth(value, &t->m->chown);
}

static int mount_set_sub_path(struct mount_target *t, char *value)
{
	if (str_empty(value))
		return -EINVAL;
	t->m->sub_path = value;
	return 0;
}

static int mount_set_propagation(struct mount_target *t, char *value)
{
	if (str_empty(value))
		return -EINVAL;
	t->m->propagation = value;
	return 0;
}

static int mount_set_relabel(struct mount_target *t, char *value)
{
	if (str_empty(value))
		return -EINVAL;
	t->m->relabel = value;
	return 0;
}

static int mount_set_shared_label(struct mount_target *t, char *value)
{
	static char word[] = "shared";

	t->m->relabel = word;
	return value ? -EINVAL : 0;
}

static int mount_set_private_label(struct mount_target *t, char *value)
{
	static char word[] = "private";

	t->m->relabel = word;
	return value ? -EINVAL : 0;
}

static int mount_set_size(struct mount_target *t, char *value)
{
	return value ? mount_words_size(value, &t->fs->size) : -EINVAL;
}

static int mount_set_mode(struct mount_target *t, char *value)
{
	return value ? mount_octal(value, &t->fs->mode) : -EINVAL;
}

static int mount_set_uid(struct mount_target *t, char *value)
{
	return value ? parse_u32(value, &t->fs->uid) : -EINVAL;
}

static int mount_set_gid(struct mount_target *t, char *value)
{
	return value ? parse_u32(value, &t->fs->gid) : -EINVAL;
}

static int mount_set_target(struct mount_target *t, char *value)
{
	if (str_empty(value))
		return -EINVAL;
	t->m->target = value;
	return 0;
}

static int mount_set_source(struct mount_target *t, char *value)
{
	if (str_empty(value))
		return -EINVAL;
	t->m->source = value;
	return 0;
}

struct mount_option {
	const char *name;
	unsigned kinds;
	int (*set)(struct mount_target *t, char *value);
};

/* Behind the last ':' of --volume and --tmpfs. */
static const struct mount_option mount_flags[] = {
	{ "ro", MOUNT_OF_SOURCE, mount_set_ro },
	{ "readonly", MOUNT_OF_SOURCE, mount_set_ro },
	{ "rw", MOUNT_OF_ANY, mount_set_rw },
	{ "noexec", MOUNT_OF_ANY, mount_set_noexec },
	{ "exec", MOUNT_OF_ANY, mount_set_nothing },
	{ "nocopy", MOUNT_OF_VOLUME, mount_set_nocopy },
	{ "U", MOUNT_OF_SOURCE, mount_set_chown },
	{ "z", MOUNT_OF_SOURCE, mount_set_shared_label },
	{ "Z", MOUNT_OF_SOURCE, mount_set_private_label },
	{ "size", MOUNT_OF_TMPFS, mount_set_size },
	{ "mode", MOUNT_OF_TMPFS, mount_set_mode },
	{ "uid", MOUNT_OF_TMPFS, mount_set_uid },
	{ "gid", MOUNT_OF_TMPFS, mount_set_gid },
	/* What each of them is anyway. */
	{ "nosuid", MOUNT_OF_ANY, mount_set_nothing },
	{ "nodev", MOUNT_OF_ANY, mount_set_nothing },
	{ "rbind", MOUNT_OF_BIND, mount_set_nothing },
};

/* Of --mount, beside its type. */
static const struct mount_option mount_members[] = {
	{ "source", MOUNT_OF_SOURCE | MOUNT_OF_IMAGE, mount_set_source },
	{ "src", MOUNT_OF_SOURCE | MOUNT_OF_IMAGE, mount_set_source },
	{ "target", MOUNT_OF_ANY, mount_set_target },
	{ "dst", MOUNT_OF_ANY, mount_set_target },
	{ "destination", MOUNT_OF_ANY, mount_set_target },
	{ "readonly", MOUNT_OF_SOURCE | MOUNT_OF_IMAGE, mount_set_ro },
	{ "ro", MOUNT_OF_SOURCE | MOUNT_OF_IMAGE, mount_set_ro },
	{ "noexec", MOUNT_OF_ANY, mount_set_noexec },
	{ "bind-propagation", MOUNT_OF_BIND, mount_set_propagation },
	{ "volume-nocopy", MOUNT_OF_VOLUME, mount_set_nocopy },
	{ "volume-subpath", MOUNT_OF_VOLUME, mount_set_sub_path },
	{ "image-subpath", MOUNT_OF_IMAGE, mount_set_sub_path },
	{ "subpath", MOUNT_OF_VOLUME | MOUNT_OF_IMAGE, mount_set_sub_path },
	{ "tmpfs-size", MOUNT_OF_TMPFS, mount_set_size },
	{ "tmpfs-mode", MOUNT_OF_TMPFS, mount_set_mode },
	{ "relabel", MOUNT_OF_SOURCE, mount_set_relabel },
	{ "chown", MOUNT_OF_SOURCE, mount_set_chown },
	{ "U", MOUNT_OF_SOURCE, mount_set_chown },
	/* Says nothing on Linux. */
	{ "consistency", MOUNT_OF_ANY, mount_set_ignored },
};

static const char *const mount_propagations[] = {
	"private", "rprivate", "slave", "rslave", "shared", "rshared",
};

/* 0; -ENOENT: none of these; -EINVAL: its value is wrong. */
static int mount_set(struct mount_target *t, unsigned kind, const struct mount_option *options,
		     size_t n, const char *name, char *value)
{
	for (size_t i = 0; i < n; i++)
		if (options[i].kinds & kind && str_eq(options[i].name, name))
			return options[i].set(t, value);
	return -ENOENT;
}

static int mount_flag(struct mount_target *t, unsigned kind, char *word)
{
	char *value;

	for (size_t i = 0; kind == MOUNT_OF_BIND && i < ARRAY_SIZE(mount_propagations); i++) {
		if (!str_eq(word, mount_propagations[i]))
			continue;
		t->m->propagation = word;
		return 0;
	}
	value = strchr(word, '=');
	if (value)
		*value++ = '\0';
	return mount_set(t, kind, mount_flags, ARRAY_SIZE(mount_flags), word, value);
}

static int mount_all_flags(struct mount_words *w, struct mount_target *t, unsigned kind,
			   const char *text, const char *option, struct error *err)
{
	char *rest = NULL;
	char *words = mount_keep(w, xstrdup(text));

	for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		_cleanup_str_ char *whole = xstrdup(word);

		if (mount_flag(t, kind, word) < 0)
			return error_refuse(err, ERROR_INVALID, "--%s: \"%s\" is no option of %s",
					    option, whole,
					    kind == MOUNT_OF_TMPFS    ? "a tmpfs"
					    : kind == MOUNT_OF_VOLUME ? "a volume"
								      : "a directory");
	}
	return 0;
}

/* ---- the options of the command line ---- */

/* The daemon has another working directory, and follows no link: it is for us to name what the user
 * means. */
static int mount_real(struct mount_words *w, Aurae__Runtime__V0__Mount *m, const char *option,
		      struct error *err)
{
	char *real = realpath(m->source, NULL);

	if (!real && (m->source[0] != '/' || errno != ENOENT))
		return error_set(err, -errno, "--%s: find %s", option, m->source);
	if (real)
		m->source = mount_keep(w, real);
	return 0;
}

static bool mount_is_path(const char *source)
{
	return strchr(source, '/') || str_eq(source, ".") || str_eq(source, "..");
}

static int mount_volume(struct mount_words *w, struct mount_target *t, const char *value,
			struct error *err)
{
	static char none[] = "";
	char *source = mount_keep(w, xstrdup(value));
	char *target = strchr(source, ':'), *options = NULL;
	Aurae__Runtime__V0__Mount *m = t->m;
	unsigned kind = MOUNT_OF_VOLUME;
	int r = 0;

	if (!target && source[0] == '/') {
		m->anonymous = true;
		m->target = source;
		return 0;
	}
	if (!target || target == source || !target[1])
		return error_refuse(err, ERROR_INVALID,
				    "--volume is SOURCE:TARGET[:OPTIONS], where SOURCE is a path "
				    "with a '/' or the name of a volume, or TARGET alone, not "
				    "\"%s\"",
				    value);
	*target++ = '\0';
	options = strchr(target, ':');
	if (options)
		*options++ = '\0';
	m->target = target;
	if (mount_is_path(source)) {
		kind = MOUNT_OF_BIND;
		m->source = source;
		r = mount_real(w, m, "volume", err);
	} else {
		m->source = none;
		m->volume = source;
	}
	return r < 0 || !options ? r : mount_all_flags(w, t, kind, options, "volume", err);
}

static int mount_tmpfs(struct mount_words *w, struct mount_target *t, const char *value,
		       struct error *err)
{
	char *target = mount_keep(w, xstrdup(value));
	char *options = strchr(target, ':');

	if (options)
		*options++ = '\0';
	t->m->target = target;
	t->m->tmpfs = t->fs;
	return options ? mount_all_flags(w, t, MOUNT_OF_TMPFS, options, "tmpfs", err) : 0;
}

static int mount_shm(struct mount_words *w, struct mount_target *t, const char *value,
		     struct error *err)
{
	static char target[] = "/dev/shm";

	t->m->target = target;
	t->m->tmpfs = t->fs;
	if (mount_words_size(value, &t->fs->size) < 0 || t->fs->size == 0)
		return error_refuse(err, ERROR_INVALID,
				    "--shm-size is a size such as 64m or 1g, not \"%s\"", value);
	return 0;
}

/* "Europe/Berlin", or "local": that of the node. */
static int mount_zone(struct mount_words *w, struct mount_target *t, const char *value,
		      struct error *err)
{
	static char target[] = "/etc/localtime", local[] = "/etc/localtime";

	if (!*value || value[0] == '/' || str_eq(value, "..") || str_has_prefix(value, "../") ||
	    strstr(value, "/../") || str_has_suffix(value, "/.."))
		return error_refuse(err, ERROR_INVALID,
				    "--tz is a time zone such as Europe/Berlin, or local, not "
				    "\"%s\"",
				    value);
	t->m->target = target;
	t->m->read_only = true;
	t->m->source = str_eq(value, "local")
			       ? local
			       : mount_keep(w, xformat("/usr/share/zoneinfo/%s", value));
	return mount_real(w, t->m, "tz", err);
}

/* "type=" may stand anywhere; without it, it is a volume. */
static int mount_type(const char *text, unsigned *ret, struct error *err)
{
	static const struct {
		const char *word;
		unsigned kind;
	} types[] = { { "bind", MOUNT_OF_BIND },
		      { "volume", MOUNT_OF_VOLUME },
		      { "tmpfs", MOUNT_OF_TMPFS },
		      { "image", MOUNT_OF_IMAGE } };
	_cleanup_str_ char *words = xstrdup(text);
	char *rest = NULL;

	*ret = MOUNT_OF_VOLUME;
	for (char *word = strtok_r(words, ",", &rest); word; word = strtok_r(NULL, ",", &rest)) {
		bool known = false;

		if (!str_has_prefix(word, "type="))
			continue;
		for (size_t i = 0; i < ARRAY_SIZE(types); i++) {
			if (!str_eq(word + strlen("type="), types[i].word))
				continue;
			*ret = types[i].kind;
			known = true;
		}
		if (!known)
			return error_refuse(err, ERROR_INVALID,
					    "--mount: \"%s\" is none of type=bind, type=volume, "
					    "type=tmpfs and type=image",
					    word);
	}
	return 0;
}

static int mount_member(struct mount_target *t, unsigned kind, char *word, struct error *err)
{
	_cleanup_str_ char *whole = xstrdup(word);
	char *value = strchr(word, '=');
	int r;

	if (value)
		*value++ = '\0';
	if (str_eq(word, "type"))
		return 0;
	r = mount_set(t, kind, mount_members, ARRAY_SIZE(mount_members), word, value);
	if (r == -ENOENT)
		return error_refuse(err, ERROR_INVALID, "--mount: \"%s\" is no member of type=%s",
				    whole,
				    kind == MOUNT_OF_TMPFS    ? "tmpfs"
				    : kind == MOUNT_OF_VOLUME ? "volume"
				    : kind == MOUNT_OF_IMAGE  ? "image"
							      : "bind");
	return r < 0 ? error_refuse(err, ERROR_INVALID, "--mount: \"%s\" has a wrong value", whole)
		     : 0;
}

static int mount_finish(struct mount_words *w, struct mount_target *t, unsigned kind,
			struct error *err)
{
	static char none[] = "";
	Aurae__Runtime__V0__Mount *m = t->m;

	if (str_empty(m->target))
		return error_refuse(err, ERROR_INVALID, "--mount: target=PATH is missing");
	if (kind == MOUNT_OF_TMPFS) {
		m->tmpfs = t->fs;
	} else if (kind == MOUNT_OF_VOLUME) {
		m->anonymous = str_empty(m->source);
		m->volume = m->source;
		m->source = none;
	} else if (str_empty(m->source)) {
		return error_refuse(err, ERROR_INVALID, "--mount: source=%s is missing of type=%s",
				    kind == MOUNT_OF_IMAGE ? "IMAGE" : "PATH",
				    kind == MOUNT_OF_IMAGE ? "image" : "bind");
	} else if (kind == MOUNT_OF_IMAGE) {
		m->image = m->source;
		m->source = none;
	} else {
		return mount_real(w, m, "mount", err);
	}
	return 0;
}

static int mount_mount(struct mount_words *w, struct mount_target *t, const char *value,
		       struct error *err)
{
	char *words = mount_keep(w, xstrdup(value)), *rest = NULL;
	unsigned kind;
	int r = mount_type(value, &kind, err);

	for (char *word = strtok_r(words, ",", &rest); word && r == 0;
	     word = strtok_r(NULL, ",", &rest))
		r = mount_member(t, kind, word, err);
	return r < 0 ? r : mount_finish(w, t, kind, err);
}

static const struct {
	const char *option;
	int (*take)(struct mount_words *w, struct mount_target *t, const char *value,
		    struct error *err);
} mount_options[] = {
	{ "volume", mount_volume }, { "mount", mount_mount }, { "tmpfs", mount_tmpfs },
	{ "shm-size", mount_shm },  { "tz", mount_zone },
};

/* With --read-only-tmpfs. */
static char *const mount_scratch[] = {
	(char[]){ "/run" },
	(char[]){ "/tmp" },
	(char[]){ "/var/tmp" },
};

/* Of some only the last one counts. */
static const char *mount_next(const struct args *a, const char *option, size_t *pos)
{
	if (!str_eq(option, "shm-size") && !str_eq(option, "tz"))
		return args_next(a, option, pos);
	return (*pos)++ == 0 ? args_value(a, option) : NULL;
}

static size_t mount_count(const struct args *a)
{
	size_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(mount_options); i++) {
		size_t pos = 0;

		while (mount_next(a, mount_options[i].option, &pos))
			n++;
	}
	return n;
}

/* Where SPIFFE's programs and their documents have it. */
static void mount_identity(struct mount_words *w)
{
	static char target[] = "/run/spiffe";

	w->mounts[w->n].identity = true;
	w->mounts[w->n++].target = target;
}

static bool mount_is_taken(const struct mount_words *w, const char *target)
{
	for (size_t i = 0; i < w->n; i++)
		if (str_eq(w->mounts[i].target, target))
			return true;
	return false;
}

/* Unless something else goes there. */
static int mount_scratch_take(struct mount_words *w, const struct args *a, struct error *err)
{
	if (!args_flag(a, "read-only"))
		return error_refuse(err, ERROR_INVALID,
				    "--read-only-tmpfs is for --read-only: else it can write to "
				    "its root");
	for (size_t i = 0; i < ARRAY_SIZE(mount_scratch); i++) {
		if (mount_is_taken(w, mount_scratch[i]))
			continue;
		w->mounts[w->n].target = mount_scratch[i];
		w->mounts[w->n].tmpfs = &w->tmpfs[w->n];
		w->n++;
	}
	return 0;
}

int mount_words_take(struct mount_words *w, const struct args *a, struct error *err)
{
	size_t most = mount_count(a) + 1 + ARRAY_SIZE(mount_scratch);

	w->mounts = xrealloc(NULL, most + 1, sizeof(*w->mounts));
	w->list = xrealloc(NULL, most + 1, sizeof(*w->list));
	w->tmpfs = xrealloc(NULL, most + 1, sizeof(*w->tmpfs));
	for (size_t i = 0; i < most; i++) {
		aurae__runtime__v0__mount__init(&w->mounts[i]);
		aurae__runtime__v0__tmpfs__init(&w->tmpfs[i]);
		w->list[i] = &w->mounts[i];
	}
	for (size_t i = 0; i < ARRAY_SIZE(mount_options); i++) {
		const char *value;
		size_t pos = 0;

		while ((value = mount_next(a, mount_options[i].option, &pos))) {
			struct mount_target t = { &w->mounts[w->n], &w->tmpfs[w->n] };
			int r = mount_options[i].take(w, &t, value, err);

			if (r < 0)
				return r;
			w->n++;
		}
	}
	if (args_flag(a, "identity"))
		mount_identity(w);
	return args_flag(a, "read-only-tmpfs") ? mount_scratch_take(w, a, err) : 0;
}

void mount_words_done(struct mount_words *w)
{
	for (size_t i = 0; i < w->n_words; i++)
		free(w->words[i]);
	free(w->words);
	free(w->mounts);
	free(w->list);
	free(w->tmpfs);
	*w = (struct mount_words)MOUNT_WORDS_INIT;
}
