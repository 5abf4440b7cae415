/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/walls.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "isolate/cgroup/limits.h"
#include "isolate/disk/ext4_file.h"

const struct walls walls_none;

/* ---- limits ---- */

/* "none" says that there is no limit. */
static int limit_size(const char *text, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return str_eq(text, "none") ? 0 : mount_words_size(text, ret);
}

static int limit_number(const char *text, uint64_t *ret)
{
	*ret = UINT64_MAX;
	return str_eq(text, "none") ? 0 : parse_u64(text, 1, UINT32_MAX, ret);
}

/* "1.5" CPUs as microseconds of every 100 milliseconds. */
static int limit_cpus(const char *text, Aurae__Runtime__V0__Resources *to)
{
	const char *dot = strchr(text, '.');
	_cleanup_str_ char *whole =
		xformat("%.*s", dot ? (int)(dot - text) : (int)strlen(text), text);
	uint64_t cpus, thousandths = 0;
	char digits[] = "000";

	if (str_eq(text, "none")) {
		to->cpu_quota = -1;
		return 0;
	}
	if (dot && (strlen(dot + 1) < 1 || strlen(dot + 1) > 3))
		return -EINVAL;
	if (dot)
		memcpy(digits, dot + 1, strlen(dot + 1));
	if (parse_u64(*whole ? whole : "0", 0, 1 << 20, &cpus) < 0 ||
	    strspn(digits, "0123456789") != 3)
		return -EINVAL;
	for (size_t i = 0; i < 3; i++)
		thousandths = 10 * thousandths + (uint64_t)(digits[i] - '0');
	to->cpu_quota = (int64_t)((1000 * cpus + thousandths) * 100);
	to->cpu_period = 100000;
	return to->cpu_quota >= 1000 ? 0 : -EINVAL;
}

static int limit_swap(const char *text, Aurae__Runtime__V0__Resources *to)
{
	to->no_swap = str_eq(text, "0");
	return to->no_swap ? 0 : limit_size(text, &to->memory_swap);
}

static int limit_memory(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_size(text, &to->memory);
}

static int limit_low(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_size(text, &to->memory_low);
}

static int limit_high(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_size(text, &to->memory_high);
}

static int limit_weight(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return parse_u64(text, 1, 10000, &to->cpu_weight);
}

static int limit_shares(const char *text, Aurae__Runtime__V0__Resources *to)
{
	uint64_t shares;
	int r = parse_u64(text, 2, 262144, &shares);

	to->cpu_weight = r == 0 ? limits_cpu_weight(shares) : 0;
	return r;
}

static int limit_quota(const char *text, Aurae__Runtime__V0__Resources *to)
{
	uint64_t quota = 0;
	int r = str_eq(text, "-1") ? 0 : parse_u64(text, 1000, INT64_MAX, &quota);

	to->cpu_quota = quota ? (int64_t)quota : -1;
	return r;
}

static int limit_period(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return parse_u64(text, 1000, 1000000, &to->cpu_period);
}

static int limit_pids(const char *text, Aurae__Runtime__V0__Resources *to)
{
	return limit_number(text, &to->pids);
}

static int limit_cpuset(const char *text, Aurae__Runtime__V0__Resources *to)
{
	to->cpuset_cpus = (char *)(uintptr_t)text;
	return 0;
}

static int limit_mems(const char *text, Aurae__Runtime__V0__Resources *to)
{
	to->cpuset_mems = (char *)(uintptr_t)text;
	return 0;
}

static const struct {
	const char *option, *form;
	int (*take)(const char *text, Aurae__Runtime__V0__Resources *to);
} walls_limit_options[] = {
	{ "memory", "a size such as 64m, or none", limit_memory },
	{ "memory-low", "a size such as 64m, or none", limit_low },
	{ "memory-high", "a size such as 64m, or none", limit_high },
	{ "swap", "a size such as 64m, 0 or none", limit_swap },
	{ "cpus", "a number such as 0.5 or 2, from 0.01, or none", limit_cpus },
	{ "cpu-weight", "1 to 10000", limit_weight },
	{ "cpu-shares", "2 to 262144", limit_shares },
	{ "cpu-quota", "microseconds, from 1000, or -1", limit_quota },
	{ "cpu-period", "microseconds, 1000 to 1000000", limit_period },
	{ "cpuset-cpus", "a list such as 0-3,7", limit_cpuset },
	{ "cpuset-mems", "a list such as 0,1", limit_mems },
	{ "pids-limit", "a number, or none", limit_pids },
};

