/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Leases: until when a machine is its node's, as seconds since 1970 in a tag. Who finds one that
 * has ended may end the machine: its node does not come back (clouds_collect()). All times are the
 * cloud's, as it tells them with each answer, so that no clock of a node counts; only what is made
 * before the first answer goes by that, and is put right with the first list.
 *
 * A lease is renewed at half of its length, with those of many machines in one call, and one call
 * in a CLOUD_LEASE_PACE.
 */

#include <errno.h>
#include <inttypes.h>

#include "base/log/log.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "clouds/model.h"

#define CLOUD_LEASE_PACE (60 * NSEC_PER_SEC)
/* In one question: a packet has 256 words. Others than EC2 change one machine in a call, and
 * need more calls around it. */
#define CLOUD_LEASE_MANY 200
#define CLOUD_LEASE_FEW 8

static uint64_t lease_length(const struct clouds *all)
{
	return all->config.settings->lease / NSEC_PER_SEC;
}

int clouds_put_lease(const struct clouds *all, struct buf *b)
{
	uint64_t now;

	if (!cloud_helper_time(all->helper, &now))
		now = clock_real() / NSEC_PER_SEC;
	return cloudmsg_put(b, "tag", CLOUD_TAG_LEASE "=%" PRIu64, now + lease_length(all));
}

uint64_t cloud_lease_of(const struct cloudmsg *m)
{
	const char *at = NULL, *tag;
	uint64_t lease;

	while ((tag = cloudmsg_next(m, "tag", &at)) != NULL)
		if (str_has_prefix(tag, CLOUD_TAG_LEASE "=") &&
		    parse_u64(tag + strlen(CLOUD_TAG_LEASE "="), 1, INT64_MAX, &lease) == 0)
			return lease;
	return 0;
}

/* Too short, or so long that a clock was wrong. */
static bool lease_is_due(const struct cloud_vm *vm, uint64_t now)
{
	uint64_t length = lease_length(vm->all);

	return cloud_vm_is_watched(vm) && vm->instance[0] && vm->wanted == CLOUD_WANT_RUN &&
	       (vm->lease <= now + (length + 1) / 2 || vm->lease > now + length + length / 4);
}

static void lease_on_renewed(void *userdata, const struct cloudmsg *m, const struct error *err)
{
	struct clouds *all = userdata;
	struct cloud_vm *vm;

	(void)m;
	all->renewing = NULL;
	if (err && !all->lease_failed)
		log_warn("the leases of machines in the cloud cannot be renewed: where they end, "
			 "nacre cloud gc --expired of any node ends the machines",
			 LOG_ERR(err));
	all->lease_failed = err != NULL;
	list_for_each (vm, &all->list, struct cloud_vm, link) {
		if (vm->renews && !err)
			vm->lease = vm->renews;
		vm->renews = 0;
	}
}

static const struct cloud_question_ops lease_ops = { .on_done = lease_on_renewed };

void clouds_renew(struct clouds *all)
{
	const nsec_t pace = MIN(CLOUD_LEASE_PACE, all->config.settings->lease / 4);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const size_t many =
		str_eq(clouds_provider(all), "ec2") ? CLOUD_LEASE_MANY : CLOUD_LEASE_FEW;
	struct cloud_vm *vm;
	uint64_t now;
	bool more = false;
	size_t n = 0;
	int r;

	if (all->renewing || !cloud_helper_time(all->helper, &now) ||
	    (all->renewed && clock_mono() - all->renewed < pace))
		return;
	r = cloudmsg_put(&b, "verb", "tag");
	for (vm = clouds_next(all, NULL); vm && r == 0; vm = clouds_next(all, vm)) {
		if (!lease_is_due(vm, now))
			continue;
		if (n == many) {
			more = true;
			continue;
		}
		r = cloudmsg_put(&b, "id", "%s", vm->instance);
		vm->renews = now + lease_length(all);
		n++;
	}
	if (n == 0)
		return;
	if (r == 0)
		r = clouds_put_lease(all, &b);
	if (r == 0)
		r = cloud_helper_ask(all->helper, &b, &lease_ops, all, &all->renewing);
	if (r < 0)
		list_for_each (vm, &all->list, struct cloud_vm, link)
			vm->renews = 0;
	all->renewed = clock_mono();
	if (more)
		clouds_arm(all, pace);
}
