/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/config/words.h"

#include <errno.h>
#include <linux/ioprio.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <signal.h>
#include <strings.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/resource.h>

#include "base/text/parse.h"
#include "base/text/signal_name.h"
#include "base/text/str.h"

/* Of kernels that are newer than these headers. */
#define MEM_WEIGHTED_INTERLEAVE 6
#define POLICY_ISO 4
#define POLICY_DEADLINE 6

const struct word words_rlimits[] = {
	{ "RLIMIT_AS", RLIMIT_AS },
	{ "RLIMIT_CORE", RLIMIT_CORE },
	{ "RLIMIT_CPU", RLIMIT_CPU },
	{ "RLIMIT_DATA", RLIMIT_DATA },
	{ "RLIMIT_FSIZE", RLIMIT_FSIZE },
	{ "RLIMIT_LOCKS", RLIMIT_LOCKS },
	{ "RLIMIT_MEMLOCK", RLIMIT_MEMLOCK },
	{ "RLIMIT_MSGQUEUE", RLIMIT_MSGQUEUE },
	{ "RLIMIT_NICE", RLIMIT_NICE },
	{ "RLIMIT_NOFILE", RLIMIT_NOFILE },
	{ "RLIMIT_NPROC", RLIMIT_NPROC },
	{ "RLIMIT_RSS", RLIMIT_RSS },
	{ "RLIMIT_RTPRIO", RLIMIT_RTPRIO },
	{ "RLIMIT_RTTIME", RLIMIT_RTTIME },
	{ "RLIMIT_SIGPENDING", RLIMIT_SIGPENDING },
	{ "RLIMIT_STACK", RLIMIT_STACK },
	{ NULL, 0 },
};

const struct word words_policies[] = {
	{ "SCHED_OTHER", SCHED_OTHER },
	{ "SCHED_FIFO", SCHED_FIFO },
	{ "SCHED_RR", SCHED_RR },
	{ "SCHED_BATCH", SCHED_BATCH },
	{ "SCHED_ISO", POLICY_ISO },
	{ "SCHED_IDLE", SCHED_IDLE },
	{ "SCHED_DEADLINE", POLICY_DEADLINE },
	{ NULL, 0 },
};

const struct word words_sched_flags[] = {
	{ "SCHED_FLAG_RESET_ON_FORK", 0x01 },  { "SCHED_FLAG_RECLAIM", 0x02 },
	{ "SCHED_FLAG_DL_OVERRUN", 0x04 },     { "SCHED_FLAG_KEEP_POLICY", 0x08 },
	{ "SCHED_FLAG_KEEP_PARAMS", 0x10 },    { "SCHED_FLAG_UTIL_CLAMP_MIN", 0x20 },
	{ "SCHED_FLAG_UTIL_CLAMP_MAX", 0x40 }, { NULL, 0 },
};

const struct word words_io_classes[] = {
	{ "IOPRIO_CLASS_RT", IOPRIO_CLASS_RT },
	{ "IOPRIO_CLASS_BE", IOPRIO_CLASS_BE },
	{ "IOPRIO_CLASS_IDLE", IOPRIO_CLASS_IDLE },
	{ NULL, 0 },
};

const struct word words_mem_modes[] = {
	{ "MPOL_DEFAULT", MPOL_DEFAULT },
	{ "MPOL_BIND", MPOL_BIND },
	{ "MPOL_INTERLEAVE", MPOL_INTERLEAVE },
	{ "MPOL_PREFERRED", MPOL_PREFERRED },
	{ "MPOL_PREFERRED_MANY", MPOL_PREFERRED_MANY },
	{ "MPOL_LOCAL", MPOL_LOCAL },
	{ "MPOL_WEIGHTED_INTERLEAVE", MEM_WEIGHTED_INTERLEAVE },
	{ NULL, 0 },
};

const struct word words_mem_flags[] = {
	{ "MPOL_F_NUMA_BALANCING", MPOL_F_NUMA_BALANCING },
	{ "MPOL_F_RELATIVE_NODES", MPOL_F_RELATIVE_NODES },
	{ "MPOL_F_STATIC_NODES", MPOL_F_STATIC_NODES },
	{ NULL, 0 },
};

const struct word words_domains[] = {
	{ "LINUX", PER_LINUX },
	{ "LINUX32", PER_LINUX32 },
	{ NULL, 0 },
};

const struct word words_propagation[] = {
	{ "shared", MS_SHARED },
	{ "rshared", MS_SHARED | MS_REC },
	{ "slave", MS_SLAVE },
	{ "rslave", MS_SLAVE | MS_REC },
	{ "private", MS_PRIVATE },
	{ "rprivate", MS_PRIVATE | MS_REC },
	{ "unbindable", MS_UNBINDABLE },
	{ "runbindable", MS_UNBINDABLE | MS_REC },
	{ NULL, 0 },
};

int word_find(const struct word *list, const char *name, uint64_t *ret)
{
	for (; list->name; list++)
		if (str_eq(list->name, name)) {
			*ret = list->value;
			return 0;
		}
	return -ENOENT;
}

int word_need(const struct word *list, const char *name, const char *field, uint64_t *ret,
	      struct error *err)
{
	if (word_find(list, name, ret) == 0)
		return 0;
	return error_field(err, ERROR_INVALID, field, "\"%.60s\" is not known", name);
}

int word_flags(const struct word *list, const char *const *names, size_t n, const char *field,
	       uint64_t *ret, struct error *err)
{
	uint64_t all = 0, one = 0;

	for (size_t i = 0; i < n; i++) {
		int r = word_need(list, names[i], field, &one, err);

		if (r < 0)
			return r;
		all |= one;
	}
	*ret = all;
	return 0;
}

int word_signal(const char *name, int *ret, struct error *err)
{
	int number = signal_number(name);

	if (number < 0)
		return error_refuse(err, ERROR_INVALID, "signal: \"%.60s\" is not known", name);
	*ret = number;
	return 0;
}

/* One number of a list, up to one of its separators. */
static int bits_number(const char **at, uint64_t *ret)
{
	char digits[8];
	size_t n = strspn(*at, "0123456789");

	if (n == 0 || n >= sizeof(digits))
		return -EINVAL;
	(void)str_printf(digits, sizeof(digits), "%.*s", (int)n, *at);
	*at += n;
	return parse_u64(digits, 0, UINT32_MAX, ret);
}

int word_bits(const char *list, const char *field, uint64_t *ret, size_t n_words, struct error *err)
{
	for (const char *at = list;;) {
		uint64_t first = 0, last = 0;

		if (bits_number(&at, &first) < 0)
			break;
		last = first;
		if (*at == '-') {
			at++;
			if (bits_number(&at, &last) < 0 || last < first)
				break;
		}
		if (last >= n_words * 64)
			return error_field(err, ERROR_EXHAUSTED, field, "%llu is more than %zu",
					   (unsigned long long)last, n_words * 64 - 1);
		for (; first <= last; first++)
			ret[first / 64] |= UINT64_C(1) << first % 64;
		if (!*at)
			return 0;
		if (*at++ != ',')
			break;
	}
	return error_field(err, ERROR_INVALID, field, "\"%.60s\" is no list such as 0-3,7", list);
}
