/* SPDX-License-Identifier: Apache-2.0 */
#include "aurae/check.h"

#include "base/memory/arena.h"
#include "unit.h"

static void names_are_trimmed_and_checked(void)
{
	static const char *const good[][2] = {
		{ "a", "a" }, { "/a/b/c/", "a/b/c" }, { "//web-1", "web-1" }, { "0", "0" }
	};
	static const char *const bad[] = {
		"",   "/", "a//b", "a_b",  "prod/web_1",       "a.b", "-a", "a-",
		"A_", "_", "a b",  "../a", "1/2/3/4/5/6/7/8/9"
	};
	struct arena a = ARENA_INIT;
	struct error err = ERROR_INIT;
	const char *name;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		CHECK_INT(aurae_check_name(&a, "cell.name", good[i][0], &name, &err), 0);
		CHECK_STR(name, good[i][1]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		CHECK(aurae_check_name(&a, "cell.name", bad[i], &name, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
		CHECK_STR(err.field, "cell.name");
	}
	arena_done(&a);
}

static void executables_need_a_name_and_a_command(void)
{
	Aurae__Cells__V0__Executable e = AURAE__CELLS__V0__EXECUTABLE__INIT;
	struct error err = ERROR_INIT;
	char name[] = "any name_at all", command[] = "true";

	CHECK(aurae_check_executable(NULL, &err) < 0);
	CHECK_STR(err.field, "executable");
	CHECK(aurae_check_executable(&e, &err) < 0);
	CHECK_STR(err.field, "executable.name");
	e.name = name;
	CHECK(aurae_check_executable(&e, &err) < 0);
	CHECK_STR(err.field, "executable.command");
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	e.command = command;
	CHECK_INT(aurae_check_executable(&e, &err), 0);
}

/* What needs no controller to be refused. */
static void limits_out_of_range_are_refused(void)
{
	static const char *const lists[] = { "foo", "1:2", "1..3", "1,foo;5", "0-", "1,,2", "-1" };
	Aurae__Cells__V0__Cell cell = AURAE__CELLS__V0__CELL__INIT;
	Aurae__Cells__V0__CpuController cpu = AURAE__CELLS__V0__CPU_CONTROLLER__INIT;
	Aurae__Cells__V0__CpusetController set = AURAE__CELLS__V0__CPUSET_CONTROLLER__INIT;
	Aurae__Cells__V0__MemoryController memory = AURAE__CELLS__V0__MEMORY_CONTROLLER__INIT;
	static const uint64_t weights[] = { 0, 10001 };
	struct arena a = ARENA_INIT;
	struct error err = ERROR_INIT;
	char empty[] = "";
	char **words;

	CHECK_INT(aurae_check_limits(&a, &cell, -1, &words, &err), 0);
	CHECK(!words);
	cell.cpu = &cpu;
	cpu.weight_set_case = AURAE__CELLS__V0__CPU_CONTROLLER__WEIGHT_SET_WEIGHT;
	for (size_t i = 0; i < ARRAY_SIZE(weights); i++) {
		cpu.weight = weights[i];
		CHECK(aurae_check_limits(&a, &cell, -1, &words, &err) < 0);
		CHECK_STR(err.field, "cell.cpu.weight");
		CHECK_INT(err.kind, ERROR_PRECONDITION);
	}
	cpu.weight_set_case = AURAE__CELLS__V0__CPU_CONTROLLER__WEIGHT_SET__NOT_SET;
	cpu.max_set_case = AURAE__CELLS__V0__CPU_CONTROLLER__MAX_SET_MAX;
	cpu.max = -1;
	CHECK(aurae_check_limits(&a, &cell, -1, &words, &err) < 0);
	CHECK_STR(err.field, "cell.cpu.max");
	cell.cpu = NULL;
	cell.cpuset = &set;
	set.cpus_set_case = AURAE__CELLS__V0__CPUSET_CONTROLLER__CPUS_SET_CPUS;
	for (size_t i = 0; i < ARRAY_SIZE(lists); i++) {
		set.cpus = (char *)(uintptr_t)lists[i];
		CHECK(aurae_check_limits(&a, &cell, -1, &words, &err) < 0);
		CHECK_STR(err.field, "cell.cpuset.cpus");
	}
	set.cpus = empty;
	CHECK_INT(aurae_check_limits(&a, &cell, -1, &words, &err), 0);
	cell.cpuset = NULL;
	cell.memory = &memory;
	memory.low_set_case = AURAE__CELLS__V0__MEMORY_CONTROLLER__LOW_SET_LOW;
	memory.low = -1;
	CHECK(aurae_check_limits(&a, &cell, -1, &words, &err) < 0);
	CHECK_STR(err.field, "cell.memory.low");
	arena_done(&a);
}

static void the_kernel_is_blamed_by_field(void)
{
	struct error err = ERROR_INIT;

	(void)error_field(&err, ERROR_INVALID, "cpuset.cpus", "no");
	aurae_blame_limit(&err);
	CHECK_STR(err.field, "cell.cpuset.cpus");
	CHECK_INT(err.kind, ERROR_PRECONDITION);
}

UNIT_MAIN({ "names are trimmed and checked", names_are_trimmed_and_checked },
	  { "executables need a name and a command", executables_need_a_name_and_a_command },
	  { "limits out of range are refused", limits_out_of_range_are_refused },
	  { "errors name the field of the message", the_kernel_is_blamed_by_field })
