/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/model.h"

#include <assert.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/plan/plan.h"

static const char *const instance_words[] = {
	[INSTANCE_SPAWNING] = "spawning", [INSTANCE_READY] = "ready",
	[INSTANCE_STOPPING] = "stopping", [INSTANCE_GONE] = "removed",
	[INSTANCE_FAILED] = "failed",
};

static_assert(ARRAY_SIZE(instance_words) == INSTANCE_STATE_COUNT, "one word for each state");

const char *instance_state_word(enum instance_state state)
{
	return instance_words[state];
}

static const struct {
	const char *word;
	unsigned can; /* enum instance_ability */
} instance_kinds[] = {
	[INSTANCE_CELL] = { "cell", INSTANCE_PASSES_FDS | INSTANCE_LOCAL_PROCESS |
					    INSTANCE_LOCAL_CGROUP | INSTANCE_KEEPS_ROOTS |
					    INSTANCE_NODE_MOUNTS | INSTANCE_NODE_NETWORKS |
					    INSTANCE_KERNEL_GRANTED },
	[INSTANCE_VM] = { "vm", INSTANCE_LOCAL_CGROUP | INSTANCE_NODE_MOUNTS |
					INSTANCE_NODE_NETWORKS | INSTANCE_TAKES_NICS |
					INSTANCE_KERNEL_GRANTED },
	[INSTANCE_EC2] = { "ec2", 0 },
	[INSTANCE_GCE] = { "gce", 0 },
	[INSTANCE_VSPHERE] = { "vsphere", 0 },
};

static_assert(ARRAY_SIZE(instance_kinds) == INSTANCE_KIND_COUNT, "an entry for each kind");

const char *instance_kind_word(enum instance_kind kind)
{
	return instance_kinds[kind].word;
}

enum instance_kind instance_kind_of(const char *word)
{
	enum instance_kind k = INSTANCE_CELL;

	while (k < INSTANCE_KIND_COUNT && !str_eq(instance_kinds[k].word, word))
		k++;
	return k;
}

bool instance_kind_can(enum instance_kind kind, enum instance_ability what)
{
	return (instance_kinds[kind].can & what) != 0;
}

bool instance_is_remote(const struct instance *i)
{
	while (!instance_is_own(i) && i->parent)
		i = i->parent;
	return !instance_kind_can(i->choice.kind, INSTANCE_LOCAL_PROCESS);
}

int instance_blame(const struct instance *i, struct error *err)
{
	const struct error *cause = &i->last_error;

	if (cause->code) {
		err->kind = cause->kind;
		err->code = cause->code;
		(void)str_copy(err->field, sizeof(err->field), cause->field);
	}
	return err->code;
}

void instance_drop_joins(struct instance *i)
{
	for (int k = 0; i->joins && k < ISOLATE_NS_COUNT; k++)
		(void)fd_close(i->joins[k]);
	free(i->joins);
	i->joins = NULL;
}
