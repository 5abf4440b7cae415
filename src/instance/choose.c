/* SPDX-License-Identifier: Apache-2.0 */
#include "instance/choose.h"

#include "base/text/str.h"
#include "instance/nested.h"
#include "instance/provider.h"

static int choose_wish(const struct instances *all, const struct instance *parent,
		       enum instance_kind wish, struct instance_choice *ret, struct error *err)
{
	struct provider *p = all->config.providers[wish];
	const char *word = instance_kind_word(wish);
	int r;

	if (!p)
		return error_refuse(err, ERROR_PRECONDITION,
				    "this build has no provider \"%s\", only \"cell\"", word);
	if (parent && !instance_kind_can(wish, INSTANCE_LOCAL_PROCESS) && !p->ops->plan_nested)
		return error_refuse(
			err, ERROR_PRECONDITION,
			"an instance of kind \"%s\" is made by the node itself, and not in %s",
			word, parent->path);
	r = p->ops->plan(p, err);
	if (r == 0 && parent && wish != INSTANCE_CELL)
		r = nested_check(all, parent, err);
	if (r < 0)
		return r;
	*ret = (struct instance_choice){ .kind = wish };
	(void)str_copy(ret->reason, sizeof(ret->reason), "it was asked for by name");
	return 0;
}

static void choose_cell(struct instance_choice *ret, const char *reason)
{
	ret->kind = INSTANCE_CELL;
	(void)str_printf(ret->reason, sizeof(ret->reason), "%s, so auto is an isolated cell",
			 reason);
}

static void choose_auto(const struct instances *all, const struct instance *parent,
			struct instance_choice *ret)
{
	struct provider *vm = all->config.providers[INSTANCE_VM];
	char why[INSTANCE_KIND_REASON_MAX - sizeof(", so auto is an isolated cell")];

	if (parent)
		choose_cell(ret,
			    "below another instance one of its own kernel is made by name only");
	else if (!vm)
		choose_cell(ret, "this build has no microVMs");
	else if (!vm->ops->is_preferred(vm, why, sizeof(why)))
		choose_cell(ret, why);
	else {
		ret->kind = INSTANCE_VM;
		(void)str_copy(ret->reason, sizeof(ret->reason), why);
	}
}

int instances_choose(const struct instances *all, const struct instance *parent,
		     enum instance_kind wish, struct instance_choice *ret, struct error *err)
{
	if (parent && instance_is_node(parent))
		parent = NULL;
	if (wish != INSTANCE_KIND_COUNT)
		return choose_wish(all, parent, wish, ret, err);
	choose_auto(all, parent, ret);
	return 0;
}

void instances_look_warm(const struct instances *all, struct provider_warm *ret)
{
	struct provider *vm = all->config.providers[INSTANCE_VM];

	*ret = (struct provider_warm){ .wanted = 0 };
	if (vm && vm->ops->look)
		vm->ops->look(vm, ret);
}
