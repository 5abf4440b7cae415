/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/cgroup/footprint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"

#define FOOTPRINT_FILE_MAX ((size_t)8 << 20)

/* "START-END rw-p ...": the size of the mapping, 0 for any other line. */
static uint64_t footprint_size_of(const char *line)
{
	uint64_t start, end;
	char *at;

	start = strtoull(line, &at, 16);
	if (at == line || *at != '-')
		return 0;
	line = at + 1;
	end = strtoull(line, &at, 16);
	return at != line && *at == ' ' && end > start ? end - start : 0;
}

void footprint_parse(const char *smaps, uint64_t ram, struct footprint *ret)
{
	uint64_t size = 0, best = UINT64_MAX, of_ram = 0, total = 0;

	for (const char *line = smaps; *line; line += strcspn(line, "\n"), line += *line == '\n') {
		uint64_t pss, is = footprint_size_of(line);

		if (is)
			size = is;
		if (!str_has_prefix(line, "Pss:"))
			continue;
		pss = strtoull(line + strlen("Pss:"), NULL, 10) * 1024;
		total += pss;
		if (ram == 0 || size < ram || size > best || (size == best && pss < of_ram))
			continue;
		best = size;
		of_ram = pss;
	}
	ret->ram += of_ram;
	ret->other += total - of_ram;
}

static int footprint_of_process(pid_t pid, uint64_t ram, struct footprint *ret)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;
	char name[64];
	int r;

	(void)str_printf(name, sizeof(name), "/proc/%d/smaps", (int)pid);
	r = fd_read_file(AT_FDCWD, name, FOOTPRINT_FILE_MAX, &b);
	/* It has ended. */
	if (r == -ENOENT || r == -ESRCH)
		return 0;
	if (r < 0)
		return r;
	text = buf_take_str(&b);
	if (!text)
		return -ENOMEM;
	footprint_parse(text, ram, ret);
	return 0;
}

int footprint_of_group(int cgroup_fd, const char *path, uint64_t ram, struct footprint *ret)
{
	_cleanup_fd_ int fd = rootfd_point(cgroup_fd, path);
	struct footprint sum = { 0, 0 };
	struct error err = ERROR_INIT;
	pid_t *pids = NULL;
	size_t n = 0;
	int r;

	if (fd < 0)
		return fd;
	r = cgroup_pids(fd, false, &pids, &n, &err);
	for (size_t i = 0; r >= 0 && i < n; i++)
		r = footprint_of_process(pids[i], ram, &sum);
	free(pids);
	if (r < 0)
		return r;
	*ret = sum;
	return 0;
}
