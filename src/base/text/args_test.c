/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/args.h"

#include "unit.h"

#include "base/macros.h"
#include "base/text/str.h"

static const struct arg_option own[] = {
	{ "name", 'n', "NAME", "" }, { "rm", 0, NULL, "" },     { "detach", 'd', NULL, "" },
	{ "all", 'a', NULL, "" },    { "env", 'e', "K=V", "" }, { NULL, 0, NULL, NULL },
};
static const struct arg_option common[] = {
	{ "output", 'o', "FORM", "" },
	{ NULL, 0, NULL, NULL },
};

/* Words parted by blanks; what came of them as "name=value flag [operand] …", or the error. */
struct args_case {
	const char *words;
	size_t n_verbatim;
	const char *result;
};

static const struct args_case cases[] = {
	{ "", 0, "" },
	{ "x y", 0, "[x] [y]" },
	{ "--name v x", 0, "name=v [x]" },
	{ "--name=v x", 0, "name=v [x]" },
	{ "--name= x", 0, "name= [x]" },
	{ "--name=a=b", 0, "name=a=b" },
	{ "-n v", 0, "name=v" },
	{ "-nv", 0, "name=v" },
	{ "-n -v", 0, "name=-v" },
	{ "-da x", 0, "detach all [x]" },
	{ "-dnv", 0, "detach name=v" },
	{ "-dn v", 0, "detach name=v" },
	{ "x --rm y", 0, "rm [x] [y]" },
	{ "x -o json", 0, "output=json [x]" },
	{ "-- --rm", 0, "[--rm]" },
	{ "x -- -d -- y", 0, "[x] [-d] [--] [y]" },
	{ "- x", 0, "[-] [x]" },
	{ "--rm x --rm -d", 1, "rm [x] [--rm] [-d]" },
	{ "x --name n y --rm", 2, "name=n [x] [y] [--rm]" },
	{ "x -- y --rm", 2, "[x] [y] [--rm]" },
	{ "x -- y", 1, "[x] [--] [y]" },
	{ "-e A=1 --env B=2", 0, "env=A=1 env=B=2" },
	{ "--nme v", 0, "unknown option --nme (did you mean --name?)" },
	{ "--nme=v", 0, "unknown option --nme (did you mean --name?)" },
	{ "--outputs", 0, "unknown option --outputs (did you mean --output?)" },
	{ "--nothing", 0, "unknown option --nothing" },
	{ "-x", 0, "unknown option -x" },
	{ "-dx", 0, "unknown option -x" },
	{ "--name", 0, "option --name needs a value (NAME)" },
	{ "-n", 0, "option -n needs a value (NAME)" },
	{ "--rm=yes", 0, "option --rm takes no value" },
};

static char *args_show(const struct args *a)
{
	char *text = strdup("");

	for (size_t i = 0; text && i < a->n_given + a->n_operands; i++) {
		const struct arg_given *g = &a->given[i];
		const char *blank = *text ? " " : "";
		char *longer;

		if (i >= a->n_given)
			longer = str_format("%s%s[%s]", text, blank, a->operands[i - a->n_given]);
		else
			longer = str_format("%s%s%s%s%s", text, blank, g->option->name,
					    g->value ? "=" : "", g->value ? g->value : "");
		free(text);
		text = longer;
	}
	return text;
}

static void takes_words_apart(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(cases); i++) {
		size_t n_verbatim = cases[i].n_verbatim ? cases[i].n_verbatim : ARGS_VERBATIM_NEVER;
		_cleanup_str_ char *words = strdup(cases[i].words);
		_cleanup_str_ char *shown = NULL;
		struct error err = ERROR_INIT;
		struct args a = ARGS_INIT;
		char *argv[16], *rest = words;
		int argc = 0, r;

		for (;;) {
			char *word = strsep(&rest, " ");

			if (!word)
				break;
			if (*word)
				argv[argc++] = word;
		}
		r = args_parse(&a, own, common, n_verbatim, argc, argv, &err);
		shown = r < 0 ? strdup(error_text(&err)) : args_show(&a);
		CHECK_STR(shown, cases[i].result);
		CHECK(r == 0 || err.kind == ERROR_INVALID);
		args_done(&a);
	}
}

static void answers_by_name(void)
{
	char w1[] = "--name=a", w2[] = "--name=b", w3[] = "-eX=1", w4[] = "-eY=2", w5[] = "-d";
	char *argv[] = { w1, w2, w3, w4, w5 };
	struct error err = ERROR_INIT;
	struct args a = ARGS_INIT;
	size_t pos = 0;

	CHECK_INT(args_parse(&a, own, common, ARGS_VERBATIM_NEVER, 5, argv, &err), 0);
	CHECK_STR(args_value(&a, "name"), "b");
	CHECK(!args_value(&a, "output"));
	CHECK(args_flag(&a, "detach"));
	CHECK(!args_flag(&a, "rm"));
	CHECK_STR(args_next(&a, "env", &pos), "X=1");
	CHECK_STR(args_next(&a, "env", &pos), "Y=2");
	CHECK(!args_next(&a, "env", &pos));
	CHECK(!a.operands[0]);
	args_done(&a);
}

static void measures_words(void)
{
	static const struct {
		const char *a, *b;
		size_t distance;
	} pairs[] = {
		{ "", "", 0 },     { "a", "", 1 },       { "", "ab", 2 },
		{ "ps", "ps", 0 }, { "nme", "name", 1 }, { "kitten", "sitting", 3 },
	};

	for (size_t i = 0; i < ARRAY_SIZE(pairs); i++) {
		CHECK_INT(text_distance(pairs[i].a, pairs[i].b), pairs[i].distance);
		CHECK_INT(text_distance(pairs[i].b, pairs[i].a), pairs[i].distance);
	}
	CHECK(text_distance("name", "a-word-that-is-much-longer-than-any-option") > 3);
}

UNIT_MAIN({ "takes_words_apart", takes_words_apart }, { "answers_by_name", answers_by_name },
	  { "measures_words", measures_words })
