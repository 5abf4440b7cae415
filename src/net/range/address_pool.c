/* SPDX-License-Identifier: Apache-2.0 */
#include "net/range/address_pool.h"

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/socket.h>

struct address_pool {
	struct prefix network;
	uint32_t first; /* number within the network of the address that is slot 0 */
	uint32_t n, n_taken;
	uint32_t next; /* where the search for a free one begins */
	bool taken[];
};

/* ---- an address as a number within its network: its last 32 bits are enough ---- */

static uint32_t address_pool_tail(const struct prefix *p)
{
	const uint8_t *end = p->bytes + prefix_size(p);

	return (uint32_t)end[-4] << 24 | (uint32_t)end[-3] << 16 | (uint32_t)end[-2] << 8 | end[-1];
}

static struct prefix address_pool_at(const struct address_pool *p, uint32_t slot)
{
	struct prefix a = p->network;
	uint32_t tail = address_pool_tail(&a) + p->first + slot;
	uint8_t *end = a.bytes + prefix_size(&a);

	for (unsigned i = 1; i <= 4; i++, tail >>= 8)
		*(end - i) = (uint8_t)tail;
	return a;
}

static int address_pool_slot(const struct address_pool *p, const struct prefix *address,
			     uint32_t *ret, struct error *err)
{
	char text[PREFIX_TEXT_MAX], of[PREFIX_TEXT_MAX];
	struct prefix same;
	uint32_t slot;

	slot = prefix_has(&p->network, address)
		       ? address_pool_tail(address) - address_pool_tail(&p->network) - p->first
		       : UINT32_MAX;
	if (slot < p->n) {
		/* Far up in a network of IPv6 there are others with the same end. */
		same = address_pool_at(p, slot);
		if (prefix_same_address(&same, address)) {
			*ret = slot;
			return 0;
		}
	}
	prefix_print_address(address, text);
	prefix_print(&p->network, of);
	return error_refuse(err, ERROR_INVALID, "%s is not an address of the pool %s", text, of);
}

/* ---- the pool ---- */

/* How many addresses a network has, and which of them stand first and last. */
static void address_pool_measure(struct address_pool *p)
{
	size_t free_bits = prefix_size(&p->network) * 8 - p->network.length;
	uint64_t all = free_bits > 31 ? UINT64_C(1) << 32 : UINT64_C(1) << free_bits;
	bool has_last = p->network.family == AF_INET;

	p->first = free_bits > 1 ? 1 : 0;
	all -= p->first;
	if (free_bits > 1 && has_last)
		all--;
	p->n = (uint32_t)MIN(all, (uint64_t)ADDRESS_POOL_MAX);
}

int address_pool_new(struct address_pool **ret, const struct prefix *network)
{
	struct address_pool measured = { .n_taken = 0 };
	struct address_pool *p;

	if (prefix_size(network) == 0 || network->length > prefix_size(network) * 8)
		return -EINVAL;
	measured.network = prefix_network(network);
	address_pool_measure(&measured);
	p = calloc(1, sizeof(*p) + measured.n * sizeof(p->taken[0]));
	if (!p)
		return -ENOMEM;
	*p = measured;
	*ret = p;
	return 0;
}

struct address_pool *address_pool_free(struct address_pool *p)
{
	free(p);
	return NULL;
}

size_t address_pool_size(const struct address_pool *p)
{
	return p->n;
}

size_t address_pool_taken(const struct address_pool *p)
{
	return p->n_taken;
}

static void address_pool_mark(struct address_pool *p, uint32_t slot)
{
	p->taken[slot] = true;
	p->n_taken++;
}

int address_pool_get(struct address_pool *p, struct prefix *ret, struct error *err)
{
	char of[PREFIX_TEXT_MAX];

	if (p->n_taken == p->n) {
		prefix_print(&p->network, of);
		return error_refuse(err, ERROR_EXHAUSTED,
				    "all %u addresses of the pool %s are taken", p->n, of);
	}
	while (p->taken[p->next])
		p->next = (p->next + 1) % p->n;
	*ret = address_pool_at(p, p->next);
	address_pool_mark(p, p->next);
	p->next = (p->next + 1) % p->n;
	return 0;
}

int address_pool_take(struct address_pool *p, const struct prefix *address, struct error *err)
{
	char text[PREFIX_TEXT_MAX];
	uint32_t slot;
	int r;

	r = address_pool_slot(p, address, &slot, err);
	if (r < 0)
		return r;
	if (p->taken[slot]) {
		prefix_print_address(address, text);
		return error_refuse(err, ERROR_EXISTS, "the address %s is taken", text);
	}
	address_pool_mark(p, slot);
	return 0;
}

int address_pool_put(struct address_pool *p, const struct prefix *address, struct error *err)
{
	char text[PREFIX_TEXT_MAX];
	uint32_t slot;
	int r;

	r = address_pool_slot(p, address, &slot, err);
	if (r < 0)
		return r;
	if (!p->taken[slot]) {
		prefix_print_address(address, text);
		return error_refuse(err, ERROR_NOT_FOUND, "nobody has the address %s", text);
	}
	assert(p->n_taken > 0);
	p->taken[slot] = false;
	p->n_taken--;
	return 0;
}
