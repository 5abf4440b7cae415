/* SPDX-License-Identifier: Apache-2.0 */
#include "base/memory/map.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#define MAP_SIZE_MIN 16

struct map_slot {
	const char *key; /* NULL: free, or dead: an entry was removed here */
	void *value;
	uint64_t hash;
	bool dead;
};

static uint64_t map_seed[2];

static uint64_t map_rotate(uint64_t x, unsigned b)
{
	return (x << b) | (x >> (64 - b));
}

static void map_round(uint64_t v[4])
{
	v[0] += v[1];
	v[1] = map_rotate(v[1], 13) ^ v[0];
	v[0] = map_rotate(v[0], 32);
	v[2] += v[3];
	v[3] = map_rotate(v[3], 16) ^ v[2];
	v[0] += v[3];
	v[3] = map_rotate(v[3], 21) ^ v[0];
	v[2] += v[1];
	v[1] = map_rotate(v[1], 17) ^ v[2];
	v[2] = map_rotate(v[2], 32);
}

/* SipHash-1-3 (Aumasson, Bernstein: "SipHash: a fast short-input PRF"). */
static uint64_t map_hash(const char *key)
{
	size_t len = strlen(key);
	uint64_t v[4], m, last = (uint64_t)len << 56;
	size_t i;

	if (map_seed[0] == 0 && getrandom(map_seed, sizeof(map_seed), 0) < 0)
		map_seed[0] = 1;
	v[0] = map_seed[0] ^ 0x736f6d6570736575ULL;
	v[1] = map_seed[1] ^ 0x646f72616e646f6dULL;
	v[2] = map_seed[0] ^ 0x6c7967656e657261ULL;
	v[3] = map_seed[1] ^ 0x7465646279746573ULL;

	for (i = 0; i + 8 <= len; i += 8) {
		memcpy(&m, key + i, 8);
		v[3] ^= m;
		map_round(v);
		v[0] ^= m;
	}
	for (; i < len; i++)
		last |= (uint64_t)(unsigned char)key[i] << (8 * (i % 8));
	v[3] ^= last;
	map_round(v);
	v[0] ^= last;
	v[2] ^= 0xff;
	for (int round = 0; round < 3; round++)
		map_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

void map_done(struct map *m)
{
	free(m->slots);
	*m = (struct map)MAP_INIT;
}

static struct map_slot *map_find(const struct map *m, const char *key, uint64_t hash)
{
	for (size_t i = hash & (m->size - 1);; i = (i + 1) & (m->size - 1)) {
		struct map_slot *s = &m->slots[i];

		if (!s->key && !s->dead)
			return s;
		if (s->key && s->hash == hash && strcmp(s->key, key) == 0)
			return s;
	}
}

/* Lays the live entries out anew, at most half full with n more; the dead are gone then. */
static int map_resize(struct map *m, size_t n)
{
	struct map next = { .size = MAP_SIZE_MIN, .n = m->n, .n_used = m->n };

	while (next.size < (m->n + n) * 2)
		next.size *= 2;
	next.slots = calloc(next.size, sizeof(*next.slots));
	if (!next.slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->size; i++)
		if (m->slots[i].key)
			*map_find(&next, m->slots[i].key, m->slots[i].hash) = m->slots[i];
	free(m->slots);
	*m = next;
	return 0;
}

int map_reserve(struct map *m, size_t n)
{
	return (m->n_used + n) * 4 > m->size * 3 ? map_resize(m, n) : 0;
}

int map_add(struct map *m, const char *key, void *value)
{
	uint64_t hash = map_hash(key);
	struct map_slot *s;
	int r;

	r = map_reserve(m, 1);
	if (r < 0)
		return r;
	s = map_find(m, key, hash);
	if (s->key)
		return -EEXIST;
	*s = (struct map_slot){ .key = key, .value = value, .hash = hash };
	m->n++;
	m->n_used++;
	return 0;
}

void *map_get(const struct map *m, const char *key)
{
	return m->size ? map_find(m, key, map_hash(key))->value : NULL;
}

void *map_remove(struct map *m, const char *key)
{
	struct map_slot *s;
	void *value;

	if (m->size == 0)
		return NULL;
	s = map_find(m, key, map_hash(key));
	if (!s->key)
		return NULL;
	value = s->value;
	*s = (struct map_slot){ .dead = true };
	m->n--;
	return value;
}

void *map_next(const struct map *m, size_t *pos)
{
	while (*pos < m->size) {
		const struct map_slot *s = &m->slots[(*pos)++];

		if (s->key)
			return s->value;
	}
	return NULL;
}
