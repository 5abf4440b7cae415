/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/user/user.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "scratch.h"
#include "unit.h"

static char test_dir[] = "/tmp/nacre-user-XXXXXX";

static int make_root(void)
{
	(void)memcpy(test_dir + strlen(test_dir) - 6, "XXXXXX", 6);
	CHECK(mkdtemp(test_dir) != NULL);
	return open(test_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

static void remove_root(int root)
{
	(void)close(root);
	CHECK(scratch_remove(test_dir) == 0);
}

static void put(int root, const char *name, const char *text)
{
	_cleanup_fd_ int fd = -1;

	(void)mkdirat(root, "etc", 0755);
	(void)unlinkat(root, name, 0);
	fd = openat(root, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	CHECK(fd_write_full(fd, text, strlen(text)) == 0);
}

static const char passwd[] = "root:x:0:0:root:/root:/bin/sh\n"
			     "bad line\n"
			     "daemon:x:1:1::/usr/sbin:\n"
			     "1000:x:0:0::/evil:\n"
			     "2147483648:x:0:0::/evil:\n"
			     "-1:x:0:0::/:\n"
			     "0x0:x:0:0::/:\n"
			     "web:x:1234:1235::/srv/web:\n"
			     "nohome:x:77:77\n"
			     "relative:x:78:78::srv:\n"
			     "broken:x:99999999999:1::/:\n"
			     "twice:x:5:5::/first:\ntwice:x:6:6::/second:\n"
			     "last:x:42:43::/last:/bin/sh";
static const char group[] = "root:x:0:\n"
			    "wheel:x:10:root,other\n"
			    "webgroup:x:1235:\n"
			    "logs:x:50:web,root\n"
			    "logs2:x:50:web\n"
			    "more:x:60:other,web\n"
			    "nearly:x:61:webber,we\n"
			    "wild:x:-1:web\n"
			    "9:x:99:\n"
			    "tail:x:70:last";

static const struct {
	const char *user, *want; /* "uid gid groups... home" */
} good_users[] = {
	{ "", "0 0 0 10 50 /root" },
	{ "0", "0 0 0 10 50 /root" },
	{ "root", "0 0 0 10 50 /root" },
	{ "1", "1 1 1 /usr/sbin" },
	{ "01", "1 1 1 /usr/sbin" },
	{ "00", "0 0 0 10 50 /root" },
	{ "1:1", "1 1 1 /usr/sbin" },
	{ "1000", "1000 0 0 /" },
	{ "web", "1234 1235 1235 50 60 /srv/web" },
	{ "1234", "1234 1235 1235 50 60 /srv/web" },
	{ "web:wheel", "1234 10 10 50 60 /srv/web" },
	{ "web:60", "1234 60 60 50 /srv/web" },
	{ "1234:0", "1234 0 0 50 60 /srv/web" },
	{ "4321:9", "4321 9 9 /" },
	{ "2147483647", "2147483647 0 0 /" },
	{ "nohome", "77 77 77 /" },
	{ "relative", "78 78 78 /" },
	{ "twice", "5 5 5 /first" },
	{ "last", "42 43 43 70 /last" },
};

static void print_user(const struct isolate_user *u, char *to, size_t size)
{
	int n = str_printf(to, size, "%u %u", u->uid, u->gid);

	for (size_t i = 0; i < u->n_groups; i++)
		n += str_printf(to + n, size - (size_t)n, " %u", u->groups[i]);
	(void)str_printf(to + n, size - (size_t)n, " %s", u->home);
}

static void finds(void)
{
	int root = make_root();

	put(root, "etc/passwd", passwd);
	put(root, "etc/group", group);
	for (size_t i = 0; i < ARRAY_SIZE(good_users); i++) {
		struct error err = ERROR_INIT;
		struct isolate_user u;
		char text[512] = "";

		if (isolate_user_find(root, good_users[i].user, &u, &err) == 0)
			print_user(&u, text, sizeof(text));
		else
			printf("# %s\n", err.text);
		CHECK_STR(text, good_users[i].want);
	}
	remove_root(root);
}

static const struct {
	const char *user;
	enum error_kind kind;
} bad_users[] = {
	{ "1:", ERROR_INVALID },
	{ ":1", ERROR_INVALID },
	{ ":", ERROR_INVALID },
	{ "1:1:1", ERROR_INVALID },
	{ " 1", ERROR_INVALID },
	{ "1 ", ERROR_INVALID },
	{ "-1", ERROR_INVALID },
	{ "+0", ERROR_INVALID },
	{ "0x0", ERROR_INVALID },
	{ "1000:-1", ERROR_INVALID },
	{ "2147483648", ERROR_INVALID },
	{ "4294967294", ERROR_INVALID },
	{ "4294967295", ERROR_INVALID },
	{ "4294967296", ERROR_INVALID },
	{ "9223372036854775808", ERROR_INVALID },
	{ "18446744073709551616", ERROR_INVALID },
	{ "100000000000000000000000000000", ERROR_INVALID },
	{ "1000:4294967295", ERROR_INVALID },
	{ "ro\not", ERROR_INVALID },
	{ "r\xc3\xb6t", ERROR_INVALID },
	{ "nobody", ERROR_PRECONDITION },
	{ "1:x", ERROR_PRECONDITION },
	{ "root:nogroup", ERROR_PRECONDITION },
	{ "broken", ERROR_PRECONDITION },
};

static void refuses(void)
{
	int root = make_root();

	put(root, "etc/passwd", passwd);
	put(root, "etc/group", group);
	for (size_t i = 0; i < ARRAY_SIZE(bad_users); i++) {
		struct isolate_user u = { .uid = 4711 };
		struct error err = ERROR_INIT;

		CHECK(isolate_user_find(root, bad_users[i].user, &u, &err) < 0);
		CHECK_INT(err.kind, bad_users[i].kind);
		CHECK(str_has_prefix(err.text, "user: "));
		CHECK_INT(u.uid, 4711);
		if (err.kind != bad_users[i].kind)
			printf("# \"%s\": %s\n", bad_users[i].user, err.text);
	}
	remove_root(root);
}

static void without_files(void)
{
	int root = make_root();
	struct isolate_user u;
	char text[512];

	CHECK_INT(isolate_user_find(root, "12:34", &u, NULL), 0);
	print_user(&u, text, sizeof(text));
	CHECK_STR(text, "12 34 34 /");
	CHECK_INT(isolate_user_find(root, "", &u, NULL), 0);
	print_user(&u, text, sizeof(text));
	CHECK_STR(text, "0 0 0 /");
	CHECK(isolate_user_find(root, "root", &u, NULL) < 0);
	remove_root(root);
}

/* What an image may put in the place of passwd (security.md A32). */
static void hostile_files(void)
{
	int root = make_root();
	struct isolate_user u;
	struct error err;

	CHECK(mkdirat(root, "etc", 0755) == 0);
	for (int i = 0; i < 5; i++) {
		err = (struct error)ERROR_INIT;
		(void)unlinkat(root, "etc/passwd", 0);
		if (i == 0)
			CHECK(mkfifoat(root, "etc/passwd", 0644) == 0);
		if (i == 1)
			CHECK(symlinkat("/etc/passwd", root, "etc/passwd") == 0);
		if (i == 2)
			CHECK(mkdirat(root, "etc/passwd", 0755) == 0);
		if (i == 3)
			CHECK(unlinkat(root, "etc/passwd", AT_REMOVEDIR) == 0 &&
			      symlinkat("/proc/self/fd/0", root, "etc/passwd") == 0);
		if (i == 4) {
			_cleanup_fd_ int fd =
				openat(root, "etc/passwd", O_WRONLY | O_CREAT | O_CLOEXEC, 0644);

			CHECK(ftruncate(fd, 5 << 20) == 0);
		}
		CHECK(isolate_user_find(root, i == 3 ? "x" : "0", &u, &err) < 0);
		CHECK_INT(err.kind, ERROR_PRECONDITION);
	}
	put(root, "etc/passwd", "");
	CHECK_INT(isolate_user_find(root, "0", &u, NULL), 0);
	remove_root(root);
}

static void too_many_groups(void)
{
	int root = make_root();
	static char text[8192];
	struct isolate_user u;
	struct error err = ERROR_INIT;
	int n = 0;

	put(root, "etc/passwd", "web:x:1:7::/:\n");
	for (int i = 0; i < ISOLATE_GROUPS_MAX - 1; i++)
		n += str_printf(text + n, sizeof(text) - (size_t)n, "g%d:x:%d:web\n", i, 100 + i);
	put(root, "etc/group", text);
	CHECK_INT(isolate_user_find(root, "web", &u, NULL), 0);
	CHECK_INT(u.n_groups, ISOLATE_GROUPS_MAX);
	(void)str_printf(text + n, sizeof(text) - (size_t)n, "more:x:5000:web\n");
	put(root, "etc/group", text);
	CHECK(isolate_user_find(root, "web", &u, &err) < 0);
	CHECK_INT(err.kind, ERROR_PRECONDITION);
	remove_root(root);
}

UNIT_MAIN({ "finds users and their groups", finds }, { "refuses wrong and unknown users", refuses },
	  { "numbers need no files", without_files },
	  { "hostile files are refused", hostile_files },
	  { "the limit of groups", too_many_groups })
