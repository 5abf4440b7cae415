/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/inventory.h"

#include <string.h>

#include "base/text/str.h"

struct inventory_item {
	struct list link;
	const char *key; /* "KIND THING" */
	const char *kind, *thing;
	bool may, below, must, seen;
	const char *id, *name; /* of who needs it */
};

struct inventory_fault {
	struct list link;
	struct inventory_finding finding;
};

void inventory_init(struct inventory *t)
{
	*t = (struct inventory){ .arena = ARENA_INIT, .items = MAP_INIT };
	list_init(&t->list);
	list_init(&t->faults);
}

void inventory_done(struct inventory *t)
{
	map_done(&t->items);
	arena_done(&t->arena);
	inventory_init(t);
}

static struct inventory_item *inventory_add(struct inventory *t, const char *key, const char *kind,
					    const char *thing)
{
	struct inventory_item *i = arena_zalloc(&t->arena, 1, sizeof(*i));

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

/* The entry of the thing, made where it is new; NULL where the inventory is full. */
static struct inventory_item *inventory_item(struct inventory *t, const char *kind,
					     const char *thing)
{
	const char *key = arena_printf(&t->arena, "%s %s", kind, thing);
	struct inventory_item *i = key ? map_get(&t->items, key) : NULL;

	if (i)
		return i;
	if (key && t->n < INVENTORY_ITEMS_MAX)
		i = inventory_add(t, key, kind, thing);
	t->incomplete = t->incomplete || !i;
	return i;
}

void inventory_may(struct inventory *t, const char *kind, const char *thing)
{
	struct inventory_item *i = inventory_item(t, kind, thing);

	if (i)
		i->may = true;
}

bool inventory_allows(const struct inventory *t, const char *kind, const char *thing)
{
	const struct inventory_item *i;

	list_for_each (i, &t->list, struct inventory_item, link) {
		if (i->may && str_eq(i->kind, kind) && str_eq(i->thing, thing))
			return true;
	}
	return false;
}

void inventory_may_below(struct inventory *t, const char *kind, const char *thing)
{
	struct inventory_item *i = inventory_item(t, kind, thing);

	if (!i)
		return;
	i->may = true;
	i->below = true;
}

void inventory_must(struct inventory *t, const char *kind, const char *thing, const char *id,
		    const char *name)
{
	struct inventory_item *i = inventory_item(t, kind, thing);

	if (!i)
		return;
	i->may = true;
	i->must = true;
	i->id = arena_strdup(&t->arena, id);
	i->name = arena_strdup(&t->arena, name);
}

void inventory_seen(struct inventory *t, const char *kind, const char *thing)
{
	struct inventory_item *i = inventory_item(t, kind, thing);

	if (i)
		i->seen = true;
}

void inventory_fault(struct inventory *t, const char *kind, const char *id, const char *name,
		     const char *what)
{
	struct inventory_fault *f = arena_zalloc(&t->arena, 1, sizeof(*f));

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
static bool inventory_is_covered(struct inventory *t, const struct inventory_item *i)
{
	char *key = arena_strdup(&t->arena, i->key);
	size_t kind_len = strlen(i->kind) + 1;
	char *slash;

	for (;;) {
		const struct inventory_item *above;

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
static bool inventory_judge(struct inventory *t, const struct inventory_item *i,
			    struct inventory_finding *ret)
{
	*ret = (struct inventory_finding){ .kind = i->kind, .id = "", .name = i->thing };
	if (i->seen && !i->may && !inventory_is_covered(t, i)) {
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
static bool inventory_tell(bool (*fn)(void *userdata, const struct inventory_finding *f),
			   void *userdata, const struct inventory_finding *f)
{
	const struct inventory_finding whole = {
		.kind = f->kind ?: "",
		.id = f->id ?: "",
		.name = f->name ?: "",
		.what = f->what ?: "",
	};

	return fn(userdata, &whole);
}

void inventory_each(struct inventory *t,
		    bool (*fn)(void *userdata, const struct inventory_finding *f), void *userdata)
{
	const struct inventory_item *i;
	const struct inventory_fault *f;

	list_for_each (i, &t->list, struct inventory_item, link) {
		struct inventory_finding finding;

		if (inventory_judge(t, i, &finding) && !inventory_tell(fn, userdata, &finding))
			return;
	}
	list_for_each (f, &t->faults, struct inventory_fault, link)
		if (!inventory_tell(fn, userdata, &f->finding))
			return;
}
