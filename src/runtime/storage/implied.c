/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/implied.h"

#include <errno.h>
#include <stdbool.h>

#include "base/memory/arena.h"
#include "base/text/id.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "cell/start/mounts.h"
#include "image/image.h"
#include "pod/workload/model.h"
#include "volumes/secrets.h"

static int implied_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "volumes");
}

static bool implied_has_target(const Aurae__Runtime__V0__Container *c, const char *target)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (mounts_are_same(c->mounts[i]->target, target))
			return true;
	return false;
}

static size_t implied_count(const Aurae__Runtime__V0__Container *c, char *const *volumes)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_mounts; i++)
		n += c->mounts[i]->anonymous || c->mounts[i]->n_secrets > 0;
	for (; volumes && *volumes; volumes++)
		n += !implied_has_target(c, *volumes);
	return n;
}

/* An id for a volume that has no name. */
static int implied_name(struct arena *a, Aurae__Runtime__V0__Mount *m, struct error *err)
{
	char id[ID_SIZE];

	if (id_new(id) < 0)
		return error_set(err, -EIO, "draw an id");
	m->anonymous = m->n_secrets == 0;
	m->volume = arena_strdup(a, id);
	return m->volume ? 0 : implied_memory(err);
}

static int implied_add(struct arena *a, Aurae__Runtime__V0__Container *c, const char *target,
		       struct error *err)
{
	Aurae__Runtime__V0__Mount *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return implied_memory(err);
	aurae__runtime__v0__mount__init(m);
	m->target = arena_strdup(a, target);
	if (!m->target)
		return implied_memory(err);
	c->mounts[c->n_mounts++] = m;
	return implied_name(a, m, err);
}

/* Those that were asked for without a name. */
static int implied_asked(struct arena *a, Aurae__Runtime__V0__Container *c, const char *field,
			 struct error *err)
{
	char name[ERROR_FIELD_MAX];

	for (size_t i = 0; i < c->n_mounts; i++) {
		Aurae__Runtime__V0__Mount *m;
		int r;

		if (!c->mounts[i]->anonymous && c->mounts[i]->n_secrets == 0)
			continue;
		(void)str_printf(name, sizeof(name), "%s.mounts[%zu].%s", field, i,
				 c->mounts[i]->n_secrets ? "secrets" : "anonymous");
		if (!str_empty(c->mounts[i]->volume))
			return error_field(err, ERROR_INVALID, name,
					   "not beside the name of a "
					   "volume");
		if (c->mounts[i]->n_secrets > SECRETS_OF_MOUNT_MAX)
			return error_field(err, ERROR_INVALID, name, "more than %d",
					   SECRETS_OF_MOUNT_MAX);
		if (c->mounts[i]->n_secrets && (c->mounts[i]->anonymous || c->mounts[i]->tmpfs ||
						!str_empty(c->mounts[i]->source)))
			return error_field(err, ERROR_INVALID, name,
					   "not beside a source, a tmpfs or a volume");
		m = arena_memdup(a, c->mounts[i], sizeof(*m));
		if (!m)
			return implied_memory(err);
		c->mounts[i] = m;
		r = implied_name(a, m, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* Those that its image has. */
static int implied_of_image(struct arena *a, Aurae__Runtime__V0__Container *c, const char *field,
			    char *const *volumes, struct error *err)
{
	struct error own = ERROR_INIT;
	char name[ERROR_FIELD_MAX];
	int r = 0;

	(void)str_printf(name, sizeof(name), "%s.image", field);
	for (; volumes && *volumes && r == 0; volumes++) {
		if (implied_has_target(c, *volumes))
			continue;
		if (c->n_mounts == CONTAINER_MOUNTS_MAX)
			return error_field(err, ERROR_PRECONDITION, name,
					   "it has more volumes (VOLUME) than can be mounted: with "
					   "the mounts that were asked for, %d are the limit",
					   CONTAINER_MOUNTS_MAX);
		if (mounts_check_target("VOLUME", *volumes, &own) < 0)
			return error_field(err, ERROR_PRECONDITION, name,
					   "it has a volume that cannot be mounted: %s",
					   error_text(&own));
		r = implied_add(a, c, *volumes, err);
	}
	return r;
}

static int implied_container(struct arena *a, struct image_store *images,
			     Aurae__Runtime__V0__Container **at, size_t i, struct error *err)
{
	const Aurae__Runtime__V0__Container *from = *at;
	const struct image *image = images && !str_empty(from->image)
					    ? image_store_find(images, from->image, NULL)
					    : NULL;
	char *const *volumes = image ? image->config.volumes : NULL;
	Aurae__Runtime__V0__Container *c;
	char field[ERROR_FIELD_MAX];
	int r;

	/* Too many are refused where all are checked. */
	if (from->n_mounts > CONTAINER_MOUNTS_MAX || implied_count(from, volumes) == 0)
		return 0;
	c = arena_memdup(a, from, sizeof(*c));
	if (!c)
		return implied_memory(err);
	c->mounts = arena_zalloc(a, CONTAINER_MOUNTS_MAX, sizeof(*c->mounts));
	if (!c->mounts)
		return implied_memory(err);
	for (size_t k = 0; k < from->n_mounts; k++)
		c->mounts[k] = from->mounts[k];
	(void)str_printf(field, sizeof(field), "containers[%zu]", i);
	r = implied_asked(a, c, field, err);
	if (r == 0)
		r = implied_of_image(a, c, field, volumes, err);
	*at = c;
	return r;
}

int implied_take(struct arena *a, struct image_store *images,
		 Aurae__Runtime__V0__Container ***containers, size_t n, struct error *err)
{
	Aurae__Runtime__V0__Container **copies;

	if (n == 0 || n > WORKLOAD_CONTAINERS_MAX)
		return 0;
	copies = arena_memdup(a, *containers, n * sizeof(*copies));
	if (!copies)
		return implied_memory(err);
	for (size_t i = 0; i < n; i++) {
		int r = implied_container(a, images, &copies[i], i, err);

		if (r < 0)
			return r;
	}
	*containers = copies;
	return 0;
}
