/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/command.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/options/typed.h"
#include "cli/output/alloc.h"
#include "cli/output/text.h"
#include "cli/table/foreign.h"

const struct arg_option command_options[] = {
	{ "socket", 0, "PATH",
	  "the daemon's socket, else $NACRE_SOCKET, else " CLI_SOCKET_DEFAULT },
	{ "host", 0, "NAME[:PORT]",
	  "a daemon elsewhere, over mutual TLS, else $NACRE_HOST; port " TARGET_PORT },
	{ "context", 0, "NAME", "the daemon of that name (nacre context), else $NACRE_CONTEXT" },
	{ "tls-ca", 0, "FILE",
	  "the certificate of its authority, else ca.crt of $NACRE_CERT_PATH" },
	{ "tls-cert", 0, "FILE", "your certificate, else the only NAME.crt there" },
	{ "tls-key", 0, "FILE", "its private key, else NAME.key there" },
	{ "tls-name", 0, "NAME", "that the daemon's certificate must have, else that of --host" },
	{ "output", 'o', "FORM", "table (for people) or json (for programs)" },
	{ "help", 'h', NULL, "teach the command" },
	{ NULL, 0, NULL, NULL },
};

const struct command *command_at(const struct command_table *t, size_t i)
{
	for (size_t g = 0; g < t->n; g++) {
		if (i < t->groups[g]->n)
			return &t->groups[g]->commands[i];
		i -= t->groups[g]->n;
	}
	return NULL;
}

static bool command_is(const struct command *c, char *const *words, size_t n, size_t *ret_words)
{
	const char *blank = strchr(c->name, ' ');
	size_t len = blank ? (size_t)(blank - c->name) : strlen(c->name);

	if (n < 1 || strlen(words[0]) != len || memcmp(words[0], c->name, len) != 0)
		return false;
	if (blank && (n < 2 || !str_eq(words[1], blank + 1)))
		return false;
	*ret_words = blank ? 2 : 1;
	return true;
}

const struct command *command_find(const struct command_table *t, char *const *words, size_t n,
				   size_t *ret_words)
{
	const char *synonym = n > 0 ? foreign_synonym(words[0]) : NULL;

	for (size_t i = 0; command_at(t, i); i++) {
		if (synonym && str_eq(command_at(t, i)->name, synonym)) {
			*ret_words = 1;
			return command_at(t, i);
		}
		if (command_is(command_at(t, i), words, n, ret_words))
			return command_at(t, i);
	}
	return NULL;
}

/* The names behind a first word that is only half a name ("image"): "import, ls, rm"; or NULL. */
static char *command_seconds(const struct command_table *t, const char *first)
{
	size_t len = strlen(first);
	char *all = NULL;

	for (size_t i = 0; command_at(t, i); i++) {
		const char *name = command_at(t, i)->name;
		char *longer;

		if (!str_has_prefix(name, first) || name[len] != ' ')
			continue;
		longer = xformat("%s%s%s", all ? all : "", all ? ", " : "", name + len + 1);
		free(all);
		all = longer;
	}
	return all;
}

int command_unknown(const struct command_table *t, char *const *words, size_t n, struct error *err)
{
	_cleanup_str_ char *seconds = command_seconds(t, words[0]);
	const char *advice = foreign_command(words[0]);
	const char *asked = words[0];
	const char *best = NULL;
	size_t best_distance = 3;

	if (seconds && n < 2)
		return error_refuse(err, ERROR_INVALID, "`%s` is followed by one of: %s", words[0],
				    seconds);
	if (seconds)
		return error_refuse(err, ERROR_INVALID, "unknown command `%s %s` (there are: %s)",
				    words[0], words[1], seconds);
	if (advice)
		return error_refuse(err, ERROR_INVALID, "unknown command `%s`: %s", asked, advice);
	for (size_t i = 0; command_at(t, i); i++) {
		size_t distance = text_distance(asked, command_at(t, i)->name);

		if (distance < best_distance && distance < strlen(command_at(t, i)->name)) {
			best = command_at(t, i)->name;
			best_distance = distance;
		}
	}
	if (best)
		return error_refuse(err, ERROR_INVALID, "unknown command `%s` (did you mean `%s`?)",
				    asked, best);
	return error_refuse(err, ERROR_INVALID, "unknown command `%s` (see `nacre help`)", asked);
}

int cli_complain(const char *fmt, ...)
{
	char text[2 * ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	str_clean(text);
	(void)fflush(stdout);
	(void)fprintf(stderr, "nacre: %s\n", text);
	return CLI_FAILED;
}

int cli_fail(const struct error *err)
{
	struct error ours = *err;

	typed_rename(&ours);
	return cli_complain("%s", error_text(&ours));
}
