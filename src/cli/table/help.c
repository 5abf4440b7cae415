/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/help.h"

#include <stdbool.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/table/command.h"

static const char usage[] = "nacre [--socket PATH] [-o json|table] COMMAND …";

/* "-n, --name NAME" */
static char *help_option(const struct arg_option *o)
{
	char letter[] = { '-', o->letter, ',', ' ', '\0' };

	return xformat("%s--%s%s%s", o->letter ? letter : "    ", o->name, o->value ? " " : "",
		       o->value ? o->value : "");
}

static void help_options(const struct arg_option *options, FILE *to)
{
	struct table t = TABLE_INIT_WRAPS(2);

	for (const struct arg_option *o = options; o->name; o++) {
		_cleanup_str_ char *option = help_option(o);
		_cleanup_str_ char *indented = xformat("  %s", option);

		table_add(&t, indented);
		table_add(&t, o->help);
	}
	table_write(&t, to, false);
	table_done(&t);
}

void help_overview(const struct command_table *all, FILE *to)
{
	struct table t = TABLE_INIT_WRAPS(2);

	(void)fprintf(to, "usage: %s\n\nOwns every workload of this node.\n\ncommands:\n", usage);
	for (size_t i = 0; command_at(all, i); i++) {
		_cleanup_str_ char *name = xformat("  %s", command_at(all, i)->name);

		table_add(&t, name);
		table_add(&t, command_at(all, i)->summary);
	}
	table_write(&t, to, false);
	table_done(&t);
	(void)fputs("\noptions of every command:\n", to);
	help_options(command_options, to);
	(void)fputs("\n`nacre help COMMAND` teaches one; `nacre doctor` looks at the host.\n", to);
}

bool help_group(const struct command_table *all, const char *first, FILE *to)
{
	struct table t = TABLE_INIT_WRAPS(2);
	size_t len = strlen(first);
	bool has_any = false;

	for (size_t i = 0; command_at(all, i); i++) {
		const struct command *c = command_at(all, i);
		_cleanup_str_ char *name = xformat("  nacre %s", c->name);

		if (!str_has_prefix(c->name, first) || c->name[len] != ' ')
			continue;
		table_add(&t, name);
		table_add(&t, c->summary);
		has_any = true;
	}
	if (has_any)
		(void)fprintf(to, "usage: nacre %s COMMAND …\n\ncommands:\n", first);
	if (has_any)
		table_write(&t, to, false);
	table_done(&t);
	return has_any;
}

void help_command(const struct command *c, FILE *to)
{
	(void)fprintf(to, "usage: nacre %s%s%s%s\n\n%s.\n\n%s\n", c->name,
		      c->options ? " [OPTION…]" : "", *c->operands ? " " : "", c->operands,
		      c->summary, c->help);
	if (c->options) {
		(void)fputs("\noptions:\n", to);
		help_options(c->options, to);
	}
	if (c->run)
		(void)fputs("\nSee `nacre help` for --socket, --output and --help.\n", to);
}
