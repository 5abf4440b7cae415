/* SPDX-License-Identifier: Apache-2.0 */

/* The machines as a set, and when they are to be looked at. Who looks is watch.c. */

#include <stdint.h>

#include "base/text/str.h"
#include "clouds/model.h"

const struct list *clouds_list(const struct clouds *all)
{
	return &all->list;
}

struct cloud_vm *clouds_next(const struct clouds *all, const struct cloud_vm *at)
{
	const struct list *next = at ? at->link.next : all->list.next;

	return next == &all->list
		       ? NULL
		       : list_entry((struct list *)(uintptr_t)next, struct cloud_vm, link);
}

struct cloud_vm *clouds_find(const struct clouds *all, const char *target)
{
	struct cloud_vm *vm;

	for (vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm))
		if (str_eq(vm->name, target) || str_eq(vm->id, target))
			return vm;
	return NULL;
}

struct cloud_vm *clouds_find_owned(const struct clouds *all, const char *owner)
{
	struct cloud_vm *vm;

	for (vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm))
		if (str_eq(vm->owner, owner))
			return vm;
	return NULL;
}

struct cloud_vm *clouds_find_workload(const struct clouds *all, const char *workload)
{
	struct cloud_vm *vm;

	for (vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm))
		if (str_eq(vm->workload, workload))
			return vm;
	return NULL;
}

const char *clouds_node(const struct clouds *all)
{
	return all->node;
}

const char *clouds_provider(const struct clouds *all)
{
	return all->config.settings->provider;
}

int clouds_put_tags(struct clouds *all, struct buf *b, const char *node)
{
	int r = cloudmsg_put(b, "tag", CLOUD_TAG_CLUSTER "=%s", all->config.settings->cluster);

	return r < 0 ? r : cloudmsg_put(b, "tag", CLOUD_TAG_NODE "=%s", node);
}

/* ---- when they are looked at ---- */

bool cloud_vm_is_watched(const struct cloud_vm *vm)
{
	return !vm->elsewhere && !cloud_vm_has_ended(vm) &&
	       (vm->state != CLOUD_CREATING || vm->doubt);
}

nsec_t clouds_pause(const struct clouds *all)
{
	/* A look is also what leases are renewed by. */
	const nsec_t steady = MIN(all->config.settings->poll, all->config.settings->lease / 8);
	const nsec_t moving = MIN(steady, CLOUD_LOOK_SOON);
	nsec_t pause = NSEC_NEVER;
	struct cloud_vm *vm;

	for (vm = clouds_next(all, NULL); vm; vm = clouds_next(all, vm)) {
		bool stays = vm->state == CLOUD_RUNNING || vm->state == CLOUD_STOPPED;

		if (cloud_vm_is_watched(vm))
			pause = MIN(pause, stays ? steady : moving);
	}
	return pause;
}

void clouds_arm(struct clouds *all, nsec_t pause)
{
	nsec_t due = clock_mono() + pause;

	if (pause == NSEC_NEVER || (all->look_due && all->look_due <= due))
		return;
	all->look_due = due;
	loop_timer_set(&all->look, pause);
}

void clouds_look(struct clouds *all, bool soon)
{
	nsec_t pause;

	if (!all->helper)
		return;
	if (all->looking) {
		all->look_soon = all->look_soon || soon;
		return;
	}
	pause = clouds_pause(all);
	/* The cloud shows the result of a request some time after its answer. */
	clouds_arm(all, soon ? MIN(pause, CLOUD_LOOK_SOON / 8) : pause);
}
