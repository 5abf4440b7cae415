/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include <assert.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "cli/text.h"

/* Blanks between two columns. */
#define TABLE_GAP 2

static const char *const codes[] = {
	[TABLE_PLAIN] = "",       [TABLE_GREEN] = "\033[32m", [TABLE_YELLOW] = "\033[33m",
	[TABLE_RED] = "\033[31m", [TABLE_DIM] = "\033[2m",    [TABLE_BOLD] = "\033[1m",
};
static_assert(ARRAY_SIZE(codes) == TABLE_COLOR_COUNT, "each color has its code");

void table_add_color(struct table *t, enum table_color color, const char *text)
{
	struct table_cell cell = { .text = xstrdup(text), .color = color };

	text_clean(cell.text);
	t->cells = xrealloc(t->cells, t->n_cells + 1, sizeof(*t->cells));
	t->cells[t->n_cells++] = cell;
}

void table_add(struct table *t, const char *text)
{
	table_add_color(t, TABLE_PLAIN, text);
}

static size_t table_column_width(const struct table *t, size_t column)
{
	size_t width = 0;

	for (size_t i = column; i < t->n_cells; i += t->n_columns)
		width = MAX(width, text_width(t->cells[i].text));
	return width;
}

static void table_write_cell(const struct table_cell *c, FILE *to, bool color)
{
	if (!color || c->color == TABLE_PLAIN)
		(void)fputs(c->text, to);
	else
		(void)fprintf(to, "%s%s\033[0m", codes[c->color], c->text);
}

/* The last cell of the row that is not empty; behind it nothing is written. */
static size_t table_row_last(const struct table *t, size_t first)
{
	size_t last = t->n_columns;

	while (last > 1 && !*t->cells[first + last - 1].text)
		last--;
	return last - 1;
}

void table_write(const struct table *t, FILE *to, bool color)
{
	size_t *widths = xrealloc(NULL, t->n_columns, sizeof(*widths));

	assert(t->n_cells % t->n_columns == 0);
	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = table_column_width(t, c);
	for (size_t first = 0; first < t->n_cells; first += t->n_columns) {
		size_t last = table_row_last(t, first);

		for (size_t c = 0; c <= last; c++) {
			const struct table_cell *cell = &t->cells[first + c];
			size_t pad = widths[c] - text_width(cell->text) + TABLE_GAP;

			table_write_cell(cell, to, color);
			if (c < last)
				(void)fprintf(to, "%*s", (int)pad, "");
		}
		(void)fputc('\n', to);
	}
	free(widths);
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i].text);
	free(t->cells);
	*t = (struct table)TABLE_INIT(t->n_columns);
}
