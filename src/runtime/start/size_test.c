/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/size.h"

#include <stdint.h>
#include <string.h>

#include "base/macros.h"
#include "isolate/cgroup/limits.h"
#include "unit.h"

#define MIB ((uint64_t)1 << 20)

static Aurae__Runtime__V0__Resources limits(uint64_t memory, int64_t quota, uint64_t period)
{
	Aurae__Runtime__V0__Resources r = AURAE__RUNTIME__V0__RESOURCES__INIT;

	r.memory = memory;
	r.cpu_quota = quota;
	r.cpu_period = period;
	return r;
}

static void what_limits_ask_for(void)
{
	Aurae__Runtime__V0__Resources whole = limits(64 * MIB, 150000, 0);
	Aurae__Runtime__V0__Resources one = limits(10 * MIB, 20000, 10000);
	Aurae__Runtime__V0__Resources none = limits(LIMIT_MAX, -1, 0);
	Aurae__Runtime__V0__Container a = AURAE__RUNTIME__V0__CONTAINER__INIT, b = a, c = a;
	Aurae__Runtime__V0__Container *all[] = { &a, &b, &c };
	struct instance_size s;

	a.resources = &one;
	b.resources = &none;
	s = size_of(&whole, all, ARRAY_SIZE(all));
	CHECK(s.memory == 64 * MIB && s.cpus == 2);
	CHECK(s.memory_of_parts == 10 * MIB && s.cpus_of_parts == 2);
	s = size_of(NULL, NULL, 0);
	CHECK(s.memory == 0 && s.cpus == 0 && s.memory_of_parts == 0 && s.cpus_of_parts == 0);
	s = size_of(&none, all, 0);
	CHECK(s.memory == 0 && s.cpus == 0);
	/* Nothing runs over. */
	one.memory = UINT64_MAX - 1;
	one.cpu_quota = INT64_MAX;
	b.resources = &one;
	s = size_of(NULL, all, 2);
	CHECK(s.memory_of_parts == UINT64_MAX && s.cpus_of_parts == 65536);
}

static void what_a_machine_holds(void)
{
	struct instance machine = {
		.path = "v", .machine = { .memory = 256 * MIB, .room = 90 * MIB, .cpus = 1 }
	};
	struct instance below = { .path = "v/a", .parent = &machine }, cell = { .path = "c" };
	Aurae__Runtime__V0__Resources r = limits(90 * MIB, 100000, 0);
	struct error err = ERROR_INIT;

	CHECK_INT(size_check(&machine, &r, "resources", &err), 0);
	CHECK_INT(size_check(&below, &r, "resources", &err), 0);
	r = limits(90 * MIB + 1, 0, 0);
	CHECK_INT(size_check(NULL, &r, "resources", &err), 0);
	CHECK_INT(size_check(&cell, &r, "resources", &err), 0);
	CHECK(size_check(&below, &r, "containers[1].resources", &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	CHECK_STR(err.field, "containers[1].resources.memory");
	CHECK(strstr(error_text(&err), "94371841") && strstr(error_text(&err), "94371840") &&
	      strstr(error_text(&err), "256 MiB"));
	/* Without a limit the machine is the wall. */
	r = limits(LIMIT_MAX, -1, 0);
	CHECK_INT(size_check(&machine, &r, "resources", &err), 0);
	/* Past the host's processors there is nothing to limit: none is refused for that alone. */
	machine.machine.cpus = 65536;
	r = limits(0, INT64_MAX, 0);
	CHECK_INT(size_check(&machine, &r, "resources", &err), 0);
	machine.machine.cpus = 0;
	r = limits(0, 1000, 0);
	err = (struct error)ERROR_INIT;
	CHECK(size_check(&machine, &r, "resources", &err) < 0);
	CHECK_STR(err.field, "resources.cpu_quota");
}

UNIT_MAIN({ "what limits ask for", what_limits_ask_for },
	  { "what a machine holds", what_a_machine_holds })
