/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/model.h"

#include <assert.h>

#include "base/text/str.h"
#include "instance/provider.h"

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

static const char *const instance_kinds[] = {
	[INSTANCE_CELL] = "cell", [INSTANCE_VM] = "vm",           [INSTANCE_EC2] = "ec2",
	[INSTANCE_GCE] = "gce",   [INSTANCE_VSPHERE] = "vsphere",
};

static_assert(ARRAY_SIZE(instance_kinds) == INSTANCE_KIND_COUNT, "one word for each kind");

const char *instance_kind_word(enum instance_kind kind)
{
	return instance_kinds[kind];
}

enum instance_kind instance_kind_of(const char *word)
{
	enum instance_kind k = INSTANCE_CELL;

	while (k < INSTANCE_KIND_COUNT && !str_eq(instance_kinds[k], word))
		k++;
	return k;
}

bool instance_kind_is_remote(enum instance_kind kind)
{
	return kind == INSTANCE_VM || instance_kind_is_far(kind);
}

bool instance_kind_is_far(enum instance_kind kind)
{
	return kind == INSTANCE_EC2 || kind == INSTANCE_GCE || kind == INSTANCE_VSPHERE;
}

bool instance_is_remote(const struct instance *i)
{
	while (!instance_is_own(i) && i->parent)
		i = i->parent;
	return i->provider->ops->remote;
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
