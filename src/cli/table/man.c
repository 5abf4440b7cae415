/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/man.h"

#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/table/command.h"

/* What roff would take for something else, or would print as a typographer's sign. */
static const char *const man_escapes[128] = {
	['\\'] = "\\e",   ['-'] = "\\-",   ['`'] = "\\(ga",
	['\''] = "\\(aq", ['^'] = "\\(ha", ['~'] = "\\(ti",
};

/* One code point beyond ASCII, whatever encoding the reader's troff expects; returns its length.
 * Our own texts are valid UTF-8. */
static size_t man_code_point(const char *s, FILE *to)
{
	unsigned char lead = (unsigned char)s[0];
	size_t n = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	unsigned code = lead & (0xffU >> (n + 1));

	for (size_t i = 1; i < n; i++)
		code = code << 6 | ((unsigned char)s[i] & 0x3f);
	(void)fprintf(to, "\\[u%04X]", code);
	return n;
}

/* Text such that roff takes nothing in it for a request or an escape. */
static void man_text(const char *s, size_t len, FILE *to)
{
	if (len > 0 && s[0] == '.')
		(void)fputs("\\&", to);
	for (size_t i = 0; i < len;) {
		unsigned char c = (unsigned char)s[i];

		if (c >= 0x80) {
			i += man_code_point(s + i, to);
			continue;
		}
		if (man_escapes[c])
			(void)fputs(man_escapes[c], to);
		else
			(void)fputc(c, to);
		i++;
	}
}

static void man_line(const char *s, FILE *to)
{
	man_text(s, strlen(s), to);
	(void)fputc('\n', to);
}

/* Help text: paragraphs, and lines indented by four as examples. */
static void man_paragraphs(const char *help, FILE *to)
{
	bool example = false;

	while (*help) {
		size_t len = strcspn(help, "\n");
		bool indented = str_has_prefix(help, "    ");

		if (indented && !example)
			(void)fputs(".PP\n.RS 4\n.nf\n", to);
		else if (!indented && example)
			(void)fputs(".fi\n.RE\n", to);
		example = indented;
		if (len == 0)
			(void)fputs(".PP\n", to);
		else
			man_text(help + (indented ? 4 : 0), len - (indented ? 4 : 0), to);
		if (len > 0)
			(void)fputc('\n', to);
		help += len + (help[len] == '\n');
	}
	if (example)
		(void)fputs(".fi\n.RE\n", to);
}

static void man_options(const struct arg_option *options, FILE *to)
{
	for (const struct arg_option *o = options; o && o->name; o++) {
		(void)fputs(".TP\n\\fB", to);
		if (o->letter)
			(void)fprintf(to, "\\-%c\\fR, \\fB", o->letter);
		(void)fputs("\\-\\-", to);
		man_text(o->name, strlen(o->name), to);
		(void)fputs("\\fR", to);
		if (o->value)
			(void)fprintf(to, " \\fI%s\\fR", o->value);
		(void)fputc('\n', to);
		man_line(o->help, to);
	}
}

static void man_command(const struct command *c, FILE *to)
{
	_cleanup_str_ char *usage = xformat("%s%s%s%s", c->name, c->options ? " [OPTION…]" : "",
					    *c->operands ? " " : "", c->operands);

	(void)fputs(".SS \"nacre ", to);
	man_text(usage, strlen(usage), to);
	(void)fputs("\"\n", to);
	(void)fprintf(to, "\\fB%s\\fR: ", c->name);
	man_line(c->summary, to);
	(void)fputs(".PP\n", to);
	man_paragraphs(c->help, to);
	man_options(c->options, to);
}

struct man_term {
	const char *term;
	const char *text;
};

static void man_terms(const char *head, const struct man_term *terms, size_t n, FILE *to)
{
	(void)fprintf(to, ".SH %s\n", head);
	for (size_t i = 0; i < n; i++) {
		(void)fputs(".TP\n\\fB", to);
		man_text(terms[i].term, strlen(terms[i].term), to);
		(void)fputs("\\fR\n", to);
		man_line(terms[i].text, to);
	}
}

void man_write(const struct command_table *all, FILE *to)
{
	static const struct man_term statuses[] = {
		{ "0", "It worked, or the workload ended with 0." },
		{ "1", "Of `image verify`: the image is not accepted." },
		{ "125", "nacre itself failed; the sentence on standard error says why." },
		{ "126", "The workload's program is not executable." },
		{ "127", "The workload's program was not found." },
		{ "128 + n", "Signal n ended the workload." },
		{ "any other", "The exit status of the workload." },
	};
	static const struct man_term variables[] = {
		{ "NACRE_SOCKET", "Path of the daemon's socket." },
		{ "NO_COLOR", "Where it is set and not empty, nothing is colored." },
	};
	static const struct man_term files[] = {
		{ CLI_SOCKET_DEFAULT, "The daemon's socket (mode 0600)." },
		{ "/etc/nacre/config.yaml", "The daemon's configuration." },
		{ "/etc/nacre/policy.json", "Which images may be pulled (see image verify)." },
		{ "/var/lib/nacre", "Images and what else outlives a reboot." },
		{ "/run/nacre", "State that does not." },
	};

	(void)fputs(".TH NACRE 1 \"\" \"nacre " NACRE_VERSION "\"\n.SH NAME\n"
		    "nacre \\- owns every workload of a Linux node\n.SH SYNOPSIS\n"
		    ".B nacre\n[\\-\\-socket PATH] [\\-o json|table] COMMAND \\[u2026]\n.SH "
		    "DESCRIPTION\n",
		    to);
	man_line("One program that runs executables, cells, pods and nested instances of itself.",
		 to);
	man_line("Except `nacre daemon`, each command is a client of the daemon's gRPC API.", to);
	(void)fputs(".SH OPTIONS\nThey may stand in front of the command or behind it.\n", to);
	man_options(command_options, to);
	(void)fputs(".SH COMMANDS\n", to);
	for (size_t i = 0; command_at(all, i); i++)
		man_command(command_at(all, i), to);
	man_terms("EXIT STATUS", statuses, ARRAY_SIZE(statuses), to);
	man_terms("ENVIRONMENT", variables, ARRAY_SIZE(variables), to);
	man_terms("FILES", files, ARRAY_SIZE(files), to);
}
