/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "oci/cmd/command.h"
#include "oci/cmd/handlers.h"

#define OPTION_COLUMN 32

static void help_options(const struct arg_option *o, FILE *to)
{
	for (; o->name; o++) {
		char name[64];

		(void)str_printf(name, sizeof(name), "--%s%s%s", o->name, o->value ? " " : "",
				 o->value ? o->value : "");
		(void)fprintf(to, "  %s%c%s %-*s %s\n", o->letter ? "-" : " ",
			      o->letter ? o->letter : ' ', o->letter ? "," : " ", OPTION_COLUMN,
			      name, o->help);
	}
}

void oci_help_overview(const struct oci_table *t, FILE *to)
{
	(void)fputs(
		"usage: nacre-oci [OPTION…] COMMAND …\n\n"
		"Runs containers of OCI bundles, for podman, containerd, Docker and by hand.\n\n"
		"commands:\n",
		to);
	for (size_t i = 0; i < t->n; i++)
		(void)fprintf(to, "  %-12s %s\n", t->commands[i].name, t->commands[i].summary);
	(void)fputs("\noptions before the command:\n", to);
	help_options(t->options, to);
}

void oci_help_command(const struct oci_command *c, FILE *to)
{
	(void)fprintf(to, "usage: nacre-oci %s%s%s%s\n\n%s.\n", c->name,
		      c->options->name ? " [OPTION…]" : "", *c->operands ? " " : "", c->operands,
		      c->summary);
	if (c->help)
		(void)fprintf(to, "\n%s\n", c->help);
	if (c->options->name)
		(void)fputs("\noptions:\n", to);
	help_options(c->options, to);
}

/* ---- nacre-oci(1) ---- */

/* Our own texts hold no backslash, and no line begins with a dot. */
static void man_text(const char *s, FILE *to)
{
	for (; *s; s++) {
		if (*s == '-')
			(void)fputs("\\-", to);
		else if (str_has_prefix(s, "…")) {
			(void)fputs("...", to);
			s += strlen("…") - 1;
		} else
			(void)fputc(*s, to);
	}
}

static void man_options(const struct arg_option *o, FILE *to)
{
	for (; o->name; o++) {
		(void)fputs(".TP\n\\fB", to);
		if (o->letter)
			(void)fprintf(to, "\\-%c\\fR, \\fB", o->letter);
		(void)fputs("\\-\\-", to);
		man_text(o->name, to);
		(void)fputs("\\fR", to);
		if (o->value)
			(void)fprintf(to, " \\fI%s\\fR", o->value);
		(void)fputc('\n', to);
		man_text(o->help, to);
		(void)fputc('\n', to);
	}
}

static void man_page(const struct oci_table *t, FILE *to)
{
	(void)fprintf(to,
		      ".TH NACRE\\-OCI 1 \"\" \"nacre %s\"\n.SH NAME\nnacre\\-oci \\- runs "
		      "containers of OCI bundles\n.SH SYNOPSIS\n.B nacre\\-oci\n[\\fIOPTION\\fR"
		      "...] \\fICOMMAND\\fR ...\n.br\n.B nacre oci\n[\\fIOPTION\\fR...] "
		      "\\fICOMMAND\\fR ...\n.SH DESCRIPTION\nThe command line of the OCI's "
		      "runtimes, for podman, containerd and Docker, and by hand. It needs no "
		      "daemon. An error is a sentence on standard error and in the file of "
		      "\\-\\-log, and exit status 1.\n.SH OPTIONS\n",
		      NACRE_VERSION);
	man_options(t->options, to);
	(void)fputs(".SH COMMANDS\n", to);
	for (size_t i = 0; i < t->n; i++) {
		const struct oci_command *c = &t->commands[i];

		(void)fprintf(to, ".SS %s ", c->name);
		man_text(c->operands, to);
		(void)fputc('\n', to);
		man_text(c->summary, to);
		(void)fputs(".\n", to);
		if (c->help) {
			(void)fputs(".PP\n", to);
			man_text(c->help, to);
			(void)fputc('\n', to);
		}
		man_options(c->options, to);
	}
}

int oci_man(const struct oci *oci, const struct args *args, struct error *err)
{
	(void)args;
	(void)err;
	man_page(oci->table, stdout);
	return EXIT_SUCCESS;
}
