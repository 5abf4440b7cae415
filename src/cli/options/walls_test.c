/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/walls.h"

#include "base/text/str.h"
#include "cli/table/work_options.h"
#include "unit.h"

static const struct arg_option options[] = { OPTIONS_LIMITS, { NULL, 0, NULL, NULL } };

/* What the words, parted by blanks, ask for. */
static int take(const char *line, Aurae__Runtime__V0__Resources *ret, struct error *err)
{
	Aurae__Runtime__V0__Resources *said;
	struct args args = ARGS_INIT;
	char copy[128], *argv[8], *rest = copy;
	int argc = 0, r;

	*err = (struct error)ERROR_INIT;
	(void)str_copy(copy, sizeof(copy), line);
	while (argc < 8 && (argv[argc] = strsep(&rest, " ")))
		argc++;
	r = args_parse(&args, options, NULL, ARGS_VERBATIM_NEVER, argc, argv, err);
	if (r == 0)
		r = walls_limits(&said, ret, &args, err);
	args_done(&args);
	return r;
}

static void numbers_of_docker(void)
{
	Aurae__Runtime__V0__Resources m;
	struct error err;

	CHECK_INT(take("--cpu-shares 1024", &m, &err), 0);
	CHECK_INT(m.cpu_weight, 100);
	CHECK_INT(take("--cpu-shares 262144", &m, &err), 0);
	CHECK_INT(m.cpu_weight, 10000);
	CHECK_INT(take("--cpu-quota 50000 --cpu-period 200000", &m, &err), 0);
	CHECK_INT(m.cpu_quota, 50000);
	CHECK_INT(m.cpu_period, 200000);
	CHECK_INT(take("--cpu-quota -1", &m, &err), 0);
	CHECK_INT(m.cpu_quota, -1);
	CHECK_INT(take("--memory 64m --memory-swap 96m", &m, &err), 0);
	CHECK_INT(m.memory_swap, 32 << 20);
	CHECK(!m.no_swap);
	CHECK_INT(take("--memory 64m --memory-swap 64m", &m, &err), 0);
	CHECK_INT(m.memory_swap, 0);
	CHECK(m.no_swap);
	CHECK_INT(take("--memory 64m --memory-swap -1", &m, &err), 0);
	CHECK(m.memory_swap == UINT64_MAX && !m.no_swap);
}

static void what_cannot_be(void)
{
	static const struct {
		const char *line, *words;
	} cases[] = {
		{ "--cpu-shares 1", "--cpu-shares is 2 to 262144" },
		{ "--cpu-quota 999", "--cpu-quota is microseconds, from 1000, or -1" },
		{ "--cpu-period 1000001", "--cpu-period is microseconds, 1000 to 1000000" },
		{ "--cpus 1 --cpu-quota 5000", "--cpu-quota says what --cpus says" },
		{ "--cpus 1 --cpu-period 5000", "--cpu-period says what --cpus says" },
		{ "--cpu-weight 1 --cpu-shares 5", "--cpu-shares says what --cpu-weight says" },
		{ "--memory 1m --swap 1m --memory-swap 2m", "--memory-swap says what --swap says" },
		{ "--memory-swap 64m", "give --memory too" },
		{ "--memory none --memory-swap 64m", "give --memory too" },
		{ "--memory 64m --memory-swap 63m", "at least that of --memory" },
	};
	Aurae__Runtime__V0__Resources m;
	struct error err;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK(take(cases[i].line, &m, &err) < 0);
		CHECK(strstr(error_text(&err), cases[i].words));
		CHECK_INT(err.kind, ERROR_INVALID);
	}
}

UNIT_MAIN({ "numbers of docker", numbers_of_docker }, { "what cannot be", what_cannot_be })
