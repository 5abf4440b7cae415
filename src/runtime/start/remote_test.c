/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/remote.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "instance/provider.h"
#include "pod/workload/make.h"
#include "unit.h"

static struct provider provider;
static struct instance machine = { .path = "v",
				   .provider = &provider,
				   .choice = { .kind = INSTANCE_VM } };
static struct instance inside = { .path = "v/w", .parent = &machine };
static struct instance cell = { .path = "a", .provider = &provider };
static char *limits[] = { (char[]){ "memory.max=1" }, NULL };

static const struct instance_choice vm = { .kind = INSTANCE_VM };
static const struct instance_choice plain = { .kind = INSTANCE_CELL };

static int run(struct instance *parent, enum workload_kind kind, const struct instance_choice *how,
	       bool limited, const char *source, struct error *err)
{
	const struct pod_mount_spec mounts[] = {
		{ .field = "containers[0].mounts[0].source" },
		{ .field = "containers[0].mounts[1].source",
		  .source = source,
		  .is_identity = source && str_eq(source, "identity") },
	};
	const struct pod_container_spec c = { .mounts = mounts, .n_mounts = ARRAY_SIZE(mounts) };
	const struct workload_spec spec = {
		.kind = kind,
		.parent = parent,
		.choice = *how,
		.containers = &c,
		.n_containers = 1,
		.limits = limited ? limits : NULL,
	};

	*err = (struct error)ERROR_INIT;
	return remote_check_run(&spec, err);
}

static void what_a_pod_may_have(void)
{
	struct error err;

	CHECK_INT(run(NULL, WORKLOAD_POD, &vm, false, NULL, &err), 0);
	CHECK_INT(run(NULL, WORKLOAD_POD, &plain, true, "/etc", &err), 0);
	CHECK_INT(run(NULL, WORKLOAD_POD, &vm, true, NULL, &err), 0);
	CHECK_INT(run(NULL, WORKLOAD_POD, &vm, false, "/etc", &err), 0);
	CHECK_INT(run(NULL, WORKLOAD_POD, &plain, false, "identity", &err), 0);
	CHECK(run(NULL, WORKLOAD_POD, &vm, false, "identity", &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
}

/* The keeper in there sets the limits of a cell. */
static void what_is_below_a_machine(void)
{
	struct error err;

	CHECK_INT(run(&machine, WORKLOAD_CELL, &plain, true, NULL, &err), 0);
	CHECK(run(&inside, WORKLOAD_CELL, &plain, false, "/etc", &err) < 0);
	CHECK_INT(err.kind, ERROR_UNSUPPORTED);
	CHECK_STR(err.field, "containers[0].mounts[1].source");
	CHECK_INT(run(&machine, WORKLOAD_POD, &plain, true, NULL, &err), 0);
	CHECK_INT(run(&cell, WORKLOAD_CELL, &plain, true, "/etc", &err), 0);
	CHECK(!remote_will_be(NULL, &plain) && !remote_will_be(&cell, &plain));
	CHECK(!remote_will_be(NULL, NULL) && !remote_will_be(&cell, NULL));
	CHECK(remote_will_be(NULL, &vm) && remote_will_be(&inside, &plain));
	CHECK(remote_will_be(&machine, NULL));
}

static void requests_about_one(void)
{
	struct error err = ERROR_INIT;

	CHECK_INT(remote_refuse(NULL, "target", "not so far", &err), 0);
	CHECK_INT(remote_refuse(&cell, "target", "not so far", &err), 0);
	CHECK(remote_refuse(&inside, "target", "not so far", &err) < 0);
	CHECK_STR(error_text(&err), "target: v/w has a kernel of its own, not so far");
}

UNIT_MAIN({ "what a pod may have", what_a_pod_may_have },
	  { "what is below a machine", what_is_below_a_machine },
	  { "requests about one", requests_about_one })
