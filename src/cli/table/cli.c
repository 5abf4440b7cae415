/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/cli.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "cli/options/typed.h"
#include "cli/output/output.h"
#include "cli/table/command.h"
#include "cli/table/command_groups.h"
#include "cli/table/docker.h"
#include "cli/table/foreign.h"
#include "cli/table/help.h"

#define _cleanup_args_ _cleanup_(args_done)

/* Options in front of the command are the same as behind it; those behind it win. */
static int cli_settle(struct cli *cli, const struct command *c, const struct args *before,
		      const struct args *after, struct error *err)
{
	const struct args *const sources[] = { before, after };
	const char *form = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(sources); i++) {
		const char *wanted = args_value(sources[i], "output");

		form = wanted ? wanted : form;
	}
	if (form && !str_eq(form, "json") && !str_eq(form, "table"))
		return error_refuse(err, ERROR_INVALID,
				    "--output is \"json\" or \"table\", not \"%s\"", form);
	cli->json = form && str_eq(form, "json");
	cli->color = output_has_color(STDOUT_FILENO);
	return c->alone ? 0 : target_settle(&cli->daemon, before, after, err);
}

/* The option of `c` that docker and podman have by the name that was not understood; or NULL. */
static const char *cli_ours(const struct command *c, const struct args *args, bool *ret_is_same)
{
	const char *ours = args->unknown ? foreign_option(args->unknown, ret_is_same) : NULL;

	for (const struct arg_option *o = c->options; ours && o && o->name; o++)
		if (str_eq(o->name, ours))
			return ours;
	return NULL;
}

static int cli_misread(const struct command *c, const struct args *args, const struct error *err)
{
	bool is_same;
	const char *ours = cli_ours(c, args, &is_same);

	if (ours)
		return cli_complain("%s: unknown option --%.*s: use --%s", c->name,
				    (int)strcspn(args->unknown, "="), args->unknown, ours);
	return cli_complain("%s: %s; see `nacre help %s`", c->name, error_text(err), c->name);
}

/* Takes the words apart; an option by its name elsewhere is put in its place in argv first. The
 * texts that this needs go to `owned`, one for each word at the most. */
static int cli_parse(const struct command *c, struct args *args, int argc, char **argv,
		     struct arena *owned, struct error *err)
{
	size_t n_verbatim = c->n_verbatim ? c->n_verbatim : ARGS_VERBATIM_NEVER;
	const char *ours;
	bool is_same;
	char *word;
	int r;

	for (;;) {
		r = args_parse(args, c->options, command_options, n_verbatim, argc, argv, err);
		ours = r < 0 ? cli_ours(c, args, &is_same) : NULL;
		if (!ours || !is_same)
			return r;
		word = arena_printf(owned, "--%s%s", ours,
				    args->unknown + strcspn(args->unknown, "="));
		if (!word)
			return error_set(err, -ENOMEM, "read the arguments");
		for (int i = 0; i < argc; i++)
			if (argv[i] + 2 == args->unknown)
				argv[i] = word;
		args_done(args);
		*args = (struct args)ARGS_INIT;
		*err = (struct error)ERROR_INIT;
	}
}

static int cli_run(const struct command *c, const struct args *before, int argc, char **argv)
{
	_cleanup_(arena_done) struct arena owned = ARENA_INIT;
	_cleanup_args_ struct args args = ARGS_INIT;
	struct error err = ERROR_INIT;
	struct cli cli = { .commands = &command_table };
	int r;

	r = cli_parse(c, &args, argc, argv, &owned, &err);
	if (r < 0)
		return cli_misread(c, &args, &err);
	if (args_flag(&args, "help")) {
		help_command(c, stdout);
		return 0;
	}
	r = cli_settle(&cli, c, before, &args, &err);
	if (r < 0)
		return cli_fail(&err);
	if (args.n_operands < c->n_min || args.n_operands > c->n_max) {
		target_done(&cli.daemon);
		return cli_complain("%s: too %s arguments; usage: nacre %s%s%s%s", c->name,
				    args.n_operands < c->n_min ? "few" : "many", c->name,
				    c->options ? " [OPTION…]" : "", *c->operands ? " " : "",
				    c->operands);
	}
	typed_note(&args);
	r = c->run(&cli, &args);
	typed_note(NULL);
	target_done(&cli.daemon);
	return r;
}

static int cli_run_extra(const struct command *c, const struct args *before, int argc, char **argv,
			 const struct cli_extra *extras, size_t n_extras)
{
	for (int i = 1; i < argc; i++) {
		if (str_eq(argv[i], "--help") || str_eq(argv[i], "-h")) {
			help_command(c, stdout);
			return 0;
		}
	}
	if (before->n_given > 0)
		return cli_complain("options of `nacre %s` stand behind its name", c->name);
	for (size_t i = 0; i < n_extras; i++) {
		if (str_eq(extras[i].name, c->name))
			return extras[i].run(argc, argv);
	}
	return cli_complain("this program cannot do `nacre %s`", c->name);
}

static int cli_dispatch(int argc, char **argv, const struct cli_extra *extras, size_t n_extras)
{
	_cleanup_args_ struct args before = ARGS_INIT;
	struct error err = ERROR_INIT;
	const struct command *c;
	char **words;
	size_t n, n_name;

	/* What everybody tries is the command of that name. */
	if (argc > 1 && str_eq(argv[1], "--version"))
		argv[1] += 2;
	if (args_parse(&before, command_options, NULL, 1, argc - 1, argv + 1, &err) < 0)
		return cli_complain("%s; see `nacre help`", error_text(&err));
	words = before.operands;
	n = before.n_operands;
	if (args_flag(&before, "help")) {
		help_overview(&command_table, stdout);
		return 0;
	}
	if (n == 0) {
		help_overview(&command_table, stderr);
		return CLI_FAILED;
	}
	c = command_find(&command_table, words, n, &n_name);
	if (!c && n > 1 && (str_eq(words[1], "--help") || str_eq(words[1], "-h")) &&
	    help_group(&command_table, words[0], stdout))
		return 0;
	if (!c) {
		(void)command_unknown(&command_table, words, n, &err);
		return cli_fail(&err);
	}
	if (!c->run)
		return cli_run_extra(c, &before, (int)n, words, extras, n_extras);
	return cli_run(c, &before, (int)(n - n_name), words + n_name);
}

/* Under the name of docker or podman: their line becomes one of ours first. */
static int cli_dispatch_docker(int argc, char **argv, const struct cli_extra *extras,
			       size_t n_extras)
{
	_cleanup_(docker_line_done) struct docker_line line = { .words = NULL };
	struct error err = ERROR_INIT;

	if (docker_line_init(&line, &command_table, argc, argv, &err) < 0)
		return cli_fail(&err);
	return cli_dispatch((int)line.n, line.words, extras, n_extras);
}

int cli_main(int argc, char **argv, const struct cli_extra *extras, size_t n_extras)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };

	/* A reader that has gone is seen as EPIPE. */
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (argc > 0 && docker_is_name(argv[0]))
		return output_finish(cli_dispatch_docker(argc, argv, extras, n_extras));
	return output_finish(cli_dispatch(argc, argv, extras, n_extras));
}
