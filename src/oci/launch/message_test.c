/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/launch/message.h"

#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static bool same_file(int a, int b)
{
	struct stat one, two;

	return fstat(a, &one) == 0 && fstat(b, &two) == 0 && one.st_dev == two.st_dev &&
	       one.st_ino == two.st_ino;
}

static void descriptors_come_with_the_first_byte(void)
{
	int pair[2], fds[MESSAGE_FDS_MAX], files[2], many[MESSAGE_FDS_MAX + 1] = { 0 };
	char byte = 0;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
	CHECK(pipe2(files, O_CLOEXEC) == 0);
	CHECK_INT(message_send(pair[0], "ab", 2, files, 2), 0);
	CHECK_INT(message_receive(pair[1], &byte, fds), 1);
	CHECK_INT(byte, 'a');
	CHECK(same_file(fds[0], files[0]) && same_file(fds[1], files[1]));
	CHECK_INT(fcntl(fds[0], F_GETFD), FD_CLOEXEC);
	for (size_t i = 2; i < MESSAGE_FDS_MAX; i++)
		CHECK_INT(fds[i], -1);
	message_close(fds);
	CHECK_INT(fds[0], -1);
	CHECK_INT(message_receive(pair[1], &byte, fds), 1);
	CHECK(byte == 'b' && fds[0] == -1);
	CHECK_INT(message_send(pair[0], "a", 1, many, MESSAGE_FDS_MAX + 1), -EINVAL);
	(void)close(pair[0]);
	CHECK_INT(message_receive(pair[1], &byte, fds), 0);
	CHECK_INT(message_send(pair[1], "a", 1, NULL, 0), -EPIPE);
	(void)close(pair[1]);
	(void)close(files[0]);
	(void)close(files[1]);
}

/* dir_fd: AT_FDCWD, or of the directory that the name is in. */
static void connects(int dir_fd, const char *name)
{
	struct error err = ERROR_INIT;
	int listening = message_listen(dir_fd, name, &err);
	int fd = message_connect(dir_fd, name, &err), other;
	char byte = 0;
	int fds[MESSAGE_FDS_MAX];

	CHECK_STR(err.text, "");
	CHECK(listening >= 0 && fd >= 0);
	other = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
	CHECK_INT(message_send(fd, "x", 1, NULL, 0), 0);
	CHECK_INT(message_receive(other, &byte, fds), 1);
	CHECK_INT(byte, 'x');
	(void)close(other);
	(void)close(fd);
	(void)close(listening);
}

/* A path may be longer than what an address of a socket holds. */
static void sockets_have_names_of_any_length(void)
{
	char dir[] = "/tmp/nacre-message-XXXXXX", path[PATH_MAX];
	struct error err = ERROR_INIT;
	_cleanup_fd_ int fd = -1;

	if (!mkdtemp(dir))
		abort();
	CHECK(str_printf(path, sizeof(path), "%s/%0150d", dir, 0) > 0);
	CHECK(mkdir(path, 0700) == 0);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	connects(fd, "in-it");
	CHECK(str_printf(path, sizeof(path), "%s/short", dir) > 0);
	connects(AT_FDCWD, path);
	CHECK(str_printf(path, sizeof(path), "%s/%0150d/long", dir, 0) > 0);
	connects(AT_FDCWD, path);
	CHECK(str_printf(path, sizeof(path), "%s/nowhere/%0150d", dir, 0) > 0);
	CHECK_INT(message_connect(AT_FDCWD, path, &err), -ENOENT);
	CHECK(strstr(err.text, "name the socket ") != NULL);
	CHECK(str_printf(path, sizeof(path), "%s/none", dir) > 0);
	err = (struct error)ERROR_INIT;
	CHECK_INT(message_connect(AT_FDCWD, path, &err), -ENOENT);
	CHECK(strstr(err.text, "connect to ") != NULL);
	CHECK_INT(scratch_remove(dir), 0);
}

UNIT_MAIN({ "descriptors_come_with_the_first_byte", descriptors_come_with_the_first_byte },
	  { "sockets_have_names_of_any_length", sockets_have_names_of_any_length })
