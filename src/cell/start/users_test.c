/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/users.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "scratch.h"
#include "unit.h"

static char dir[] = "/tmp/nacre-users-XXXXXX";
static int root_fd = -1;

static void write_passwd(const char *text)
{
	_cleanup_fd_ int fd =
		openat(root_fd, "etc/passwd", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	CHECK(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void begin(void)
{
	CHECK(mkdtemp(dir) != NULL);
	root_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(root_fd >= 0 && mkdirat(root_fd, "etc", 0755) == 0);
}

static unsigned find(struct users *u, const char *image, const char *user)
{
	struct isolate_user found = { .uid = 77777 };

	CHECK_INT(users_find(u, CONTAINER_IMAGE, image, root_fd, user, &found, NULL), 0);
	return found.uid;
}

/* The files are changed to see who looks at them; an image never changes. */
static void the_last_of_an_image_is_kept(void)
{
	struct users u = { .image = "" };
	struct isolate_user known;

	write_passwd("bob:x:5:5::/home/bob:\namy:x:6:6:::\n");
	CHECK_INT(find(&u, "sha256:1", "bob"), 5);
	write_passwd("bob:x:7:7::/:\namy:x:8:8:::\n");
	CHECK_INT(find(&u, "sha256:1", "bob"), 5);
	CHECK_STR(u.found.home, "/home/bob");
	CHECK(users_know(&u, CONTAINER_IMAGE, "sha256:1", "bob", &known) && known.uid == 5);
	CHECK(!users_know(&u, CONTAINER_IMAGE, "sha256:1", "amy", &known));
	CHECK(!users_know(&u, CONTAINER_IMAGE, "sha256:2", "bob", &known));
	CHECK(!users_know(&u, CONTAINER_IMAGE, "", "", &known));
	CHECK(!users_know(&u, CONTAINER_PROCESS, "sha256:1", "bob", &known));
	/* Another user, another image, and none. */
	CHECK_INT(find(&u, "sha256:1", "amy"), 8);
	CHECK_INT(find(&u, "sha256:1", "bob"), 7);
	CHECK_INT(find(&u, "sha256:2", "bob"), 7);
	write_passwd("bob:x:9:9:::\n");
	CHECK_INT(find(&u, "", "bob"), 9);
	CHECK_INT(find(&u, NULL, "bob"), 9);
	CHECK_INT(find(&u, "sha256:2", "bob"), 7);
	CHECK_INT(find(&u, "sha256:2", NULL), 0);
}

static void what_fails_is_not_kept(void)
{
	struct users u = { .image = "" };
	struct isolate_user found;
	struct error err = ERROR_INIT;
	char longest[SPEC_IMAGE_MAX + 2];

	write_passwd("bob:x:5:5:::\n");
	CHECK(users_find(&u, CONTAINER_IMAGE, "sha256:1", root_fd, "eve", &found, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	write_passwd("eve:x:6:6:::\n");
	CHECK_INT(find(&u, "sha256:1", "eve"), 6);
	memset(longest, 'x', sizeof(longest));
	longest[SPEC_IMAGE_MAX + 1] = '\0';
	CHECK_INT(find(&u, longest, "eve"), 6);
	write_passwd("eve:x:7:7:::\n");
	CHECK_INT(find(&u, longest, "eve"), 7);
	/* A plain process has no image. */
	CHECK_INT(users_find(&u, CONTAINER_PROCESS, "sha256:1", -1, "12", &found, NULL), 0);
	CHECK_INT(found.uid, 12);
	CHECK_INT(users_find(&u, CONTAINER_PROCESS, "sha256:1", -1, "13", &found, NULL), 0);
	CHECK_INT(found.uid, 13);
}

static void finish(void)
{
	root_fd = fd_close(root_fd);
	CHECK_INT(scratch_remove(dir), 0);
}

UNIT_MAIN({ "a root file system", begin, true },
	  { "the last of an image is kept", the_last_of_an_image_is_kept },
	  { "what fails is not kept", what_fails_is_not_kept }, { "is removed", finish, true })
