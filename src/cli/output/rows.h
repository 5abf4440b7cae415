/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_ROWS_H
#define NACRE_CLI_ROWS_H

#include "cli/output/format.h"
#include "cli/output/table.h"

/*
 * The output of objects by --format, one after the other: lines of our own form
 * (cli/output/format.h), or of a template of docker's (cli/output/template.h), aligned where it
 * begins with "table ". Each form has a view of its own.
 */

struct rows_view {
	format_view_fn own;
	format_view_fn docker;
	const char *(*head)(const char *member); /* of a column; NULL: there is no table of it */
};

struct rows {
	const struct rows_view *view;
	const char *format;
	bool is_template;
	bool is_table;
	struct table table;
};

/* ERROR_INVALID says the position in the text, before anything is asked for. */
int rows_begin(struct rows *r, const struct rows_view *view, const char *format, struct error *err);
/* The object as each of the two views takes it. */
int rows_add(struct rows *r, const void *own, const void *docker, struct error *err);
/* Writes the table, if it is one. */
void rows_end(struct rows *r, bool color);
void rows_done(struct rows *r);

#endif
