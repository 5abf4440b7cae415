/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/ps_filter.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/options/health_view.h"
#include "cli/output/alloc.h"
#include "cli/output/view.h"

struct ps_filter_key;

struct ps_filter_entry {
	const struct ps_filter_key *key;
	const char *value;
	regex_t pattern; /* of a name */
	uint32_t number; /* of an exit code */
};

struct ps_filter_key {
	const char *name;
	/* NULL: takes any value. */
	int (*check)(struct ps_filter_entry *e, struct error *err);
	bool (*matches)(const struct ps_filter_entry *e, const Nacre__V1__Workload *w);
	bool ended; /* asks for what has ended, too */
};

/* ---- states ---- */

static const struct {
	const char *ours, *theirs;
} ps_states[] = {
	{ "starting", "created" }, { "spawning", "created" },  { "running", "running" },
	{ "ready", "running" },    { "stopping", "stopping" }, { "exited", "exited" },
	{ "failed", "exited" },    { "removing", "removing" },
};

const char *ps_status(const Nacre__V1__Workload *w)
{
	if (w->paused)
		return "paused";
	for (size_t i = 0; i < ARRAY_SIZE(ps_states); i++)
		if (str_eq(ps_states[i].ours, w->state))
			return ps_states[i].theirs;
	return w->state;
}

static int status_check(struct ps_filter_entry *e, struct error *err)
{
	if (str_eq(e->value, "paused"))
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(ps_states); i++)
		if (str_eq(ps_states[i].ours, e->value) || str_eq(ps_states[i].theirs, e->value))
			return 0;
	return error_refuse(err, ERROR_INVALID,
			    "--filter status=%s: it is one of created, running, paused, stopping, "
			    "exited, failed, removing",
			    e->value);
}

static bool status_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	return str_eq(e->value, w->state) || str_eq(e->value, ps_status(w));
}

/* ---- the other keys ---- */

static int name_check(struct ps_filter_entry *e, struct error *err)
{
	/* Docker's own names begin with a slash. */
	const char *pattern = e->value + (e->value[0] == '/');

	if (regcomp(&e->pattern, pattern, REG_EXTENDED | REG_NOSUB) == 0)
		return 0;
	e->key = NULL;
	return error_refuse(err, ERROR_INVALID, "--filter name=%s: no regular expression",
			    e->value);
}

static bool name_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	return regexec(&e->pattern, w->name, 0, NULL, 0) == 0;
}

static bool id_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	if (str_has_prefix(w->id, e->value))
		return true;
	for (size_t i = 0; i < w->n_containers; i++)
		if (str_has_prefix(w->containers[i]->id, e->value))
			return true;
	return false;
}

static int exited_check(struct ps_filter_entry *e, struct error *err)
{
	if (parse_u32(e->value, &e->number) == 0 && e->number <= 255)
		return 0;
	return error_refuse(err, ERROR_INVALID, "--filter exited=%s: an exit code is 0 to 255",
			    e->value);
}

static bool exited_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	return view_has_ended(w->state) && !str_eq(w->kind, "instance") &&
	       (uint32_t)w->exit_code == e->number;
}

/* "docker.io/library/busybox:latest" for "busybox". */
static char *image_whole(const char *name)
{
	const char *slash = strchr(name, '/'), *last = strrchr(name, '/');
	size_t n = slash ? (size_t)(slash - name) : 0;
	bool has_host = slash && (memchr(name, '.', n) || memchr(name, ':', n) ||
				  (n == strlen("localhost") && str_has_prefix(name, "localhost")));
	const char *above = has_host ? "" : slash ? "docker.io/" : "docker.io/library/";
	bool has_tag = strpbrk(last ? last : name, ":@");

	return xformat("%s%s%s", above, name, has_tag ? "" : ":latest");
}

static bool ancestor_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	static const char algorithm[] = "sha256:";
	_cleanup_str_ char *wanted = image_whole(e->value);
	const char *digits = e->value;

	digits += str_has_prefix(digits, algorithm) ? strlen(algorithm) : 0;
	for (size_t i = 0; i < w->n_containers; i++) {
		_cleanup_str_ char *name = image_whole(w->containers[i]->image);
		const char *id = w->containers[i]->image_id;

		id += str_has_prefix(id, algorithm) ? strlen(algorithm) : 0;
		if (str_eq(name, wanted) || (strlen(digits) >= 6 && str_has_prefix(id, digits)))
			return true;
	}
	return false;
}

