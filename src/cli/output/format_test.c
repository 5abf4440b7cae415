/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/format.h"

#include "unit.h"

static const char document[] =
	"{\n  \"id\": \"0123\",\n  \"pid\": 42,\n  \"reason\": null,\n  \"on\": true,\n"
	"  \"text\": \"a \\\"b\\\"\\n{c}, \\\\ \\u0001\",\n  \"none\": [],\n"
	"  \"containers\": [\n    {\n      \"name\": \"web\",\n      \"pid\": 7,\n      \"ports\": "
	"[1, 2]\n    },\n"
	"    {\n      \"name\": \"db\",\n      \"pid\": 8,\n      \"ports\": []\n    }\n  ]\n}\n";

static void is(const char *format, const char *expected)
{
	struct error err = ERROR_INIT;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		abort();
	CHECK_INT(format_check(format, &err), 0);
	CHECK_INT(format_write(format, document, to, &err), 0);
	CHECK_STR(err.text, "");
	(void)fclose(to);
	CHECK_STR(text, expected);
	free(text);
}

static void values(void)
{
	is("", "\n");
	is("{id}", "0123\n");
	is("{pid} {on}{reason}.", "42 true.\n");
	is("{text}", "a \"b\"\n{c}, \\ \001\n");
	is("{containers[1].name}", "db\n");
	is("{containers[0].ports}", "[1, 2]\n");
	is("{containers[*].name}", "web,db\n");
	is("{containers[*].ports[*]}", "1,2,\n");
	is("{none}{none[*]}", "[]\n");
	is("{{{id}}}\\n\\t\\\\", "{0123}\n\t\\\n");
}

static void fails(const char *format, bool has_form, const char *expected)
{
	struct error err = ERROR_INIT;

	CHECK_INT(format_check(format, &err) == 0, has_form);
	if (has_form)
		CHECK(format_write(format, document, stdout, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK_STR(err.text, expected);
}

static void errors(void)
{
	fails("ab{id", false, "--format: position 6: '}' is missing");
	fails("{", false, "--format: position 2: '}' is missing");
	fails("a}", false, "--format: position 2: '}' without '{' (write \"}}\" for a brace)");
	fails("{.id}", false, "--format: position 2: a name, '.', '[' or '}' is expected");
	fails("{id..x}", false, "--format: position 4: a name, '.', '[' or '}' is expected");
	fails("{id x}", false, "--format: position 4: a name, '.', '[' or '}' is expected");
	fails("{id[x]}", false, "--format: position 4: an index is [0], [1], … or [*]");
	fails("\\x", false, "--format: position 1: only \\n, \\t and \\\\ are known");
	fails("\\", false, "--format: position 1: only \\n, \\t and \\\\ are known");
	fails("{id} {pidd}", true, "--format: position 7: pidd: there is no such name");
	fails("{id.x}", true, "--format: position 5: x: there is no such name");
	fails("{id[0]}", true, "--format: position 4: [0]: this is no array");
	fails("{containers[2]}", true, "--format: position 12: [2]: there are not so many");
	fails("{containers[*].x}", true, "--format: position 16: x: there is no such name");
}

UNIT_MAIN({ "values", values }, { "errors", errors })
