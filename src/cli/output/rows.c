/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "cli/output/template.h"

/* The cells of a line, which it is cut into. */
static void rows_cells(struct rows *r, char *line, enum table_color color)
{
	char *rest = line, *cell;
	size_t n = 0;

	line[strcspn(line, "\n")] = '\0';
	while (n < r->table.n_columns && (cell = strsep(&rest, "\t"))) {
		table_add_color(&r->table, color, cell);
		n++;
	}
	for (; n < r->table.n_columns; n++)
		table_add(&r->table, "");
}

static int rows_heads(struct rows *r, struct error *err)
{
	_cleanup_str_ char *text = NULL;
	size_t len = 0;
	FILE *memory = open_memstream(&text, &len);
	int ret;

	if (!memory)
		abort();
	ret = template_heads(r->format, r->view->head, memory, err);
	(void)fclose(memory);
	if (!text)
		abort();
	if (ret < 0)
		return ret;
	r->table.n_columns = 1;
	for (const char *at = strchr(text, '\t'); at; at = strchr(at + 1, '\t'))
		r->table.n_columns++;
	rows_cells(r, text, TABLE_BOLD);
	return 0;
}

int rows_begin(struct rows *r, const struct rows_view *view, const char *format, struct error *err)
{
	*r = (struct rows){ .view = view, .format = format };
	if (!template_is(format))
		return format_check(format, err);
	r->is_template = true;
	r->is_table = template_table(format);
	if (r->is_table && !view->head)
		return error_refuse(err, ERROR_INVALID, "--format: there is no table of this");
	return r->is_table ? rows_heads(r, err) : template_check(format, err);
}

int rows_add(struct rows *r, const void *own, const void *docker, struct error *err)
{
	_cleanup_str_ char *json = NULL, *line = NULL;
	size_t len = 0;
	FILE *memory;
	int ret;

	if (!r->is_template)
		return format_show(r->format, r->view->own, own, err);
	memory = open_memstream(&json, &len);
	if (!memory)
		abort();
	r->view->docker(&(struct json){ .to = memory, .compact = true }, docker);
	(void)fclose(memory);
	if (!json)
		abort();
	if (!r->is_table)
		return template_write(r->format, json, stdout, err);
	memory = open_memstream(&line, &len);
	if (!memory)
		abort();
	ret = template_write(r->format, json, memory, err);
	(void)fclose(memory);
	if (!line)
		abort();
	if (ret == 0)
		rows_cells(r, line, TABLE_PLAIN);
	return ret;
}

void rows_end(struct rows *r, bool color)
{
	if (r->is_table)
		table_write(&r->table, stdout, color);
}

void rows_done(struct rows *r)
{
	table_done(&r->table);
}
