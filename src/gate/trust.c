/* SPDX-License-Identifier: Apache-2.0 */
#include "gate/trust.h"

#include <errno.h>
#include <string.h>

#include "identity/cert.h"

int trust_begin(struct trust *t, const struct gate_bytes *bundle)
{
	return buf_add(&t->bundle, bundle->data, bundle->len);
}

int trust_change(struct trust *t, const struct gate_bytes *bundle)
{
	int r;

	if (bundle->len == t->bundle.len &&
	    memcmp(bundle->data, buf_data(&t->bundle), bundle->len) == 0)
		return 0;
	buf_clear(&t->gone);
	r = buf_add(&t->gone, buf_data(&t->bundle), t->bundle.len);
	if (r < 0)
		return r;
	buf_clear(&t->bundle);
	r = buf_add(&t->bundle, bundle->data, bundle->len);
	t->changed = true;
	return r < 0 ? r : 1;
}

int trust_all(const struct trust *t, struct buf *ret)
{
	int r = buf_add(ret, buf_data(&t->bundle), t->bundle.len);

	return r == 0 && t->gone.len > 0 ? buf_add(ret, buf_data(&t->gone), t->gone.len) : r;
}

int trust_give(struct trust *t, const struct gate_bytes *chain, struct buf *ret)
{
	int r = buf_add(ret, chain->data, chain->len);

	t->pending_is_new =
		cert_bundle_signs(buf_data(&t->bundle), t->bundle.len, chain->data, chain->len);
	if (r == 0 && t->changed)
		r = buf_add(ret, buf_data(&t->bundle), t->bundle.len);
	return r == 0 && ret->len > GATE_CHAIN_MAX ? -ENOBUFS : r;
}

bool trust_kept(struct trust *t)
{
	bool others = t->gone.len > 0 && t->pending_is_new;

	if (others)
		buf_clear(&t->gone);
	return others;
}
