/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/table.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/output/output.h"
#include "cli/output/text.h"

/* Blanks between two columns. */
#define TABLE_GAP 2
/* No column is made narrower for the terminal's sake; nor one that wraps. */
#define TABLE_LEAST 6
#define TABLE_WRAP_LEAST 20

static const char *const codes[] = {
	[TABLE_PLAIN] = "",       [TABLE_GREEN] = "\033[32m", [TABLE_YELLOW] = "\033[33m",
	[TABLE_RED] = "\033[31m", [TABLE_DIM] = "\033[2m",    [TABLE_BOLD] = "\033[1m",
};
static_assert(ARRAY_SIZE(codes) == TABLE_COLOR_COUNT, "each color has its code");

void table_add_color(struct table *t, enum table_color color, const char *text)
{
	struct table_cell cell = { .text = xstrdup(text), .color = color };

	str_clean(cell.text);
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

/* Takes from the widest column until a row fits, but leaves each TABLE_LEAST. */
static void table_squeeze(size_t *widths, size_t n, size_t n_fixed, unsigned width)
{
	size_t total = (n - 1) * TABLE_GAP;

	for (size_t i = 0; i < n; i++)
		total += widths[i];
	while (total > width && n_fixed < n) {
		size_t widest = n_fixed;

		for (size_t i = n_fixed + 1; i < n; i++) {
			if (widths[i] > widths[widest])
				widest = i;
		}
		if (widths[widest] <= TABLE_LEAST)
			return;
		widths[widest]--;
		total--;
	}
}

/* At most n columns of text; how many it took. */
static size_t table_write_text(const char *text, size_t n, FILE *to)
{
	size_t columns = text_width(text);
	const char *mark = output_has_utf8() ? "…" : "~";

	if (columns <= n) {
		(void)fputs(text, to);
		return columns;
	}
	(void)fwrite(text, 1, text_prefix(text, n - 1), to);
	(void)fputs(mark, to);
	return n;
}

static size_t table_write_cell(const struct table_cell *c, size_t n, FILE *to, bool color)
{
	size_t columns;

	if (!color || c->color == TABLE_PLAIN)
		return table_write_text(c->text, n, to);
	(void)fputs(codes[c->color], to);
	columns = table_write_text(c->text, n, to);
	(void)fputs("\033[0m", to);
	return columns;
}

/* The last cell in lines of n columns, broken at blanks, those behind the first below it. */
static void table_write_wrapped(const struct table_cell *c, size_t indent, size_t n, FILE *to)
{
	const char *at = c->text;

	while (text_width(at) > n) {
		size_t end = text_prefix(at, n);
		size_t blank = end;

		while (blank > 0 && at[blank] != ' ')
			blank--;
		if (blank > 0)
			end = blank;
		(void)fwrite(at, 1, end, to);
		(void)fprintf(to, "\n%*s", (int)indent, "");
		at += end + strspn(at + end, " ");
	}
	(void)fputs(at, to);
}

/* The last cell of the row that is not empty; behind it nothing is written. */
static size_t table_row_last(const struct table *t, size_t first)
{
	size_t last = t->n_columns;

	while (last > 1 && !*t->cells[first + last - 1].text)
		last--;
	return last - 1;
}

static void table_write_row(const struct table *t, const struct table_cell *row,
			    const size_t *widths, FILE *to, bool color, bool wraps)
{
	size_t last = table_row_last(t, (size_t)(row - t->cells));
	size_t indent = 0;

	for (size_t c = 0; c <= last; c++) {
		size_t used;

		if (wraps && c + 1 == t->n_columns) {
			table_write_wrapped(&row[c], indent, widths[c], to);
			break;
		}
		used = table_write_cell(&row[c], widths[c], to, color);
		if (c < last)
			(void)fprintf(to, "%*s", (int)(widths[c] - used + TABLE_GAP), "");
		indent += widths[c] + TABLE_GAP;
	}
	(void)fputc('\n', to);
}

void table_write_fit(const struct table *t, FILE *to, bool color, unsigned width)
{
	size_t *widths = xrealloc(NULL, t->n_columns, sizeof(*widths));
	bool wraps = false;

	assert(t->n_cells % t->n_columns == 0);
	for (size_t c = 0; c < t->n_columns; c++)
		widths[c] = table_column_width(t, c);
	if (width > 0 && t->wraps) {
		size_t others = 0;

		for (size_t c = 0; c + 1 < t->n_columns; c++)
			others += widths[c] + TABLE_GAP;
		wraps = others + TABLE_WRAP_LEAST <= width;
		if (wraps)
			widths[t->n_columns - 1] = MIN(widths[t->n_columns - 1], width - others);
	} else if (width > 0) {
		table_squeeze(widths, t->n_columns, t->n_fixed, width);
	}
	for (size_t first = 0; first < t->n_cells; first += t->n_columns)
		table_write_row(t, &t->cells[first], widths, to, color, wraps);
	free(widths);
}

void table_write(const struct table *t, FILE *to, bool color)
{
	int fd = fileno(to);

	table_write_fit(t, to, color, fd < 0 ? 0 : output_width(fd));
}

void table_done(struct table *t)
{
	for (size_t i = 0; i < t->n_cells; i++)
		free(t->cells[i].text);
	free(t->cells);
	t->cells = NULL;
	t->n_cells = 0;
}
