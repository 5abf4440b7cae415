/* SPDX-License-Identifier: Apache-2.0 */

/* The command line: words, one a line, up to where a command would run. */

#include "base/text/args.h"
#include "cli/options/spec.h"
#include "cli/table/command.h"
#include "cli/table/command_groups.h"
#include "fuzz.h"

#define WORDS_MAX 64

static void parse_command(const struct command *c, int argc, char **argv)
{
	struct args a = ARGS_INIT;
	struct error err = ERROR_INIT;
	struct spec_container container;
	size_t pos = 0;

	if (args_parse(&a, c->options, command_options, c->n_verbatim, argc, argv, &err) == 0) {
		fuzz_need(a.n_operands <= (size_t)argc);
		for (const struct arg_option *o = c->options; o && o->name; o++) {
			if (o->value)
				(void)args_value(&a, o->name);
			else
				(void)args_flag(&a, o->name);
			for (pos = 0; args_next(&a, o->name, &pos);)
				continue;
		}
		if (strcmp(c->name, "run") == 0 && a.n_operands > 0) {
			(void)spec_container_init(&container, &a, &err);
			spec_container_done(&container);
		}
	} else {
		fuzz_need(err.code != 0 && err.text[0] != '\0');
	}
	args_done(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	struct error err = ERROR_INIT;
	const struct command *c;
	char *words[WORDS_MAX + 1] = { NULL };
	size_t n = 0, n_name;

	while (in.len > 0 && n < WORDS_MAX)
		words[n++] = fuzz_str(fuzz_until(&in, '\n'));
	c = n > 0 ? command_find(&command_table, words, n, &n_name) : NULL;
	if (c) {
		fuzz_need(n_name <= n);
		parse_command(c, (int)(n - n_name), words + n_name);
	} else if (n > 0) {
		fuzz_need(command_unknown(&command_table, words, n, &err) < 0);
	}
	for (size_t i = 0; i < n; i++)
		free(words[i]);
	return 0;
}
