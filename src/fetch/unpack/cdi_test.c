/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/cdi.h"

#include <string.h>

#include "unit.h"

/* What a container gets, with blanks in the place of NULs, or why it gets nothing. */

static char answer_text[4096];

static void add(struct buf *b, const char *word)
{
	CHECK(buf_add(b, word, strlen(word) + 1) == 0);
}

struct file {
	const char *dir, *name, *text;
};

static const char *resolved(const char *const *devices, const struct file *files, size_t n)
{
	_cleanup_(buf_done) struct buf request = BUF_INIT, answer = BUF_INIT;
	struct error err = ERROR_INIT;
	char length[24];

	for (; *devices; devices++) {
		add(&request, "device");
		add(&request, *devices);
	}
	for (size_t i = 0; i < n; i++) {
		(void)snprintf(length, sizeof(length), "%zu", strlen(files[i].text));
		add(&request, "file");
		add(&request, files[i].dir);
		add(&request, files[i].name);
		add(&request, length);
		CHECK(buf_add(&request, files[i].text, strlen(files[i].text)) == 0);
	}
	if (cdi_resolve(&answer, buf_data(&request), request.len, &err) < 0) {
		(void)snprintf(answer_text, sizeof(answer_text), "%s", error_text(&err));
		return answer_text;
	}
	for (size_t i = 0; i < answer.len && i < sizeof(answer_text); i++)
		answer_text[i] = (char)(buf_data(&answer)[i] ? buf_data(&answer)[i] : ' ');
	answer_text[answer.len] = '\0';
	return answer_text;
}

#define RESOLVED(device, ...)                                                                      \
	resolved((const char *const[]){ device, NULL }, (const struct file[]){ __VA_ARGS__ },      \
		 sizeof((const struct file[]){ __VA_ARGS__ }) / sizeof(struct file))
#define ONE(edits)                                                                                 \
	"{\"cdiVersion\": \"0.6.0\", \"kind\": \"a.b/c\", \"devices\": [{\"name\": \"d\", "        \
	"\"containerEdits\": " edits "}]}"

static const char yaml[] =
	"---\n"
	"cdiVersion: 1.0.0\n"
	"kind: a.b/c\n"
	"containerEdits:\n"
	"  env: [ALL=1]\n"
	"devices:\n"
	"- name: \"0\"\n"
	"  containerEdits:\n"
	"    deviceNodes:\n"
	"    - {path: /dev/x, hostPath: /dev/null, permissions: rw, major: 0x1}\n"
	"- name: d\n"
	"  containerEdits:\n"
	"    mounts:\n"
	"    - hostPath: /h\n"
	"      containerPath: /c\n"
	"      options: [ro, nosuid, noexec, rslave]\n"
	"    additionalGids: [0o17, 44]\n";

static void what_is_given(void)
{
	static const char *const both[] = { "a.b/c=d", "a.b/c=0", NULL };
	static const struct file file = { "/etc", "x.yaml", yaml };

	CHECK_STR(RESOLVED("a.b/c=d", { "/etc", "x.json", ONE("{\"env\": [\"A=1\", \"B=\"]}") }),
		  "env A=1 env B= ");
	CHECK_STR(RESOLVED("a.b/c=0", { "/etc", "x.yaml", yaml }),
		  "env ALL=1 device /dev/x /dev/null rw ");
	/* What belongs to all devices of a file comes once. */
	CHECK_STR(resolved(both, &file, 1),
		  "env ALL=1 mount /c /h rslave rx group 15 group 44 device /dev/x /dev/null rw ");
	CHECK_STR(RESOLVED("a.b/c=d", { "/etc", "x.json",
					ONE("{\"deviceNodes\": [{\"path\": \"/dev/y\"}]}") }),
		  "device /dev/y /dev/y  ");
}

static void directories_and_broken_files(void)
{
	CHECK_STR(RESOLVED("a.b/c=d", { "/etc", "x.json", ONE("{\"env\": [\"A=1\"]}") },
			   { "/run", "x.json", ONE("{\"env\": [\"A=2\"]}") },
			   { "/run", "y.json", "{" }),
		  "env A=2 ");
	CHECK_STR(RESOLVED("a.b/c=d", { "/run", "x.json", ONE("{}") },
			   { "/run", "y.json", ONE("{}") }),
		  "a.b/c=d is in both x.json and y.json");
	CHECK_STR(RESOLVED("a.b/c=e", { "/run", "x.json", ONE("{}") }),
		  "no file has the device a.b/c=e");
	CHECK_STR(
		RESOLVED("a.b/c=e", { "/run", "x.yaml", "a: &b [*b]" }),
		"no file has the device a.b/c=e (x.yaml: line 1: anchors and tags are not taken)");
	CHECK_STR(RESOLVED("a.b/c=e", { "/run", "x.json", "{\"kind\": \"a/b\"}" }),
		  "no file has the device a.b/c=e (x.json: cdiVersion: is missing)");
	CHECK_STR(RESOLVED("a.b/c=e",
			   { "/run", "x.json",
			     "{\"cdiVersion\": \"2.0.0\", \"kind\": \"a/b\", \"devices\": []}" }),
		  "no file has the device a.b/c=e (x.json: cdiVersion: \"2.0.0\" is none of the "
		  "versions up to 1.1.0)");
	CHECK_STR(RESOLVED("gpu", { "/run", "x.json", ONE("{}") }),
		  "\"gpu\" is not vendor/class=name");
}

static void what_is_refused(void)
{
	static const struct {
		const char *text, *why;
	} cases[] = {
		{ ONE("{\"hooks\": [{\"hookName\": \"createContainer\", \"path\": \"/h\"}]}"),
		  "containerEdits.hooks: createContainer (/h): programs of vendors are not run "
		  "with "
		  "the rights of the node" },
		{ ONE("{\"deviceNodes\": [{\"path\": \"/dev/y\", \"uid\": 0}]}"),
		  "containerEdits.deviceNodes[0]: uid, gid and fileMode: a container has the "
		  "node's "
		  "own device, with its owner and mode" },
		{ ONE("{\"mounts\": [{\"hostPath\": \"/a\", \"containerPath\": \"/b\", "
		      "\"options\": "
		      "[\"suid\"]}]}"),
		  "containerEdits.mounts[0].options: \"suid\"" },
		{ ONE("{\"netDevices\": [{\"name\": \"x\"}]}"),
		  "containerEdits.netDevices[0]: a container has the network of its pod" },
		{ ONE("{\"intelRdt\": {}}"), "containerEdits.intelRdt" },
		{ ONE("{\"env\": [\"A\"]}"), "containerEdits.env[0] is not NAME=VALUE" },
	};
	char want[512];

	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		(void)snprintf(want, sizeof(want), "x.json: a.b/c=d: %s", cases[i].why);
		CHECK_STR(RESOLVED("a.b/c=d", { "/run", "x.json", cases[i].text }), want);
	}
}

UNIT_MAIN({ "what_is_given", what_is_given },
	  { "directories_and_broken_files", directories_and_broken_files },
	  { "what_is_refused", what_is_refused })
