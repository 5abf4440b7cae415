/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TEMPLATE_H
#define NACRE_CLI_TEMPLATE_H

#include <stdbool.h>
#include <stdio.h>

#include "base/log/error.h"

/*
 * Templates as docker and podman take them with --format, in Go's language, as much of it as their
 * manuals' examples use:
 *
 *   {{.Name}} {{.State.Status}} {{.}} {{$.Name}}    a value by its names
 *   {{json .}} {{len .}} {{upper .}} {{lower .}} {{title .}} {{index . WHAT…}} {{join . ","}}
 *   {{.Label "key"}} {{println .}}
 *   {{if .}} … {{else}} … {{end}}    {{range .}} … {{else}} … {{end}}    {{with .}} … {{end}}
 *
 * A '-' inside of the braces takes the blanks beside them away; \n, \t and \\ outside of them are
 * what they are in C. Anything else of the language (variables, pipes, printf, comparisons) is
 * refused with its name.
 */

/* Whether a text is one: "{{" with what can follow it, or "table " in front. */
bool template_is(const char *text);
/* ERROR_INVALID says the position. */
int template_check(const char *text, struct error *err);
/* With the values of a JSON document; a line feed ends it. ERROR_INVALID: there is no such name. */
int template_write(const char *text, const char *json, FILE *to, struct error *err);

/* Behind "table ", or NULL where the text does not ask for a table. */
const char *template_table(const char *text);
/* The heads of a table: each value by its name, as `name` says it (the member, "Names"). */
int template_heads(const char *text, const char *(*name)(const char *member), FILE *to,
		   struct error *err);

#endif