/* As docker and podman count it: of memory and swap together. */
static int walls_memory_swap(const char *text, const struct args *a,
			     Aurae__Runtime__V0__Resources *to, struct error *err)
{
	uint64_t both;

	if (!args_value(a, "memory") || to->memory == UINT64_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "--memory-swap is memory and swap together: give --memory "
				    "too, or --swap, which is swap alone");
	if (str_eq(text, "-1")) {
		to->memory_swap = UINT64_MAX;
		return 0;
	}
	if (mount_words_size(text, &both) < 0 || both < to->memory)
		return error_refuse(err, ERROR_INVALID,
				    "--memory-swap is a size such as 128m, at least that of "
				    "--memory, or -1, not \"%s\"",
				    text);
	to->memory_swap = both - to->memory;
	to->no_swap = both == to->memory;
	return 0;
}

/* Two options for one field. */
static int walls_check_pairs(const struct args *a, struct error *err)
{
	static const char *const pairs[][2] = {
		{ "cpus", "cpu-quota" },
		{ "cpus", "cpu-period" },
		{ "cpu-weight", "cpu-shares" },
		{ "swap", "memory-swap" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++)
		if (args_value(a, pairs[i][0]) && args_value(a, pairs[i][1]))
			return error_refuse(err, ERROR_INVALID,
					    "--%s says what --%s says: give one", pairs[i][1],
					    pairs[i][0]);
	return 0;
}

int walls_limits(Aurae__Runtime__V0__Resources **ret, Aurae__Runtime__V0__Resources *to,
		 const struct args *a, struct error *err)
{
	const char *both = args_value(a, "memory-swap");
	int r = walls_check_pairs(a, err);

	aurae__runtime__v0__resources__init(to);
	*ret = NULL;
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_SIZE(walls_limit_options); i++) {
		const char *text = args_value(a, walls_limit_options[i].option);

		if (!text)
			continue;
		if (walls_limit_options[i].take(text, to) < 0)
			return error_refuse(err, ERROR_INVALID, "--%s is %s, not \"%s\"",
					    walls_limit_options[i].option,
					    walls_limit_options[i].form, text);
		*ret = to;
	}
	return both ? walls_memory_swap(both, a, to, err) : 0;
}

static int walls_disk(Aurae__Runtime__V0__Container *to, const struct args *a, struct error *err)
{
	const char *text = args_value(a, "disk");

	if (text && (mount_words_size(text, &to->disk) < 0 || to->disk < EXT4_FILE_MIN ||
		     to->disk > EXT4_FILE_MAX))
		return error_refuse(err, ERROR_INVALID,
				    "--disk is a size of 16m to 1t, such as 64m, not \"%s\"", text);
	return 0;
}

static void walls_put_mounts(struct walls *w, Aurae__Runtime__V0__Container *to)
{
	to->mounts = w->mounts.list;
	to->n_mounts = w->mounts.n;
	to->secret_env = w->secrets.variable_list;
	to->n_secret_env = w->secrets.n_variables;
	if (w->secrets.n_mounts == 0)
		return;
	w->all_mounts = xrealloc(NULL, w->mounts.n + w->secrets.n_mounts, sizeof(*w->all_mounts));
	for (size_t i = 0; i < w->mounts.n; i++)
		w->all_mounts[i] = w->mounts.list[i];
	for (size_t i = 0; i < w->secrets.n_mounts; i++)
		w->all_mounts[w->mounts.n + i] = &w->secrets.mounts[i];
	to->mounts = w->all_mounts;
	to->n_mounts = w->mounts.n + w->secrets.n_mounts;
}

int walls_take(struct walls *w, Aurae__Runtime__V0__Container *to, const struct args *a,
	       struct error *err)
{
	int r = mount_words_take(&w->mounts, a, err);

	if (r == 0)
		r = secret_words_take(&w->secrets, a, err);
	walls_put_mounts(w, to);
	to->read_only_root = args_flag(a, "read-only");
	if (r == 0)
		r = walls_disk(to, a, err);
	if (r == 0)
		r = security_options_take(&w->security, to, a, err);
	return r < 0 ? r : walls_limits(&to->resources, &w->resources, a, err);
}

void walls_done(struct walls *w)
{
	mount_words_done(&w->mounts);
	secret_words_done(&w->secrets);
	free(w->all_mounts);
	security_options_done(&w->security);
	*w = walls_none;
}
