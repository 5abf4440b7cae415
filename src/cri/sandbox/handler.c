/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/handler.h"

#include "base/text/str.h"
#include "instance/choose.h"
#include "instance/instance.h"

const struct cri_handler cri_handlers[] = {
	{ "", INSTANCE_CELL },   { "cell", INSTANCE_CELL }, { "vm", INSTANCE_VM },
	{ "ec2", INSTANCE_EC2 }, { "gce", INSTANCE_GCE },   { "vsphere", INSTANCE_VSPHERE },
};
const size_t cri_n_handlers = ARRAY_SIZE(cri_handlers);

int cri_handler_find(const char *field, const char *name, const struct cri_handler **ret,
		     struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(cri_handlers); i++) {
		if (!str_eq(cri_handlers[i].name, name))
			continue;
		*ret = &cri_handlers[i];
		return 0;
	}
	return error_field(err, ERROR_INVALID, field,
			   "there is no runtime handler \"%.80s\"; there are \"cell\", \"vm\", "
			   "\"ec2\", \"gce\" and \"vsphere\"",
			   name);
}

int cri_handler_check(const struct cri_handler *h, const struct instances *instances,
		      struct error *err)
{
	struct instance_choice choice;

	return instances_choose(instances, NULL, h->kind, &choice, err);
}
