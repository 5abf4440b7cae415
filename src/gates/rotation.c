/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/rotation.h"

#include <errno.h>
#include <stdlib.h>

#include "base/log/log.h"
#include "base/time/clock.h"
#include "gates/identities.h"
#include "loop/loop.h"

#define ROTATION_LOOK (3600 * NSEC_PER_SEC)
/* The longest life of what is no user's, and what clocks may differ by. */
#define ROTATION_LEAF_SECONDS UINT64_C(86400)
#define ROTATION_MARGIN UINT64_C(3600)

struct rotation {
	struct rotation_config config;
	struct loop_timer look;
};

uint64_t rotation_retires_at(const struct issuer_rotation *r, const struct identities *identities)
{
	const struct list *all = identities_list(identities);
	uint64_t last = r->active_at + ROTATION_LEAF_SECONDS;
	const struct identity *i;

	if (!r->rotated_at)
		return 0;
	list_for_each (i, (struct list *)(uintptr_t)all, struct identity, link)
		if (i->issued_at <= r->rotated_at && !i->revoked_at)
			last = MAX(last, i->not_after);
	return last + ROTATION_MARGIN;
}

static void rotation_retired(void *userdata, const struct gate_bytes *bundle,
			     const struct error *err)
{
	(void)userdata;
	(void)bundle;
	if (err)
		log_warn("the older certificate authority is not retired; it is tried again",
			 LOG_ERR(err));
	else
		log_info("the older certificate authority is retired: all that it has signed is "
			 "over");
}

static void rotation_look(struct loop_timer *t)
{
	struct rotation *r = container_of(t, struct rotation, look);
	struct issuer_rotation now = issuer_rotation(r->config.issuer);
	uint64_t at = rotation_retires_at(&now, r->config.identities);

	if (at && clock_real() / NSEC_PER_SEC >= at)
		(void)issuer_retire(r->config.issuer, rotation_retired, r);
	loop_timer_set(&r->look, ROTATION_LOOK);
}

int rotation_new(struct rotation **ret, const struct rotation_config *config)
{
	struct rotation *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->config = *config;
	loop_timer_init(&r->look, config->loop, rotation_look);
	loop_timer_set(&r->look, ROTATION_LOOK);
	*ret = r;
	return 0;
}

struct rotation *rotation_free(struct rotation *r)
{
	if (!r)
		return NULL;
	loop_timer_done(&r->look);
	free(r);
	return NULL;
}
