/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/options/typed.h"
#include "cli/table/command.h"

#include "unit.h"

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/text.h"
#include "cli/table/command_groups.h"
#include "cli/table/completion.h"
#include "cli/table/foreign.h"
#include "cli/table/help.h"
#include "cli/table/man.h"

static void check_options(const struct command *c)
{
	for (const struct arg_option *o = c->options; o && o->name; o++) {
		CHECK(*o->name && !str_empty(o->help));
		CHECK(!o->value || *o->value);
		for (const struct arg_option *p = c->options; p < o; p++) {
			CHECK(!str_eq(p->name, o->name));
			CHECK(!o->letter || p->letter != o->letter);
		}
		/* The daemon takes its own apart. */
		for (const struct arg_option *p = command_options; c->run && p->name; p++) {
			CHECK(!str_eq(p->name, o->name));
			CHECK(!o->letter || p->letter != o->letter);
		}
	}
}

static void check_help(const char *help)
{
	while (*help) {
		size_t len = strcspn(help, "\n");
		_cleanup_str_ char *line = xformat("%.*s", (int)len, help);

		CHECK(text_width(line) <= 88);
		CHECK(!strchr(line, '\t'));
		help += len + (help[len] == '\n');
	}
}

static void table_is_whole(void)
{
	for (size_t i = 0; command_at(&command_table, i); i++) {
		const struct command *c = command_at(&command_table, i);

		CHECK(!str_empty(c->name) && c->operands && !str_empty(c->help));
		CHECK(!str_empty(c->summary) && !str_has_suffix(c->summary, "."));
		CHECK(c->n_min <= c->n_max);
		CHECK(c->run || str_eq(c->name, "daemon"));
		CHECK((c->n_max == 0) == (*c->operands == '\0'));
		for (size_t k = 0; k < i; k++)
			CHECK(!str_eq(command_at(&command_table, k)->name, c->name));
		check_options(c);
		check_help(c->help);
	}
}

static void finds(void)
{
	char image[] = "image", ls[] = "ls", ps[] = "ps", im[] = "im";
	char *two[] = { image, ls }, *one[] = { ps, ls }, *half[] = { image }, *part[] = { im, ls };
	char rmi[] = "rmi", *synonym[] = { rmi, ls };
	const struct command *c;
	size_t n = 0;

	c = command_find(&command_table, two, 2, &n);
	CHECK(c && str_eq(c->name, "image ls"));
	CHECK_INT(n, 2);
	c = command_find(&command_table, one, 2, &n);
	CHECK(c && str_eq(c->name, "ps"));
	CHECK_INT(n, 1);
	c = command_find(&command_table, synonym, 2, &n);
	CHECK(c && str_eq(c->name, "image rm"));
	CHECK_INT(n, 1);
	CHECK(!command_find(&command_table, half, 1, &n));
	CHECK(!command_find(&command_table, part, 2, &n));
	CHECK(!command_find(&command_table, part, 0, &n));
}

static void hints(void)
{
	static const struct {
		const char *words[2];
		const char *text;
	} cases[] = {
		{ { "vm" }, "`vm` is followed by one of: run, disks, rmdisk" },
		{ { "vm", "list" }, "unknown command `vm list` (there are: run, disks, rmdisk)" },
		{ { "stp" }, "unknown command `stp` (did you mean `stop`?)" },
		{ { "save", "x" }, "unknown command `save`: use `nacre image export`" },
		{ { "zzz" }, "unknown command `zzz` (see `nacre help`)" },
		{ { "" }, "unknown command `` (see `nacre help`)" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char *words[2] = { NULL };
		struct error err = ERROR_INIT;
		size_t n = 0;

		while (n < 2 && cases[i].words[n]) {
			words[n] = xstrdup(cases[i].words[n]);
			n++;
		}
		CHECK(command_unknown(&command_table, words, n, &err) < 0);
		CHECK_STR(error_text(&err), cases[i].text);
		free(words[0]);
		free(words[1]);
	}
}

/* What is typed elsewhere is no command here, and what is advised is one. */
static void advice_names_commands(void)
{
	for (size_t i = 0; foreign_word(i); i++) {
		_cleanup_str_ char *word = xstrdup(foreign_word(i));
		const char *at = foreign_command(word);
		size_t n = 0;

		CHECK(at && strstr(at, "`nacre "));
		CHECK(!command_find(&command_table, &word, 1, &n));
		for (at = strstr(at, "`nacre "); at; at = strstr(at, "`nacre ")) {
			_cleanup_str_ char *line = NULL;
			char *words[2], *rest;

			at += strlen("`nacre ");
			line = xformat("%.*s", (int)strcspn(at, "`"), at);
			rest = line;
			words[0] = strsep(&rest, " ");
			words[1] = strsep(&rest, " ");
			CHECK(command_find(&command_table, words, words[1] ? 2 : 1, &n));
		}
	}
}

static void options_of_others(void)
{
	bool is_same = false;

	CHECK_STR(foreign_option("workdir=/x", &is_same), "cwd");
	CHECK(is_same);
	CHECK_STR(foreign_option("net", &is_same), "network");
	CHECK_STR(foreign_option("cpu-shares", &is_same), "cpu-weight");
	CHECK(!is_same);
	CHECK(!foreign_option("work", &is_same));
	CHECK(!foreign_option("nets", &is_same));
}

/* A field that an option has set has its name; any other keeps its own. */
static void fields_by_their_options(void)
{
	static const struct {
		const char *field, *text;
	} cases[] = {
		{ "containers[0].resources.memory", "--memory: is wrong" },
		{ "containers[0].mounts[0].source", "--mount: is wrong" },
		{ "containers[0].mounts[0].tmpfs.uid", "--mount: uid: is wrong" },
		{ "resources.memory_low", "resources.memory_low: is wrong" },
		{ "containers[1].resources.memory", "containers[1].resources.memory: is wrong" },
		{ "containers[0].image", "containers[0].image: is wrong" },
		{ "target", "target: is wrong" },
	};
	static const struct arg_option options[] = {
		{ "memory", 'm', "SIZE", "" },
		{ "memory-low", 0, "SIZE", "" },
		{ "mount", 0, "WORDS", "" },
		{ NULL, 0, NULL, NULL },
	};
	char *words[] = { xstrdup("--memory=1"), xstrdup("--mount=x"), NULL };
	struct args args = ARGS_INIT;
	struct error err = ERROR_INIT;

	CHECK_INT(args_parse(&args, options, NULL, ARGS_VERBATIM_NEVER, 2, words, &err), 0);
	typed_note(&args);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		(void)error_field(&err, ERROR_INVALID, cases[i].field, "is wrong");
		typed_rename(&err);
		CHECK_STR(error_text(&err), cases[i].text);
	}
	typed_note(NULL);
	(void)error_field(&err, ERROR_INVALID, "containers[0].resources.memory", "is wrong");
	typed_rename(&err);
	CHECK_STR(error_text(&err), "containers[0].resources.memory: is wrong");
	args_done(&args);
	free(words[0]);
	free(words[1]);
}

