/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/convert_groups.h"

#include <stdint.h>
#include <stddef.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "isolate/cgroup/process.h"
#include "isolate/cgroup/usage.h"
#include "unit.h"

static void usage_survives(void)
{
	struct usage from, to;
	Nacre__Instance__V1__GroupUsage m;

	/* Each field another number, as far as it travels. */
	memset(&from, 0, sizeof(from));
	from.cpu_total_us = 1;
	from.cpu_user_us = 2;
	from.cpu_system_us = 3;
	from.cpu_throttled_us = 4;
	from.memory_current = UINT64_MAX;
	from.memory_peak = 6;
	from.memory_limit = 7;
	from.memory_file = 8;
	from.memory_anon = 9;
	from.oom_kills = 10;
	from.pids_current = 11;
	from.pids_limit = 12;
	from.read_bytes = 13;
	from.written_bytes = 14;
	from.reads = 15;
	from.writes = 16;
	from.has_memory = true;
	from.has_io = true;
	convert_group_usage(&m, &from);
	convert_group_usage_back(&to, &m);
	/* Around the flags, behind which there is padding. */
	CHECK_INT(memcmp(&from, &to, offsetof(struct usage, has_memory)), 0);
	CHECK_INT(memcmp(&from.memory_current, &to.memory_current,
			 sizeof(from) - offsetof(struct usage, memory_current)),
		  0);
	CHECK(to.has_memory && to.has_io);
	from.has_memory = false;
	from.has_pids = true;
	from.has_io = false;
	convert_group_usage(&m, &from);
	convert_group_usage_back(&to, &m);
	CHECK(!to.has_memory && to.has_pids && !to.has_io);
}

static void a_process_survives(void)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct process from = { .pid = 70,
				.inner_pid = 7,
				.parent = 60,
				.uid = UINT32_MAX,
				.state = 'S',
				.cpu_us = UINT64_MAX,
				.memory = 4096,
				.command = "sleep 1" };
	Nacre__Instance__V1__GroupProcess m;
	struct process to;

	if (convert_group_process(&arena, &m, &from) < 0)
		return;
	convert_group_process_back(&to, &m);
	CHECK(to.pid == 0 && to.parent == 0);
	CHECK_INT(to.inner_pid, 7);
	CHECK(to.uid == UINT32_MAX && to.state == 'S');
	CHECK(to.cpu_us == UINT64_MAX && to.memory == 4096);
	CHECK_STR(to.command, "sleep 1");
}

static void what_a_stranger_says_can_be_shown(void)
{
	char command[2 * PROCESS_COMMAND_MAX];
	Nacre__Instance__V1__GroupProcess m;
	struct process to;
	char none[] = "", escape[] = "\033";

	memset(command, 'x', sizeof(command) - 1);
	command[sizeof(command) - 1] = '\0';
	command[0] = '\033';
	command[1] = '\n';
	nacre__instance__v1__group_process__init(&m);
	m.command = command;
	m.state = escape;
	m.inner_pid = INT64_MIN;
	convert_group_process_back(&to, &m);
	CHECK_INT(strlen(to.command), PROCESS_COMMAND_MAX - 1);
	CHECK_INT(strncmp(to.command, "??x", 3), 0);
	CHECK_INT(to.state, '?');
	CHECK_INT(to.inner_pid, 0);
	m.inner_pid = INT64_MAX;
	m.state = none;
	m.command = none;
	convert_group_process_back(&to, &m);
	CHECK_INT(to.inner_pid, 0);
	CHECK_INT(to.state, '?');
	CHECK_STR(to.command, "");
}

UNIT_MAIN({ "usage survives the wire", usage_survives },
	  { "a process survives the wire", a_process_survives },
	  { "what a stranger says can be shown", what_a_stranger_says_can_be_shown })