static bool network_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	return str_eq(e->value, w->network) ||
	       (w->attachment && str_eq(e->value, w->attachment->name));
}

static bool volume_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	for (size_t i = 0; i < w->n_containers; i++)
		for (size_t k = 0; k < w->containers[i]->n_mounts; k++)
			if (str_eq(e->value, w->containers[i]->mounts[k]->source) ||
			    str_eq(e->value, w->containers[i]->mounts[k]->target))
				return true;
	return false;
}

static bool pod_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	return str_eq(w->kind, "pod") &&
	       (str_eq(e->value, w->name) || str_has_prefix(w->id, e->value));
}

static int health_check(struct ps_filter_entry *e, struct error *err)
{
	static const char *const words[] = { "starting", "healthy", "unhealthy", "none" };

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(e->value, words[i]))
			return 0;
	return error_refuse(err, ERROR_INVALID,
			    "--filter health=%s: it is one of starting, healthy, unhealthy, none",
			    e->value);
}

static bool health_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	const char *word = health_view_word(w);

	return str_eq(e->value, *word ? word : "none");
}

/* The daemon has chosen already. */
static bool label_matches(const struct ps_filter_entry *e, const Nacre__V1__Workload *w)
{
	return true;
}

static const struct ps_filter_key ps_filter_keys[] = {
	{ "name", name_check, name_matches, false },
	{ "id", NULL, id_matches, false },
	{ "label", NULL, label_matches, false },
	{ "status", status_check, status_matches, true },
	{ "exited", exited_check, exited_matches, true },
	{ "ancestor", NULL, ancestor_matches, false },
	{ "network", NULL, network_matches, false },
	{ "volume", NULL, volume_matches, false },
	{ "pod", NULL, pod_matches, false },
	{ "health", health_check, health_matches, false },
};

/* ---- all of them ---- */

static int ps_filter_add(struct ps_filter *f, char *word, struct error *err)
{
	size_t len = strcspn(word, "=");
	const struct ps_filter_key *key = NULL;
	struct ps_filter_entry *e;

	for (size_t i = 0; i < ARRAY_SIZE(ps_filter_keys) && !key; i++)
		if (strlen(ps_filter_keys[i].name) == len &&
		    str_has_prefix(word, ps_filter_keys[i].name))
			key = &ps_filter_keys[i];
	if (!key || !word[len] || !word[len + 1])
		return error_refuse(err, ERROR_INVALID, "--filter %s: it is one of %s", word,
				    PS_FILTER_KEYS);
	f->entries = xrealloc(f->entries, f->n + 1, sizeof(*f->entries));
	e = &f->entries[f->n++];
	*e = (struct ps_filter_entry){ .key = key, .value = word + len + 1 };
	f->ended = f->ended || key->ended;
	if (key->matches == label_matches) {
		f->labels = xrealloc(f->labels, f->n_labels + 1, sizeof(*f->labels));
		f->labels[f->n_labels++] = word + len + 1;
	}
	return key->check ? key->check(e, err) : 0;
}

int ps_filter_init(struct ps_filter *f, const struct args *a, struct error *err)
{
	size_t pos = 0;
	char *word;
	int r = 0;

	*f = (struct ps_filter){ .entries = NULL };
	while (r == 0 && (word = args_next(a, "filter", &pos)))
		r = ps_filter_add(f, word, err);
	return r;
}

bool ps_filter_matches(const struct ps_filter *f, const Nacre__V1__Workload *w)
{
	for (size_t k = 0; k < ARRAY_SIZE(ps_filter_keys); k++) {
		bool asked = false, found = false;

		for (size_t i = 0; i < f->n; i++) {
			if (f->entries[i].key != &ps_filter_keys[k])
				continue;
			asked = true;
			found = found || ps_filter_keys[k].matches(&f->entries[i], w);
		}
		if (asked && !found)
			return false;
	}
	return true;
}

void ps_filter_done(struct ps_filter *f)
{
	for (size_t i = 0; i < f->n; i++)
		if (f->entries[i].key && f->entries[i].key->matches == name_matches)
			regfree(&f->entries[i].pattern);
	free(f->entries);
	free(f->labels);
	*f = (struct ps_filter){ .entries = NULL };
}
