/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/table.h"

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

static void fit(struct table *t, unsigned width, const char *expected)
{
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);

	if (!to)
		abort();
	table_write_fit(t, to, false, width);
	(void)fclose(to);
	CHECK_STR(text, expected);
	free(text);
}

static void fits(void)
{
	struct table t = TABLE_INIT(3);

	(void)setenv("LC_ALL", "C.UTF-8", 1);
	table_add(&t, "0123456789");
	table_add(&t, "a name that is long");
	table_add(&t, "pod");
	fit(&t, 0, "0123456789  a name that is long  pod\n");
	fit(&t, 36, "0123456789  a name that is long  pod\n");
	fit(&t, 35, "0123456789  a name that is lo…  pod\n");
	fit(&t, 24, "0123456…  a name t…  pod\n");
	t.n_fixed = 1;
	fit(&t, 24, "0123456789  a name…  pod\n");
	/* No column is shorter than that. */
	fit(&t, 3, "0123456789  a nam…  pod\n");
	(void)setenv("LC_ALL", "C", 1);
	fit(&t, 24, "0123456789  a name~  pod\n");
	table_done(&t);
}

static void wraps(void)
{
	struct table t = TABLE_INIT_WRAPS(2);

	table_add(&t, "--all");
	table_add(&t, "also what has ended, of every kind");
	table_add(&t, "-x");
	table_add(&t, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaa");
	fit(&t, 30,
	    "--all  also what has ended, of\n       every kind\n"
	    "-x     aaaaaaaaaaaaaaaaaaaaaaa\n       aaaaaa\n");
	fit(&t, 20,
	    "--all  also what has ended, of every kind\n-x     aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n");
	table_done(&t);
}

UNIT_MAIN({ "aligns", aligns }, { "colors", colors }, { "fits", fits }, { "wraps", wraps })
