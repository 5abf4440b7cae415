/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table.h"

#include "unit.h"

static void check(struct table *t, bool color, const char *expected)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		abort();
	table_write(t, to, color);
	(void)fclose(to);
	CHECK_STR(text, expected);
	free(text);
}

static void aligns(void)
{
	struct table t = TABLE_INIT(3);

	check(&t, false, "");
	table_add(&t, "NAME");
	table_add(&t, "KIND");
	table_add(&t, "STATE");
	table_add(&t, "nacré-貝");
	table_add(&t, "pod");
	table_add(&t, "running");
	table_add(&t, "x");
	table_add(&t, "");
	table_add(&t, "");
	check(&t, false, "NAME     KIND  STATE\nnacré-貝  pod   running\nx\n");
	table_done(&t);
}

static void colors(void)
{
	struct table t = TABLE_INIT(2);

	table_add_color(&t, TABLE_GREEN, "ok");
	table_add(&t, "a");
	table_add_color(&t, TABLE_RED, "bad");
	table_add_color(&t, TABLE_BOLD, "b\033[0m");
	check(&t, false, "ok   a\nbad  b?[0m\n");
	check(&t, true, "\033[32mok\033[0m   a\n\033[31mbad\033[0m  \033[1mb?[0m\033[0m\n");
	table_done(&t);
}

UNIT_MAIN({ "aligns", aligns }, { "colors", colors })
