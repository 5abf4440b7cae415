/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/shown.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "pod/workload/workload.h"
#include "runtime/core/check.h"
#include "runtime/core/labels.h"
#include "runtime/services.h"
#include "runtime/start/settings.h"

static const char *const shown_kinds[] = { "pod", "cell", "executable", "vm", "instance" };
static const char *const shown_states[] = {
	"spawning", "ready",  "created", "starting", "running",
	"stopping", "exited", "failed",  "removing",
};

static const char *shown_kind(const struct target *t)
{
	return t->workload ? workload_kind_word(t->workload->kind) : "instance";
}

static const char *shown_state(const struct target *t)
{
	return t->workload ? workload_state_word(t->workload->state)
			   : instance_state_word(t->instance->state);
}

static const char *shown_path(const struct target *t)
{
	return t->workload ? t->workload->path : t->instance->path;
}

/* ---- filters ---- */

static unsigned shown_bit(const char *word, const char *const *words, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (str_eq(words[i], word))
			return 1U << i;
	return 0;
}

static int shown_set(unsigned *ret, const char *field, char *const *chosen, size_t n_chosen,
		     const char *const *words, size_t n, struct error *err)
{
	char entry[ERROR_FIELD_MAX];
	const char *word;
	int r;

	*ret = 0;
	for (size_t i = 0; i < n_chosen; i++) {
		(void)str_printf(entry, sizeof(entry), "%s[%zu]", field, i);
		if (str_empty(chosen[i]))
			return error_field(err, ERROR_INVALID, entry, "empty");
		r = check_word(entry, chosen[i], words, n, &word, err);
		if (r < 0)
			return r;
		*ret |= shown_bit(word, words, n);
	}
	return 0;
}

int shown_filter_set(struct shown_filter *f, char *const *kinds, size_t n_kinds,
		     char *const *states, size_t n_states, const char *below, struct error *err)
{
	int r;

	r = shown_set(&f->kinds, "kinds", kinds, n_kinds, shown_kinds, ARRAY_SIZE(shown_kinds),
		      err);
	if (r == 0)
		r = shown_set(&f->states, "states", states, n_states, shown_states,
			      ARRAY_SIZE(shown_states), err);
	if (r == 0)
		r = check_path("below", below, err);
	if (r == 0)
		(void)str_copy(f->below, sizeof(f->below), below ? below : "");
	return r;
}

int shown_filter_set_labels(struct shown_filter *f, char *const *labels, size_t n,
			    struct error *err)
{
	char entry[ERROR_FIELD_MAX];

	if (n > LABELS_MAX)
		return error_field(err, ERROR_INVALID, "labels",
				   "%zu are more than the limit of %d", n, LABELS_MAX);
	for (size_t i = 0; i < n; i++) {
		if (labels[i][0] && labels[i][0] != '=')
			continue;
		(void)str_printf(entry, sizeof(entry), "labels[%zu]", i);
		return error_field(err, ERROR_INVALID, entry,
				   "\"%.80s\" is neither NAME nor NAME=VALUE", labels[i]);
	}
	f->labels = labels;
	f->n_labels = n;
	return 0;
}

static bool shown_has_label(const Aurae__Runtime__V0__Meta *meta, const char *wanted)
{
	size_t len = strcspn(wanted, "=");

	for (size_t i = 0; i < meta->n_labels; i++) {
		const char *key = meta->labels[i]->key;

		if (strlen(key) == len && memcmp(key, wanted, len) == 0)
			return !wanted[len] || str_eq(meta->labels[i]->value, wanted + len + 1);
	}
	return false;
}

static bool shown_has_labels(const struct shown_filter *f, const struct target *t)
{
	const char *settings = t->workload ? t->workload->settings : t->instance->settings;
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	const Aurae__Runtime__V0__Meta *meta;

	if (f->n_labels == 0)
		return true;
	meta = settings_meta(&a, settings);
	for (size_t i = 0; i < f->n_labels; i++)
		if (!meta || !shown_has_label(meta, f->labels[i]))
			return false;
	return true;
}

bool shown_is(const struct target *t)
{
	const struct instance *i = t->instance;

	return t->workload || (i->path[0] && !i->owner[0] && i->state != INSTANCE_GONE);
}

bool shown_covers(const struct shown_filter *f, const char *kind, const char *path)
{
	size_t n = strlen(f->below);

	if (n > 0 && (strncmp(path, f->below, n) != 0 || path[n] != '/'))
		return false;
	return !f->kinds || f->kinds & shown_bit(kind, shown_kinds, ARRAY_SIZE(shown_kinds));
}

bool shown_matches(const struct shown_filter *f, const struct target *t)
{
	bool over = t->workload ? workload_has_ended(t->workload) : instance_has_ended(t->instance);

	if (!shown_covers(f, shown_kind(t), shown_path(t)))
		return false;
	if (f->states &&
	    !(f->states & shown_bit(shown_state(t), shown_states, ARRAY_SIZE(shown_states))))
		return false;
	return (f->states || f->ended || !over) && shown_has_labels(f, t);
}

/* ---- order ---- */

struct shown_place shown_place_of(const struct target *t)
{
	struct shown_place p = { .created_at = t->workload ? t->workload->created_at
							   : t->instance->created_at };

	(void)str_copy(p.id, sizeof(p.id), t->workload ? t->workload->id : t->instance->id);
	return p;
}

int shown_compare(const struct shown_place *a, const struct shown_place *b)
{
	if (a->created_at != b->created_at)
		return a->created_at < b->created_at ? -1 : 1;
	return strcmp(a->id, b->id);
}

static int shown_order(const void *a, const void *b)
{
	struct shown_place x = shown_place_of(a), y = shown_place_of(b);

	return shown_compare(&x, &y);
}

struct shown_walk {
	const struct shown_filter *filter;
	const struct shown_place *after;
	struct target *found;
	size_t n;
};

static void shown_take(struct shown_walk *walk, struct target t)
{
	struct shown_place place;

	if (!shown_is(&t) || !shown_matches(walk->filter, &t))
		return;
	place = shown_place_of(&t);
	if (shown_compare(&place, walk->after) > 0)
		walk->found[walk->n++] = t;
}

int shown_collect(const struct workload_service *s, const struct shown_filter *f,
		  const struct shown_place *after, struct arena *a, struct target **ret,
		  size_t *ret_n)
{
	struct shown_walk walk = { .filter = f, .after = after };
	struct instance *i;
	struct workload *w;
	size_t n = 0;

	list_for_each (i, instances_list(s->instances), struct instance, link)
		n++;
	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		n++;
	walk.found = arena_zalloc(a, n + 1, sizeof(*walk.found));
	if (!walk.found)
		return -ENOMEM;
	list_for_each (i, instances_list(s->instances), struct instance, link)
		shown_take(&walk, (struct target){ .instance = i });
	list_for_each (w, workloads_list(s->workloads), struct workload, link)
		shown_take(&walk, (struct target){ .workload = w });
	qsort(walk.found, walk.n, sizeof(*walk.found), shown_order);
	*ret = walk.found;
	*ret_n = walk.n;
	return 0;
}
