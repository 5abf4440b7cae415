/* SPDX-License-Identifier: Apache-2.0 */
#include "aurae/check.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/macros.h"
#include "base/memory/arena.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"

#define CHECK_EXECUTABLE_NAME_MAX 256
#define CHECK_COMMAND_MAX 131071 /* what the kernel takes as one argument */
#define CHECK_DESCRIPTION_MAX 4096
#define CHECK_LIMITS 8
#define CHECK_PERIOD_DEFAULT 100000

int aurae_check_name(struct arena *a, const char *field, const char *name, const char **ret,
		     struct error *err)
{
	const char *from = name + strspn(name, "/");
	size_t n = strlen(from);

	while (n > 0 && from[n - 1] == '/')
		n--;
	if (n == 0)
		return error_field(err, ERROR_PRECONDITION, field, "required");
	if (n <= NAME_PATH_MAX) {
		*ret = arena_printf(a, "%.*s", (int)n, from);
		if (!*ret)
			return error_set(err, -ENOMEM, "%s", field);
		if (name_is_path(*ret))
			return 0;
	}
	return error_field(err, ERROR_PRECONDITION, field,
			   "\"%.200s\" must be 1 to %d labels with '/' between them, each of 1 to "
			   "%d of a-z, A-Z, 0-9 and '-', neither first nor last a '-'",
			   name, NAME_DEPTH_MAX, NAME_LABEL_MAX);
}

static int check_required(const char *field, const char *text, size_t max, struct error *err)
{
	if (str_empty(text))
		return error_field(err, ERROR_PRECONDITION, field, "required");
	if (strlen(text) > max)
		return error_field(err, ERROR_PRECONDITION, field, "must be at most %zu bytes",
				   max);
	return 0;
}

int aurae_check_executable(const Aurae__Cells__V0__Executable *e, struct error *err)
{
	int r;

	if (!e)
		return error_field(err, ERROR_PRECONDITION, "executable", "required");
	r = check_required("executable.name", e->name, CHECK_EXECUTABLE_NAME_MAX, err);
	if (r == 0)
		r = check_required("executable.command", e->command, CHECK_COMMAND_MAX, err);
	if (r == 0 && !str_empty(e->description))
		r = check_required("executable.description", e->description, CHECK_DESCRIPTION_MAX,
				   err);
	return r;
}

/* ---- limits ---- */

/* Which field is written to which file. */
static const char *const check_files[][2] = {
	{ "cell.cpu.weight", "cpu.weight" },   { "cell.cpu.max", "cpu.max" },
	{ "cell.cpuset.cpus", "cpuset.cpus" }, { "cell.cpuset.mems", "cpuset.mems" },
	{ "cell.memory.min", "memory.min" },   { "cell.memory.low", "memory.low" },
	{ "cell.memory.high", "memory.high" }, { "cell.memory.max", "memory.max" },
};

struct check_list {
	struct arena *arena;
	int base_fd;
	char **words;
	size_t n;
};

static int check_add(struct check_list *l, const char *field, const char *file, const char *value,
		     struct error *err)
{
	int controller = cgroup_controller_of(file);

	if (controller >= 0 && !(cgroup_controllers(l->base_fd) >> controller & 1)) {
		int r = cgroup_refuse_controller(l->base_fd, (enum cgroup_controller)controller,
						 err);

		return error_wrap_field(err, r, field);
	}
	l->words[l->n] = arena_printf(l->arena, "%s=%s", file, value);
	return l->words[l->n++] ? 0 : error_set(err, -ENOMEM, "%s", field);
}

static int check_add_number(struct check_list *l, const char *field, const char *file,
			    int64_t value, bool no_limit, struct error *err)
{
	char text[24];

	if (value < 0)
		return error_field(err, ERROR_PRECONDITION, field,
				   "%lld is less than the minimum, 0", (long long)value);
	(void)str_printf(text, sizeof(text), "%lld", (long long)value);
	return check_add(l, field, file, no_limit && value == 0 ? "max" : text, err);
}

static int check_cpu(struct check_list *l, const Aurae__Cells__V0__CpuController *cpu,
		     struct error *err)
{
	uint64_t period = cpu->period_set_case ? cpu->period : CHECK_PERIOD_DEFAULT;
	int64_t max = cpu->max_set_case ? cpu->max : 0;
	char text[64];
	int r = 0;

