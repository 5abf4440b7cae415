/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/template.h"

#include "unit.h"

#include "base/text/str.h"

static const char document[] =
	"{\"Name\":\"web\",\"State\":{\"Status\":\"running\",\"Pid\":7,\"Dead\":false},"
	"\"Ports\":[\"80/tcp\",\"53/udp\"],\"None\":[],\"Empty\":\"\",\"Null\":null,"
	"\"Nets\":{\"a\":{\"IP\":\"10.0.0.2\"},\"b\":{\"IP\":\"10.0.1.2\"}},"
	"\"LabelMap\":{\"env\":\"test\"},\"Text\":\"a \\\"b\\\" \\\\ \\n\"}";

static void is(const char *text, const char *expected)
{
	_cleanup_str_ char *written = NULL;
	struct error err = ERROR_INIT;
	size_t len = 0;
	FILE *to = open_memstream(&written, &len);

	if (!to)
		abort();
	CHECK_INT(template_check(text, &err), 0);
	CHECK_INT(template_write(text, document, to, &err), 0);
	CHECK_STR(err.text, "");
	(void)fclose(to);
	CHECK_STR(written, expected);
}

static void values(void)
{
	is("{{.Name}}", "web\n");
	is("{{ .State.Status }}: {{.State.Pid}} {{.State.Dead}}", "running: 7 false\n");
	is("a\\t{{.Name}}\\n\\\\\\x", "a\tweb\n\\\\x\n");
	is("{{.Ports}} {{.Nets}}", "[80/tcp 53/udp] map[a:map[IP:10.0.0.2] b:map[IP:10.0.1.2]]\n");
	is("{{json .Ports}}{{json .State}}",
	   "[\"80/tcp\",\"53/udp\"]{\"Status\":\"running\",\"Pid\":7,\"Dead\":false}\n");
	is("{{json .Text}}", "\"a \\\"b\\\" \\\\ \\u000a\"\n");
	is("{{.Label \"env\"}}{{.Label \"none\"}}.", "test.\n");
	is("{{.Null}}", "<no value>\n");
}

static void functions(void)
{
	is("{{upper .Name}} {{title .Name}} {{lower \"AB\"}}", "WEB Web ab\n");
	is("{{len .Ports}} {{len .Name}} {{len .None}}", "2 3 0\n");
	is("{{index .Ports 1}} {{index .Nets \"b\" \"IP\"}} {{index .Nets \"c\"}}.",
	   "53/udp 10.0.1.2 .\n");
	is("{{join .Ports \", \"}}", "80/tcp, 53/udp\n");
	is("{{println .Name}}", "web\n\n");
}

static void blocks(void)
{
	is("{{range .Ports}}<{{.}}>{{end}}", "<80/tcp><53/udp>\n");
	is("{{range .Nets}}{{.IP}} {{$.Name}};{{end}}", "10.0.0.2 web;10.0.1.2 web;\n");
	is("{{range .None}}x{{else}}none{{end}}", "none\n");
	is("{{if .State.Dead}}dead{{else}}alive{{end}}{{if .Empty}}e{{end}}", "alive\n");
	is("{{with .State}}{{.Status}}{{end}}", "running\n");
	is("{{if .State.Dead}}{{.NoSuch.At.All}}{{end}}.", ".\n");
	is("{{range .Ports}}{{if $.Name}}{{range $.Nets}}n{{end}}{{end}}{{end}}", "nnnn\n");
	is("a  {{- .Name -}}  b", "awebb\n");
}

static void refuses(void)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "{{.Name", "--format: position 8: \"}}\" is expected" },
		{ "{{.Name | upper}}", "--format: position 9: pipes are not known here" },
		{ "{{$x := .Name}}", "--format: position 4: variables are not known here" },
		{ "{{printf \"%s\" .Name}}",
		  "--format: position 3: printf: not a function that is known here: json, len, "
		  "upper, lower, title, index, join, println" },
		{ "{{end}}", "--format: position 6: nothing is open that it could end" },
		{ "{{if .Name}}x", "--format: position 14: {{end}} is missing" },
		{ "{{range .Ports}}{{else}}{{else}}{{end}}",
		  "--format: position 33: {{end}} is missing" },
		{ "{{index .Ports}}", "--format: position 3: index: too few arguments" },
		{ "{{\"a}}", "--format: position 3: the closing quote is missing" },
		{ "{{-}}", "--format: position 3: a name (.Name), a text in quotes or a number is "
			   "expected" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = ERROR_INIT;

		CHECK(template_check(cases[i].text, &err) < 0);
		CHECK_STR(err.text, cases[i].error);
	}
}

static void names_that_are_not_there(void)
{
	static const char *const cases[] = { "{{.NoSuch}}", "{{.State.NoSuch}}", "{{.Name.Length}}",
					     "{{range .Ports}}{{.Name}}{{end}}" };

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err = ERROR_INIT;

		CHECK_INT(template_check(cases[i], &err), 0);
		CHECK(template_write(cases[i], document, stdout, &err) < 0);
		CHECK(strstr(err.text, ": there is no such name"));
	}
}

static void depth_is_bounded(void)
{
	_cleanup_str_ char *text = calloc(1, 64 * strlen("{{if .Name}}") + 1);
	struct error err = ERROR_INIT;

	for (size_t i = 0; text && i < 64; i++)
		memcpy(text + i * strlen("{{if .Name}}"), "{{if .Name}}", strlen("{{if .Name}}"));
	CHECK(text && template_check(text, &err) < 0);
	CHECK(strstr(err.text, "too deep"));
}

static const char *head(const char *member)
{
	return str_eq(member, "Name") ? "NAMES" : "OTHER";
}

static void tables(void)
{
	_cleanup_str_ char *written = NULL;
	struct error err = ERROR_INIT;
	size_t len = 0;
	FILE *to = open_memstream(&written, &len);

	if (!to)
		abort();
	CHECK_STR(template_table("table {{.Name}}"), "{{.Name}}");
	CHECK(!template_table("{{.Name}}"));
	CHECK_INT(template_heads("table {{.Name}}\\t{{json .Ports}}\\t{{.Label \"env\"}}", head, to,
				 &err),
		  0);
	(void)fclose(to);
	CHECK_STR(written, "NAMES\tOTHER\tenv\n");
}

static void is_told_from_ours(void)
{
	CHECK(template_is("{{.Name}}"));
	CHECK(template_is("x {{ json . }}"));
	CHECK(template_is("{{- .Name}}"));
	CHECK(template_is("table {{.Name}}"));
	CHECK(template_is("{{range .Ports}}"));
	CHECK(!template_is("{name}"));
	CHECK(!template_is("{{name}}"));
	CHECK(!template_is("{{{name}}}"));
	CHECK(!template_is("{{}}"));
	CHECK(!template_is("tables"));
}

UNIT_MAIN({ "values", values }, { "functions", functions }, { "blocks", blocks },
	  { "refuses", refuses }, { "names_that_are_not_there", names_that_are_not_there },
	  { "depth_is_bounded", depth_is_bounded }, { "tables", tables },
	  { "is_told_from_ours", is_told_from_ours })
