/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/profile.h"

#include <linux/capability.h>
#include <string.h>

#include "unit.h"

/* Which rules of a file are there for whom, and what is said of one that is broken. The filters are
 * those of isolate/seccomp/seccomp_profile.c, which has tests of its own. */

static const struct profile_place here = { .caps = 1ULL << CAP_SYS_ADMIN, .major = 5, .minor = 10 };

/* How long the filter is; 0 with *err. */
static size_t compiled(const char *text, struct error *err)
{
	_cleanup_(seccomp_filter_freep) struct seccomp_filter *filter = NULL;

	*err = (struct error)ERROR_INIT;
	return profile_compile(&filter, text, strlen(text), &here, err) == 0 ? filter->prog.len : 0;
}

#define PROFILE(calls) "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"syscalls\": [" calls "]}"
#define CALL(name, more)                                                                           \
	"{\"names\": [\"" name "\"], \"action\": \"SCMP_ACT_ERRNO\", \"comment\": \"\"" more "}"

static void rules_that_are_there(void)
{
	static const char *const there[] = {
		"",
		", \"includes\": {}",
		", \"includes\": {\"caps\": [\"CAP_SYS_ADMIN\"]}",
		", \"includes\": {\"minKernel\": \"4.8\"}",
		", \"excludes\": {\"caps\": [\"CAP_SYS_BOOT\"], \"minKernel\": \"5.11\"}",
		", \"includes\": {\"arches\": [\"amd64\", \"arm64\", \"s390\"]}",
	};
	static const char *const missing[] = {
		", \"includes\": {\"caps\": [\"CAP_SYS_ADMIN\", \"CAP_SYS_BOOT\"]}",
		", \"includes\": {\"caps\": [\"CAP_NONSENSE\"]}",
		", \"includes\": {\"minKernel\": \"5.11\"}",
		", \"includes\": {\"arches\": [\"s390\"]}",
		", \"excludes\": {\"caps\": [\"CAP_SYS_BOOT\", \"CAP_SYS_ADMIN\"]}",
		", \"excludes\": {\"minKernel\": \"5.10\"}",
		", \"excludes\": {\"arches\": [\"amd64\", \"arm64\"]}",
	};
	struct error err;
	size_t one = compiled(PROFILE(CALL("mkdirat", "")), &err);
	size_t none = compiled(PROFILE(""), &err);
	char text[512];

	CHECK(one > none && none > 0);
	for (size_t i = 0; i < ARRAY_SIZE(there); i++) {
		(void)snprintf(text, sizeof(text), PROFILE(CALL("mkdirat", "%s")), there[i]);
		CHECK_INT(compiled(text, &err), one);
		CHECK_STR(err.text, "");
	}
	for (size_t i = 0; i < ARRAY_SIZE(missing); i++) {
		(void)snprintf(text, sizeof(text), PROFILE(CALL("mkdirat", "%s")), missing[i]);
		CHECK_INT(compiled(text, &err), none);
		CHECK_STR(err.text, "");
	}
}

/* Of docker: one name, and architectures that go with another one. */
static void forms(void)
{
	struct error err;
	size_t one = compiled(PROFILE(CALL("mkdirat", "")), &err);

	CHECK_INT(
		compiled(PROFILE("{\"name\": \"mkdirat\", \"action\": \"SCMP_ACT_ERRNO\"}"), &err),
		one);
	CHECK(compiled("{\"defaultAction\": \"SCMP_ACT_ERRNO\", \"archMap\": [{\"architecture\": "
		       "\"SCMP_ARCH_X86_64\", \"subArchitectures\": [\"SCMP_ARCH_X86\"]}, "
		       "{\"architecture\": \"SCMP_ARCH_AARCH64\", \"subArchitectures\": "
		       "[\"SCMP_ARCH_ARM\"]}]}",
		       &err) > 0);
}

static void broken(void)
{
	static const struct {
		const char *text, *said;
	} cases[] = {
		{ "", "line 1" },
		{ "[]", "it is no object of JSON" },
		{ "{}", "defaultAction: " },
		{ "{\"defaultAction\": 7}", "defaultAction: " },
		{ "{\"defaultAction\": \"x\"}", "default" },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\"", "line 1" },
		{ PROFILE("{\"names\": [\"read\"]}"), "syscalls[0].action: " },
		{ PROFILE("{\"names\": [\"read\"], \"name\": \"x\", \"action\": \"SCMP_ACT_LOG\"}"),
		  "syscalls[0].name: not beside names" },
		{ PROFILE(CALL("read", ", \"includes\": {\"minKernel\": \"5\"}")),
		  "syscalls[0].includes.minKernel: \"5\" is no version" },
		{ PROFILE(CALL("read", ", \"args\": [{\"index\": 6, \"value\": 1, \"op\": "
				       "\"SCMP_CMP_EQ\"}]")),
		  "syscalls[0].args[0].index: " },
		{ "{\"defaultAction\": \"SCMP_ACT_ALLOW\", \"architectures\": "
		  "[\"SCMP_ARCH_X86_64\"], "
		  "\"archMap\": [{\"architecture\": \"SCMP_ARCH_X86_64\"}]}",
		  "archMap: not beside architectures" },
	};
	struct error err;

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		CHECK_INT(compiled(cases[i].text, &err), 0);
		CHECK(strstr(err.text, cases[i].said) != NULL);
		CHECK(err.kind == ERROR_INVALID);
	}
}

UNIT_MAIN({ "rules that are there", rules_that_are_there }, { "forms", forms },
	  { "broken", broken })