/* What a writer writes. The caller frees it. */
static char *written(void (*write)(FILE *to, const char *arg), const char *arg)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		abort();
	write(to, arg);
	(void)fclose(to);
	return text;
}

static void group(FILE *to, const char *arg)
{
	CHECK(help_group(&command_table, arg, to) == str_eq(arg, "vm"));
}

static void groups_have_help(void)
{
	_cleanup_str_ char *vm = written(group, "vm");
	_cleanup_str_ char *half = written(group, "v");

	CHECK(strstr(vm, "nacre vm disks"));
	CHECK(!strstr(vm, "nacre guest"));
	CHECK_STR(half, "");
}

static void overview(FILE *to, const char *arg)
{
	help_overview(&command_table, to);
}

static void man(FILE *to, const char *arg)
{
	man_write(&command_table, to);
}

static void completion(FILE *to, const char *arg)
{
	CHECK_INT(completion_write(&command_table, arg, to), 0);
}

static void forms_have_every_command(void)
{
	static const char *const shells[] = { "bash", "zsh", "fish" };
	_cleanup_str_ char *overview_text = written(overview, NULL);
	_cleanup_str_ char *man_text = written(man, NULL);

	for (size_t i = 0; command_at(&command_table, i); i++) {
		_cleanup_str_ char *head =
			xformat(".SS \"nacre %s", command_at(&command_table, i)->name);

		CHECK(strstr(overview_text, command_at(&command_table, i)->name));
		CHECK(strstr(overview_text, command_at(&command_table, i)->summary));
		CHECK(strstr(man_text, head));
	}
	for (size_t s = 0; s < sizeof(shells) / sizeof(shells[0]); s++) {
		_cleanup_str_ char *text = written(completion, shells[s]);

		for (size_t i = 0; command_at(&command_table, i); i++) {
			const struct arg_option *o = command_at(&command_table, i)->options;

			const char *blank = strchr(command_at(&command_table, i)->name, ' ');

			CHECK(strstr(text,
				     blank ? blank + 1 : command_at(&command_table, i)->name));
			for (; o && o->name; o++)
				CHECK(strstr(text, o->name));
		}
	}
	CHECK(completion_write(&command_table, "csh", stdout) < 0);
}

/* No line of text begins with a control character of roff by accident. */
static void man_has_known_requests(void)
{
	static const char *const known[] = { ".TH ", ".SH ", ".SS ", ".TP", ".PP",
					     ".RS ", ".RE",  ".nf",  ".fi", ".B " };
	_cleanup_str_ char *text = written(man, NULL);
	char *rest = text;

	for (;;) {
		const char *line = strsep(&rest, "\n");
		bool is_known = false;

		if (!line)
			return;
		for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
			is_known = is_known || str_has_prefix(line, known[i]);
		CHECK(*line != '\'');
		CHECK(*line != '.' || is_known);
	}
}

UNIT_MAIN({ "table_is_whole", table_is_whole }, { "finds", finds }, { "hints", hints },
	  { "groups_have_help", groups_have_help }, { "options_of_others", options_of_others },
	  { "fields_by_their_options", fields_by_their_options },
	  { "advice_names_commands", advice_names_commands },
	  { "forms_have_every_command", forms_have_every_command },
	  { "man_has_known_requests", man_has_known_requests })
