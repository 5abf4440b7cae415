/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/cmd/main.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/args.h"
#include "base/text/str.h"
#include "oci/cmd/command.h"
#include "oci/cmd/report.h"

bool oci_is_name(const char *argv0)
{
	const char *slash = argv0 ? strrchr(argv0, '/') : NULL;

	return argv0 && str_eq(slash ? slash + 1 : argv0, "nacre-oci");
}

static void print_version(void)
{
	(void)printf("nacre-oci version %s\nspec: 1.3.0\n", NACRE_VERSION);
}

static const struct oci_command *command_find(const char *name)
{
	for (size_t i = 0; i < oci_table.n; i++)
		if (str_eq(oci_table.commands[i].name, name))
			return &oci_table.commands[i];
	return NULL;
}

/* Behind the global options: the command's own words. */
static int run_command(const struct oci *oci, const struct oci_command *c, int argc, char **argv,
		       struct error *err)
{
	_cleanup_(args_done) struct args args = ARGS_INIT;
	static const struct arg_option help[] = { { "help", 'h', NULL, "teach the command" },
						  { NULL, 0, NULL, NULL } };
	int r;

	r = args_parse(&args, c->options, help, c->n_verbatim ? c->n_verbatim : ARGS_VERBATIM_NEVER,
		       argc, argv, err);
	if (r < 0)
		return error_wrap(err, r, "%s", c->name);
	if (args_flag(&args, "help")) {
		oci_help_command(c, stdout);
		return EXIT_SUCCESS;
	}
	if (args.n_operands < c->n_min || args.n_operands > c->n_max)
		return error_refuse(err, ERROR_INVALID, "usage: nacre-oci %s %s", c->name,
				    c->operands);
	r = c->run(oci, &args, err);
	return r;
}

static int run_words(const struct args *global, char **argv, struct error *err)
{
	const struct oci oci = {
		.table = &oci_table,
		.root = args_value(global, "root") ?: OCI_ROOT_DEFAULT,
		.systemd_cgroup = args_flag(global, "systemd-cgroup"),
		.argv = argv,
	};
	const struct oci_command *c;
	int r;

	r = report_open(args_value(global, "log"), args_value(global, "log-format") ?: "text",
			args_flag(global, "debug"), err);
	if (r < 0)
		return r;
	if (args_flag(global, "version")) {
		print_version();
		return EXIT_SUCCESS;
	}
	if (args_flag(global, "help") || global->n_operands == 0 ||
	    str_eq(global->operands[0], "help")) {
		c = global->n_operands > 1 ? command_find(global->operands[1]) : NULL;
		if (c)
			oci_help_command(c, stdout);
		else
			oci_help_overview(&oci_table, stdout);
		return EXIT_SUCCESS;
	}
	c = command_find(global->operands[0]);
	if (!c)
		return error_refuse(err, ERROR_INVALID, "unknown command \"%.60s\"",
				    global->operands[0]);
	return run_command(&oci, c, (int)global->n_operands - 1, global->operands + 1, err);
}

int oci_main(int n_words, char **words, char **argv)
{
	_cleanup_(args_done) struct args global = ARGS_INIT;
	struct error err = ERROR_INIT;
	int r;

	r = args_parse(&global, oci_table.options, NULL, 1, n_words, words, &err);
	if (r == 0)
		r = run_words(&global, argv, &err);
	if (r < 0) {
		report_error(&err);
		r = EXIT_FAILURE;
	}
	report_close();
	return r;
}
