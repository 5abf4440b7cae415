/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/tally.h"

#include <string.h>

#include "base/text/str.h"

struct tally_item {
	struct list link;
	const char *key; /* "KIND THING" */
	const char *kind, *thing;
	bool may, below, must, seen;
	const char *id, *name; /* of who needs it */
};

struct tally_fault {
	struct list link;
	struct tally_finding finding;
};

void tally_init(struct tally *t)
{
	*t = (struct tally){ .arena = ARENA_INIT, .items = MAP_INIT };
	list_init(&t->list);
	list_init(&t->faults);
}

void tally_done(struct tally *t)
{
	map_done(&t->items);
	arena_done(&t->arena);
	tally_init(t);
}

static struct tally_item *tally_add(struct tally *t, const char *key, const char *kind,
				    const char *thing)
{
	struct tally_item *i = arena_zalloc(&t->arena, 1, sizeof(*i));

	if (!i)
		return NULL;
	list_init(&i->link);
	i->key = key;
	i->kind = arena_strdup(&t->arena, kind);
	i->thing = arena_strdup(&t->arena, thing);
	if (!i->kind || !i->thing || map_add(&t->items, key, i) < 0)
		return NULL;
	list_add_tail(&t->list, &i->link);
	t->n++;
	return i;
}

/* The entry of the thing, made where it is new; NULL where the tally is full. */
static struct tally_item *tally_item(struct tally *t, const char *kind, const char *thing)
{
	const char *key = arena_printf(&t->arena, "%s %s", kind, thing);
	struct tally_item *i = key ? map_get(&t->items, key) : NULL;

	if (i)
		return i;
	if (key && t->n < TALLY_ITEMS_MAX)
		i = tally_add(t, key, kind, thing);
	t->incomplete = t->incomplete || !i;
	return i;
}

void tally_may(struct tally *t, const char *kind, const char *thing)
{
	struct tally_item *i = tally_item(t, kind, thing);

	if (i)
		i->may = true;
}

bool tally_allows(const struct tally *t, const char *kind, const char *thing)
{
	const struct tally_item *i;

	list_for_each (i, &t->list, struct tally_item, link) {
		if (i->may && str_eq(i->kind, kind) && str_eq(i->thing, thing))
			return true;
	}
	return false;
}

void tally_may_below(struct tally *t, const char *kind, const char *thing)
{
	struct tally_item *i = tally_item(t, kind, thing);

	if (!i)
		return;
	i->may = true;
	i->below = true;
}

void tally_must(struct tally *t, const char *kind, const char *thing, const char *id,
		const char *name)
{
	struct tally_item *i = tally_item(t, kind, thing);

	if (!i)
		return;
	i->may = true;
	i->must = true;
	i->id = arena_strdup(&t->arena, id);
	i->name = arena_strdup(&t->arena, name);
}

void tally_seen(struct tally *t, const char *kind, const char *thing)
{
	struct tally_item *i = tally_item(t, kind, thing);

	if (i)
		i->seen = true;
}

void tally_fault(struct tally *t, const char *kind, const char *id, const char *name,
		 const char *what)
{
	struct tally_fault *f = arena_zalloc(&t->arena, 1, sizeof(*f));

	if (!f) {
		t->incomplete = true;
		return;
	}
	list_init(&f->link);
	f->finding.kind = arena_strdup(&t->arena, kind);
	f->finding.id = arena_strdup(&t->arena, id);
	f->finding.name = arena_strdup(&t->arena, name);
	f->finding.what = arena_strdup(&t->arena, what);
	list_add_tail(&t->faults, &f->link);
}

/* Whether something above it answers for it: a record that allows all below, or a find of its own.
 */
static bool tally_is_covered(struct tally *t, const struct tally_item *i)
{
	char *key = arena_strdup(&t->arena, i->key);
	size_t kind_len = strlen(i->kind) + 1;
	char *slash;

	for (;;) {
		const struct tally_item *above;

		slash = key ? strrchr(key + kind_len, '/') : NULL;
		if (!slash)
			return false;
		*slash = '\0';
		above = map_get(&t->items, key);
		if (above && (above->below || (above->seen && !above->may)))
			return true;
	}
}

/* False where there is nothing to say. */
static bool tally_judge(struct tally *t, const struct tally_item *i, struct tally_finding *ret)
{
	*ret = (struct tally_finding){ .kind = i->kind, .id = "", .name = i->thing };
	if (i->seen && !i->may && !tally_is_covered(t, i)) {
		ret->what = "it is there, and no record knows it";
		return true;
	}
	if (!i->must || i->seen)
		return false;
	ret->id = i->id;
	ret->name = i->name;
	ret->what = arena_printf(&t->arena, "%s is missing", i->thing);
	return true;
}

/* Strings that could not be copied are told as empty. */
static bool tally_tell(bool (*fn)(void *userdata, const struct tally_finding *f), void *userdata,
		       const struct tally_finding *f)
{
	const struct tally_finding whole = {
		.kind = f->kind ?: "",
		.id = f->id ?: "",
		.name = f->name ?: "",
		.what = f->what ?: "",
	};

	return fn(userdata, &whole);
}

void tally_each(struct tally *t, bool (*fn)(void *userdata, const struct tally_finding *f),
		void *userdata)
{
	const struct tally_item *i;
	const struct tally_fault *f;

	list_for_each (i, &t->list, struct tally_item, link) {
		struct tally_finding finding;

		if (tally_judge(t, i, &finding) && !tally_tell(fn, userdata, &finding))
			return;
	}
	list_for_each (f, &t->faults, struct tally_fault, link)
		if (!tally_tell(fn, userdata, &f->finding))
			return;
}
