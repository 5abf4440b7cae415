/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/program.h"

#include <stdlib.h>

#include "base/text/str.h"
#include "unit.h"

static void sizes(void)
{
	static char big[SPEC_BYTES_MAX], path[SPEC_PATH_MAX + 2], user[SPEC_USER_MAX + 2];
	static char *env[SPEC_ENV_MAX + 2];
	char *argv[] = { big, NULL };
	char *small[] = { (char[]){ "x" }, NULL };
	char entry[] = "A=b";

	/* With its NUL and its pointer it is exactly at the limit. */
	memset(big, 'x', sizeof(big) - 1);
	big[SPEC_BYTES_MAX - 1 - sizeof(char *)] = '\0';
	CHECK_INT(program_check(argv, NULL, "", "", NULL), 0);
	big[SPEC_BYTES_MAX - 1 - sizeof(char *)] = 'x';
	big[SPEC_BYTES_MAX - sizeof(char *)] = '\0';
	CHECK(program_check(argv, NULL, "", "", NULL) < 0);

	for (size_t i = 0; i < SPEC_ENV_MAX; i++)
		env[i] = entry;
	CHECK_INT(program_check(small, env, "", "", NULL), 0);
	env[SPEC_ENV_MAX] = entry;
	CHECK(program_check(small, env, "", "", NULL) < 0);

	memset(path, '/', SPEC_PATH_MAX);
	CHECK_INT(program_check(small, NULL, path, "", NULL), 0);
	path[SPEC_PATH_MAX] = '/';
	CHECK(program_check(small, NULL, path, "", NULL) < 0);
	memset(user, '1', SPEC_USER_MAX);
	CHECK_INT(program_check(small, NULL, "", user, NULL), 0);
	user[SPEC_USER_MAX] = '1';
	CHECK(program_check(small, NULL, "", user, NULL) < 0);
}

static void environment(void)
{
	char *mine[] = { (char[]){ "HOME=/here" }, (char[]){ "X=1" }, NULL };
	char *over[] = { (char[]){ "X=2" }, (char[]){ "Y=3" }, NULL };
	_cleanup_strv_ char **env = NULL, **next = NULL, **none = NULL;

	CHECK_INT(program_env(&env, mine, "/root", "web"), 0);
	CHECK_STR(strv_env_get(env, "HOME"), "/here");
	CHECK_STR(strv_env_get(env, "HOSTNAME"), "web");
	CHECK_STR(strv_env_get(env, "PATH"),
		  "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
	CHECK_INT(program_env_over(&next, env, over), 0);
	CHECK_STR(strv_env_get(next, "X"), "2");
	CHECK_STR(strv_env_get(next, "Y"), "3");
	CHECK_STR(strv_env_get(env, "X"), "1");
	CHECK_INT(program_env(&none, NULL, "", NULL), 0);
	CHECK_STR(strv_env_get(none, "HOME"), "/");
	CHECK_INT(strv_len(none), 2);
}

static void numeric_users(void)
{
	static const struct {
		const char *user;
		long uid, gid;
	} table[] = {
		{ "", 0, 0 },
		{ "0", 0, 0 },
		{ "12", 12, 12 },
		{ "12:34", 12, 34 },
		{ "2147483647:1", 2147483647, 1 },
		{ "2147483648", -1, 0 },
		{ "1:", -1, 0 },
		{ ":1", -1, 0 },
		{ "root", -1, 0 },
		{ "1:2:3", -1, 0 },
		{ "-1", -1, 0 },
		{ "00000000000000000000001:1", -1, 0 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct error err = ERROR_INIT;
		struct isolate_user user;
		int r = program_user(CONTAINER_PROCESS, -1, table[i].user, &user, &err);

		if (table[i].uid < 0) {
			CHECK_INT(err.kind, ERROR_INVALID);
			CHECK(r < 0 && str_has_prefix(err.text, "user: "));
			continue;
		}
		CHECK_INT(r, 0);
		CHECK_INT(user.uid, table[i].uid);
		CHECK_INT(user.gid, table[i].gid);
		CHECK_INT(user.n_groups, 0);
		CHECK_STR(user.home, table[i].uid ? "/" : "/root");
	}
}

UNIT_MAIN({ "sizes", sizes }, { "environment", environment }, { "numeric users", numeric_users })