	if (cpu->weight_set_case && (cpu->weight < 1 || cpu->weight > 10000))
		return error_field(err, ERROR_PRECONDITION, "cell.cpu.weight",
				   "%llu is not within 1 and 10000",
				   (unsigned long long)cpu->weight);
	if (max < 0)
		return error_field(err, ERROR_PRECONDITION, "cell.cpu.max",
				   "%lld is less than the minimum, 0", (long long)max);
	if (cpu->weight_set_case) {
		(void)str_printf(text, sizeof(text), "%llu", (unsigned long long)cpu->weight);
		r = check_add(l, "cell.cpu.weight", "cpu.weight", text, err);
	}
	if (r < 0 || (!cpu->max_set_case && !cpu->period_set_case))
		return r;
	if (max == 0)
		(void)str_printf(text, sizeof(text), "max %llu", (unsigned long long)period);
	else
		(void)str_printf(text, sizeof(text), "%lld %llu", (long long)max,
				 (unsigned long long)period);
	return check_add(l, "cell.cpu.max", "cpu.max", text, err);
}

/* Digits with '-' and ',' between them, as Aurae's daemon takes them: of a list that is none beyond
 * that the kernel says so. */
static bool check_is_list(const char *s)
{
	if (strlen(s) > 255)
		return false;
	while (*s) {
		if (!isdigit((unsigned char)*s++))
			return false;
		if (*s == '-') {
			if (!isdigit((unsigned char)s[1]))
				return false;
			s += 2;
		}
		if (*s == ',')
			s++;
	}
	return true;
}

static int check_add_list(struct check_list *l, const char *field, const char *file,
			  const char *list, struct error *err)
{
	if (!check_is_list(list))
		return error_field(err, ERROR_PRECONDITION, field,
				   "\"%.64s\" must be a list such as 0-3,7", list);
	return *list ? check_add(l, field, file, list, err) : 0;
}

static int check_cpuset(struct check_list *l, const Aurae__Cells__V0__CpusetController *set,
			struct error *err)
{
	int r = 0;

	if (set->cpus_set_case)
		r = check_add_list(l, "cell.cpuset.cpus", "cpuset.cpus", set->cpus, err);
	if (r == 0 && set->mems_set_case)
		r = check_add_list(l, "cell.cpuset.mems", "cpuset.mems", set->mems, err);
	return r;
}

/* A limit that may kill comes last. */
static int check_memory(struct check_list *l, const Aurae__Cells__V0__MemoryController *m,
			struct error *err)
{
	int r = 0;

	if (m->min_set_case)
		r = check_add_number(l, "cell.memory.min", "memory.min", m->min, false, err);
	if (r == 0 && m->low_set_case)
		r = check_add_number(l, "cell.memory.low", "memory.low", m->low, false, err);
	if (r == 0 && m->high_set_case)
		r = check_add_number(l, "cell.memory.high", "memory.high", m->high, true, err);
	if (r == 0 && m->max_set_case)
		r = check_add_number(l, "cell.memory.max", "memory.max", m->max, true, err);
	return r;
}

int aurae_check_limits(struct arena *a, const Aurae__Cells__V0__Cell *cell, int base_fd,
		       char ***ret, struct error *err)
{
	struct check_list l = { .arena = a, .base_fd = base_fd };
	int r = 0;

	*ret = NULL;
	l.words = arena_zalloc(a, CHECK_LIMITS + 1, sizeof(*l.words));
	if (!l.words)
		return error_set(err, -ENOMEM, "cell");
	if (cell->cpu)
		r = check_cpu(&l, cell->cpu, err);
	if (r == 0 && cell->cpuset)
		r = check_cpuset(&l, cell->cpuset, err);
	if (r == 0 && cell->memory)
		r = check_memory(&l, cell->memory, err);
	if (r == 0 && l.n > 0)
		*ret = l.words;
	return r;
}

void aurae_blame_limit(struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(check_files); i++)
		if (str_eq(err->field, check_files[i][1])) {
			(void)error_wrap_field(err, err->code, check_files[i][0]);
			err->kind = ERROR_PRECONDITION;
			return;
		}
}
