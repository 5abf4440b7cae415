/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/oci_config.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

#define V "\"ociVersion\":\"1.2.0\""
#define P(more) "{" V ",\"process\":{\"cwd\":\"/\",\"args\":[\"x\"]" more "}}"
#define L(more) "{" V ",\"linux\":{" more "}}"

static const struct {
	const char *text, *error;
} wrong[] = {
	{ "[]", "no JSON object" },
	{ "{}", "ociVersion: is missing" },
	{ "{\"ociVersion\":1}", "ociVersion: is no string" },
	{ "{\"ociVersion\":\"2.0.0\"}",
	  "ociVersion: \"2.0.0\" is not 1.x, which this runtime knows" },
#define NO_VERSION(v)                                                                              \
	{                                                                                          \
		"{\"ociVersion\":\"" v "\"}",                                                      \
			"ociVersion: \"" v "\" is no semantic version (write it as "               \
			"1.0.2 or 1.0.2-dev)"                                                      \
	}
	NO_VERSION(""),
	NO_VERSION("1"),
	NO_VERSION("1.0"),
	NO_VERSION("1.0."),
	NO_VERSION("1.0.2.3"),
	NO_VERSION("01.0.0"),
	NO_VERSION("1.00.0"),
	NO_VERSION("1.0.02"),
	NO_VERSION("v1.0.2"),
	NO_VERSION("1.0.2-"),
	NO_VERSION("1.0.2-a..b"),
	NO_VERSION("1.0.2-01"),
	NO_VERSION("1.0.2+"),
	NO_VERSION("1.0.2+a+b"),
	NO_VERSION("1.0.2-a_b"),
	NO_VERSION(" 1.0.2"),
	NO_VERSION("1.0.2 "),
	{ "{\"ociVersion\":\"10.0.0\"}",
	  "ociVersion: \"10.0.0\" is not 1.x, which this runtime knows" },
	{ "{\"ociVersion\":\"0.9.0-1.0\"}",
	  "ociVersion: \"0.9.0-1.0\" is not 1.x, which this runtime knows" },
	{ "{" V ",\"process\":7}", "process: is no object" },
	{ "{" V ",\"process\":{}}", "process.cwd: is missing" },
	{ "{" V ",\"process\":{\"cwd\":\"a\",\"args\":[\"x\"]}}",
	  "process.cwd: \"a\" is not absolute" },
	{ "{" V ",\"process\":{\"cwd\":\"/\"}}", "process.args: names no program" },
	{ P(",\"args2\":0,\"env\":[1]"), "process.env: [0] is no string" },
	{ P(",\"terminal\":0"), "process.terminal: is neither true nor false" },
	{ P(",\"oomScoreAdj\":1001"), "process.oomScoreAdj: 1001 is out of range (-1000 to 1000)" },
	{ P(",\"oomScoreAdj\":1.5"), "process.oomScoreAdj: is no whole number" },
	{ P(",\"user\":{\"uid\":4294967296}"),
	  "process.user.uid: 4294967296 is out of range (0 to 4294967295)" },
	{ P(",\"user\":{\"uid\":-1}"), "process.user.uid: -1 is out of range (0 to 4294967295)" },
	{ P(",\"user\":{\"additionalGids\":[1,-1]}"),
	  "process.user.additionalGids: [1] is no number from 0 to 4294967295" },
	{ P(",\"rlimits\":[{\"type\":\"A\",\"soft\":1,\"hard\":1},{\"type\":\"A\",\"soft\":1,"
	    "\"hard\":1}]"),
	  "process.rlimits[1]: is there twice" },
	{ P(",\"rlimits\":[{\"type\":\"A\",\"soft\":1}]"), "process.rlimits[0].hard: is missing" },
	{ "{" V ",\"hooks\":{\"prestart\":[{\"path\":\"x\"}]}}",
	  "hooks.prestart[0]: path \"x\" is not absolute" },
	{ "{" V ",\"hooks\":{\"poststop\":[{\"path\":\"/x\",\"timeout\":0}]}}",
	  "hooks.poststop[0].timeout: 0 is out of range (1 to 2147483647)" },
	{ "{" V ",\"hooks\":{\"poststop\":[{\"path\":\"/x\",\"env\":[\"A\"]}]}}",
	  "hooks.poststop[0].env: [0] is not NAME=VALUE" },
	{ "{" V ",\"mounts\":[{\"destination\":\"/a\"},{}]}", "mounts[1].destination: is missing" },
	{ "{" V ",\"mounts\":[{\"destination\":\"/\",\"uidMappings\":[{\"containerID\":0,"
	  "\"hostID\":0,\"size\":1}]}]}",
	  "mounts[0]: uidMappings and gidMappings only go together" },
	{ "{" V ",\"annotations\":{\"a\":1}}", "annotations: \"a\" is no string" },
	{ L("\"namespaces\":[{\"type\":\"pid\"},{\"type\":\"pid\"}]"),
	  "linux.namespaces[1]: is there twice" },
	{ L("\"namespaces\":[{\"type\":\"pid\",\"path\":\"x\"}]"),
	  "linux.namespaces[0]: path \"x\" is not absolute" },
	{ L("\"resources\":{\"memory\":{\"limit\":\"1\"}}"),
	  "linux.resources.memory.limit: is no whole number" },
	{ L("\"resources\":{\"memory\":{\"limit\":9223372036854775808}}"),
	  "linux.resources.memory.limit: is out of range" },
	{ L("\"timeOffsets\":{\"boottime\":{\"nanosecs\":1000000000}}"),
	  "linux.timeOffsets[\"boottime\"].nanosecs: 1000000000 is out of range (0 to 999999999)" },
};

