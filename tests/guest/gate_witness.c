/* SPDX-License-Identifier: Apache-2.0 */

/*
 * In the place of nacre-gate in a guest under test: finds what wire/message/guestgate.h promises.
 * Who connects and says "?" is told what the guest looks like from here, in lines "NAME VALUE", and
 * the frame BOOT in hexadecimal; who says "!" ends it; who begins with anything else speaks to the
 * keeper.
 */

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "wire/message/guestgate.h"

#define WITNESS_PIECE 65536

static void witness_say_file(FILE *out, const char *name, const char *path)
{
	char text[4096] = "";
	FILE *f = fopen(path, "re");
	size_t n = f ? fread(text, 1, sizeof(text) - 1, f) : 0;

	text[n] = '\0';
	if (f)
		(void)fclose(f);
	for (size_t i = 0; i < n; i++)
		if (text[i] == '\n')
			text[i] = i + 1 == n ? '\0' : '|';
	fprintf(out, "%s %s\n", name, text);
}

static void witness_say_bytes(FILE *out, const char *name, const unsigned char *data, size_t len)
{
	fprintf(out, "%s ", name);
	for (size_t i = 0; i < len; i++)
		fprintf(out, "%02x", data[i]);
	fprintf(out, "\n");
}

static void witness_say(int fd)
{
	static unsigned char boot[WITNESS_PIECE + 4];
	unsigned char drawn[16];
	struct timespec now;
	FILE *out = fdopen(dup3(fd, fd + 16, O_CLOEXEC), "w");
	ssize_t n = pread(GUESTGATE_FD_BOOT, boot, sizeof(boot), 0);

	if (!out)
		return;
	(void)clock_gettime(CLOCK_REALTIME, &now);
	fprintf(out, "clock %lld\n", (long long)now.tv_sec);
	witness_say_file(out, "hostname", "/proc/sys/kernel/hostname");
	witness_say_file(out, "etc-hostname", "/etc/hostname");
	witness_say_file(out, "machine-id", "/etc/machine-id");
	witness_say_file(out, "boot-id", "/proc/sys/kernel/random/boot_id");
	witness_say_file(out, "mounts", "/proc/self/mounts");
	witness_say_file(out, "routes", "/proc/net/route");
	witness_say_file(out, "init", "/proc/1/cmdline");
	witness_say_file(out, "status", "/proc/self/status");
	witness_say_file(out, "cgroup", "/proc/self/cgroup");
	witness_say_file(out, "controllers", "/sys/fs/cgroup/cgroup.controllers");
	witness_say_file(out, "handed-on", "/sys/fs/cgroup/cgroup.subtree_control");
	witness_say_file(out, "modules", "/proc/modules");
	if (getrandom(drawn, sizeof(drawn), 0) == (ssize_t)sizeof(drawn))
		witness_say_bytes(out, "random", drawn, sizeof(drawn));
	if (n > 0)
		witness_say_bytes(out, "boot", boot, (size_t)n);
	(void)fclose(out);
}

static int witness_keeper(void)
{
	struct sockaddr_un sun = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)snprintf(sun.sun_path, sizeof(sun.sun_path), "/proc/self/fd/%d/rpc.sock",
		       GUESTGATE_FD_KEEPER);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&sun, sizeof(sun)) < 0)
		return -1;
	return fd;
}

static bool witness_copy(int from, int to)
{
	static char data[WITNESS_PIECE];
	ssize_t n = read(from, data, sizeof(data));

	for (ssize_t at = 0; at < n;) {
		ssize_t m = write(to, data + at, (size_t)(n - at));

		if (m <= 0)
			return false;
		at += m;
	}
	return n > 0;
}

static void witness_serve(int fd)
{
	struct pollfd ends[2] = { { .fd = fd, .events = POLLIN }, { .events = POLLIN } };

	ends[1].fd = witness_keeper();
	while (ends[1].fd >= 0 && poll(ends, 2, -1) > 0) {
		if (ends[0].revents && !witness_copy(fd, ends[1].fd))
			return;
		if (ends[1].revents && !witness_copy(ends[1].fd, fd))
			return;
	}
}

static void witness_meet(int fd)
{
	char first = 0;

	if (recv(fd, &first, 1, MSG_PEEK) != 1)
		return;
	if (first == '!')
		exit(3);
	/* A byte that nobody has read would make the end a reset. */
	if (first == '?' && recv(fd, &first, 1, 0) == 1)
		witness_say(fd);
	else if (fork() == 0) {
		witness_serve(fd);
		_exit(0);
	}
}

int main(void)
{
	struct pollfd listening = { .fd = GUESTGATE_FD_LISTEN, .events = POLLIN };

	(void)signal(SIGCHLD, SIG_IGN);
	while (poll(&listening, 1, -1) >= 0 || errno == EINTR) {
		int fd = accept4(GUESTGATE_FD_LISTEN, NULL, NULL, SOCK_CLOEXEC);

		if (fd < 0)
			continue;
		witness_meet(fd);
		(void)close(fd);
	}
	return 1;
}
