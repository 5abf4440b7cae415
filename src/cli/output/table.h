/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TABLE_H
#define NACRE_CLI_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/*
 * Rows and aligned columns for people. Cells are copied and cleaned of control bytes; the last cell
 * of a row is not padded. On a terminal the rows fit its width: what is too long ends with "…", or
 * goes on in the next line where `wraps` is set. Anywhere else nothing is shortened.
 */

enum table_color {
	TABLE_PLAIN,
	TABLE_GREEN,
	TABLE_YELLOW,
	TABLE_RED,
	TABLE_DIM,
	TABLE_BOLD,
	TABLE_COLOR_COUNT,
};

struct table_cell {
	char *text;
	enum table_color color;
};

struct table {
	size_t n_columns;
	bool wraps;     /* the last column is broken at blanks */
	size_t n_fixed; /* so many columns at the beginning are never shortened */
	struct table_cell *cells;
	size_t n_cells;
};

#define TABLE_INIT(columns)                                                                        \
	{                                                                                          \
		.n_columns = (columns)                                                             \
	}
#define TABLE_INIT_WRAPS(columns)                                                                  \
	{                                                                                          \
		.n_columns = (columns), .wraps = true                                              \
	}

/* Each row is n_columns cells, the first row usually the heads. */
void table_add(struct table *t, const char *text);
void table_add_color(struct table *t, enum table_color color, const char *text);
/* Writes the rows; with color only where that is true. */
void table_write(const struct table *t, FILE *to, bool color);
/* The same for so many columns of a terminal; 0: any. */
void table_write_fit(const struct table *t, FILE *to, bool color, unsigned width);
void table_done(struct table *t);

#endif
