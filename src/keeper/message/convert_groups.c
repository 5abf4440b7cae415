/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/convert_groups.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "isolate/cgroup/process.h"
#include "isolate/cgroup/usage.h"

void convert_group_usage(Nacre__Instance__V1__GroupUsage *to, const struct usage *from)
{
	nacre__instance__v1__group_usage__init(to);
	to->cpu_total_us = from->cpu_total_us;
	to->cpu_user_us = from->cpu_user_us;
	to->cpu_system_us = from->cpu_system_us;
	to->cpu_throttled_us = from->cpu_throttled_us;
	to->has_memory = from->has_memory;
	to->memory_current = from->memory_current;
	to->memory_peak = from->memory_peak;
	to->memory_limit = from->memory_limit;
	to->memory_file = from->memory_file;
	to->memory_anon = from->memory_anon;
	to->oom_kills = from->oom_kills;
	to->has_pids = from->has_pids;
	to->pids_current = from->pids_current;
	to->pids_limit = from->pids_limit;
	to->has_io = from->has_io;
	to->read_bytes = from->read_bytes;
	to->written_bytes = from->written_bytes;
	to->reads = from->reads;
	to->writes = from->writes;
}

void convert_group_usage_back(struct usage *to, const Nacre__Instance__V1__GroupUsage *from)
{
	*to = (struct usage){
		.cpu_total_us = from->cpu_total_us,
		.cpu_user_us = from->cpu_user_us,
		.cpu_system_us = from->cpu_system_us,
		.cpu_throttled_us = from->cpu_throttled_us,
		.has_memory = from->has_memory,
		.memory_current = from->memory_current,
		.memory_peak = from->memory_peak,
		.memory_limit = from->memory_limit,
		.memory_file = from->memory_file,
		.memory_anon = from->memory_anon,
		.oom_kills = from->oom_kills,
		.has_pids = from->has_pids,
		.pids_current = from->pids_current,
		.pids_limit = from->pids_limit,
		.has_io = from->has_io,
		.read_bytes = from->read_bytes,
		.written_bytes = from->written_bytes,
		.reads = from->reads,
		.writes = from->writes,
	};
}

int convert_group_process(struct arena *a, Nacre__Instance__V1__GroupProcess *to,
			  struct process *from)
{
	nacre__instance__v1__group_process__init(to);
	to->inner_pid = from->inner_pid;
	to->uid = from->uid;
	to->state = arena_strndup(a, &from->state, 1);
	to->cpu_us = from->cpu_us;
	to->memory = from->memory;
	to->command = from->command;
	return to->state ? 0 : -ENOMEM;
}

void convert_group_process_back(struct process *to, const Nacre__Instance__V1__GroupProcess *from)
{
	char state = from->state[0];

	*to = (struct process){
		.inner_pid = from->inner_pid > 0 && from->inner_pid <= INT_MAX
				     ? (pid_t)from->inner_pid
				     : 0,
		.uid = from->uid,
		.state = (char)((state >= 'A' && state <= 'Z') || (state >= 'a' && state <= 'z')
					? state
					: '?'),
		.cpu_us = from->cpu_us,
		.memory = from->memory,
	};
	memcpy(to->command, from->command, MIN(strlen(from->command), sizeof(to->command) - 1));
	process_clean_command(to);
}
