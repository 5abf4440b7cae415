/* SPDX-License-Identifier: Apache-2.0 */

/* resolv.conf of the host, a NUL, and that which the stub of systemd-resolved is fed from: what a
 * pod on a network is told of it. */

#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "fuzz.h"
#include "fuzz_tmpfs.h"
#include "pod/networks/etc.h"

#define SERVERS_MAX 3
#define SEARCH_MAX 2056 /* with its first word */
#define RESOLV 2

static int root_fd = -1;

static void put(const char *name, struct fuzz_input text)
{
	_cleanup_fd_ int fd = openat(root_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	fuzz_need(fd >= 0 && fd_write_full(fd, text.at, text.len) == 0);
}

static void open_root(void)
{
	root_fd = fuzz_tmpfs();
	fuzz_need(mkdirat(root_fd, "etc", 0755) == 0 && mkdirat(root_fd, "run", 0755) == 0 &&
		  mkdirat(root_fd, "run/systemd", 0755) == 0 &&
		  mkdirat(root_fd, "run/systemd/resolve", 0755) == 0);
}

static bool begins(const char *line, size_t len, const char *with)
{
	return len >= strlen(with) && memcmp(line, with, strlen(with)) == 0;
}

static void check(const char *text, size_t len)
{
	size_t n_servers = 0, n;

	for (; len > 0; text += n, len -= n) {
		const char *end = memchr(text, '\n', len);

		n = end ? (size_t)(end - text) + 1 : len;
		n_servers += begins(text, n, "nameserver ");
		fuzz_need(!begins(text, n, "nameserver 127.") &&
			  !begins(text, n, "nameserver ::1\n"));
		fuzz_need(!begins(text, n, "search ") || n <= SEARCH_MAX);
	}
	fuzz_need(n_servers <= SERVERS_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(etc_done) struct etc etc = ETC_INIT;
	struct etc_place place = { .name = "web", .network = ETC_NETWORK_ROUTED };
	struct fuzz_input in = { data, size };
	struct error err = ERROR_INIT;

	if (root_fd < 0)
		open_root();
	put("etc/resolv.conf", fuzz_until(&in, '\0'));
	put("run/systemd/resolve/resolv.conf", in);
	place.host_fd = root_fd;
	fuzz_need(etc_make(&etc, &place, &err) == 0);
	check(etc.files[RESOLV].data, etc.files[RESOLV].len);
	return 0;
}
