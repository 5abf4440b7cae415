/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/privilege.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"

#define PRIVILEGE_STATUS_MAX 65536

const char *const privilege_lacks[1] = {
	"privilege for executables: their keeper has ended, and the next one could not be given "
	"more than the daemon has; a restart of the daemon while no executable or cell of the node "
	"runs makes one with everything"
};

struct privilege {
	uint64_t bounding;
	uint64_t filters;
};

static uint64_t privilege_number(const char *text, const char *key, int base)
{
	const char *at = strstr(text, key);

	return at ? strtoull(at + strlen(key), NULL, base) : 0;
}

static int privilege_of(struct privilege *ret, pid_t pid)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[48];
	int r;

	r = str_printf(path, sizeof(path), "/proc/%d/status", (int)pid);
	if (r < 0)
		return r;
	r = fd_read_file(AT_FDCWD, path, PRIVILEGE_STATUS_MAX, &b);
	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return r;
	/* Its first line, the name, has every line feed and backslash escaped. */
	ret->bounding = privilege_number((const char *)buf_data(&b), "\nCapBnd:", 16);
	/* Since 5.9. */
	ret->filters = privilege_number((const char *)buf_data(&b), "\nSeccomp_filters:", 10);
	return 0;
}

bool privilege_is_less(pid_t pid)
{
	struct privilege own, its;

	if (privilege_of(&own, getpid()) < 0 || privilege_of(&its, pid) < 0)
		return false;
	return own.bounding & ~its.bounding || its.filters > own.filters;
}

void privilege_raise_limits(void)
{
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
	limit.rlim_cur = limit.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
		return;
}