static void refuses(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		struct error err = ERROR_INIT;
		struct oci_config *c = NULL;

		CHECK(oci_config_read(&c, &arena, wrong[i].text, strlen(wrong[i].text), &err) < 0);
		CHECK_STR(err.text, wrong[i].error);
		CHECK_INT(err.kind, ERROR_INVALID);
	}
}

static void reads(void)
{
	static const char text[] =
		"{" V ",\"unknown\":[{}],\"root\":{\"path\":\"rootfs\",\"readonly\":true},"
		"\"hostname\":\"h\",\"annotations\":{\"k\":\"v\"},"
		"\"process\":{\"terminal\":true,\"cwd\":\"/w\",\"args\":[\"a\",\"b\"],"
		"\"user\":{\"uid\":5,\"additionalGids\":[7,8]},\"rlimits\":[{\"type\":"
		"\"RLIMIT_AS\",\"soft\":18446744073709551615,\"hard\":18446744073709551615}]},"
		"\"hooks\":{\"poststop\":[{\"path\":\"/x\",\"timeout\":3}]},"
		"\"linux\":{\"namespaces\":[{\"type\":\"pid\"}],\"resources\":{\"memory\":"
		"{\"limit\":-1},\"blockIO\":{\"throttleWriteIOPSDevice\":[{\"major\":8,\"minor\":0,"
		"\"rate\":9}]},\"rdma\":{\"m\":{\"hcaHandles\":3}},\"unified\":{\"a.b\":\"1\"}}}}";
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct error err = ERROR_INIT;
	struct oci_config *c = NULL;

	CHECK_INT(oci_config_read(&c, &arena, text, sizeof(text) - 1, &err), 0);
	CHECK_STR(err.text, "");
	if (!c)
		return;
	CHECK(c->root->readonly.set && c->root->readonly.value == 1);
	CHECK_STR(oci_annotation(c, "k"), "v");
	CHECK(!oci_annotation(c, "l"));
	CHECK(c->process->terminal.value && !c->process->no_new_privs.set);
	CHECK_INT(c->process->n_args, 2);
	CHECK_STR(c->process->args[1], "b");
	CHECK(!c->process->args[2]);
	CHECK_INT(c->process->user->groups[1], 8);
	CHECK(c->process->rlimits[0].hard.value == UINT64_MAX);
	CHECK_INT(c->hooks->lists[OCI_HOOK_POSTSTOP].hooks[0].timeout.value, 3);
	CHECK_INT(c->os->resources->memory->limit.value, -1);
	CHECK_INT(c->os->resources->block_io->throttles[OCI_WRITE_IOPS].devices[0].rate.value, 9);
	CHECK_STR(c->os->resources->rdma[0].name, "m");
	CHECK(c->os->resources->rdma[0].handles.set && !c->os->resources->rdma[0].objects.set);
	CHECK_STR(c->os->resources->unified[0].value, "1");
}

static void takes_semantic_versions(void)
{
	static const char *const good[] = { "1.0.0",      "1.0.2-dev",      "1.0.0-rc.1+b",
					    "1.10.200",   "1.0.0+001.a-b",  "1.0.0--",
					    "1.0.0-0.x1", "1.0.0-01a.0+0.0" };

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT;
		struct error err = ERROR_INIT;
		struct oci_config *c = NULL;
		char text[80];
		int n = str_printf(text, sizeof(text), "{\"ociVersion\":\"%s\"}", good[i]);

		CHECK(n > 0);
		CHECK_INT(oci_config_read(&c, &arena, text, strlen(text), &err), 0);
		CHECK_STR(err.text, "");
		CHECK_STR(c ? c->version : NULL, good[i]);
	}
}

static void reads_parts(void)
{
	static const char process[] = "{\"cwd\":\"/\",\"args\":[\"x\"]}", bad[] = "{\"cwd\":\"/\"}";
	static const char resources[] = "{\"pids\":{\"limit\":0}}";
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct error err = ERROR_INIT;
	struct oci_resources *res = NULL;
	struct oci_process *p = NULL;

	CHECK_INT(oci_process_read(&p, &arena, process, sizeof(process) - 1, &err), 0);
	CHECK(p && p->n_args == 1);
	CHECK_INT(oci_process_read(&p, &arena, bad, sizeof(bad) - 1, &err), -EINVAL);
	CHECK_STR(err.text, "args: names no program");
	CHECK_INT(oci_resources_read(&res, &arena, resources, sizeof(resources) - 1, &err), 0);
	CHECK(res && res->pids && res->pids->limit.set && res->pids->limit.value == 0);
}

UNIT_MAIN({ "refuses", refuses }, { "reads", reads }, { "reads parts", reads_parts },
	  { "takes semantic versions", takes_semantic_versions })
