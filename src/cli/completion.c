/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/completion.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "base/str.h"
#include "cli/command.h"

/* Whether a command before this one has the same first word ("image"). */
static bool completion_is_repeat(size_t i)
{
	size_t len = strcspn(commands[i].name, " ");

	for (size_t k = 0; k < i; k++) {
		if (strcspn(commands[k].name, " ") == len &&
		    memcmp(commands[k].name, commands[i].name, len) == 0)
			return true;
	}
	return false;
}

static void completion_first_words(FILE *to)
{
	for (size_t i = 0; i < n_commands; i++) {
		if (!completion_is_repeat(i))
			(void)fprintf(to, "%s%.*s", i ? " " : "",
				      (int)strcspn(commands[i].name, " "), commands[i].name);
	}
}

static void completion_second_words(const char *first, size_t len, FILE *to)
{
	for (size_t i = 0; i < n_commands; i++) {
		const char *name = commands[i].name;

		if (strncmp(name, first, len) == 0 && name[len] == ' ')
			(void)fprintf(to, "%s ", name + len + 1);
	}
}

static void completion_option_words(const struct arg_option *options, FILE *to)
{
	for (const struct arg_option *o = options; o && o->name; o++)
		(void)fprintf(to, "--%s ", o->name);
}

/* What `nacre completion --names` is asked for where an operand of the command is completed; NULL:
 * nothing. The usage says it. */
static const char *completion_names(const struct command *c)
{
	static const struct {
		const char *operand, *names;
	} kinds[] = {
		{ "TARGET", "workloads" },
		{ "FROM", "places" },
		{ "IMAGE", "images" },
		{ "COMMAND]", "commands" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(kinds); i++) {
		const char *at = strstr(c->operands, kinds[i].operand);

		if (at && at <= c->operands + 1)
			return kinds[i].names;
	}
	return NULL;
}

/* The options that take the next word, between blanks. */
static void completion_valued(const struct arg_option *options, FILE *to)
{
	for (const struct arg_option *o = options; o && o->name; o++) {
		if (o->value)
			(void)fprintf(to, "--%s ", o->name);
		if (o->value && o->letter)
			(void)fprintf(to, "-%c ", o->letter);
	}
}

static void completion_case(const struct command *c, FILE *to)
{
	const char *names = completion_names(c);

	(void)fprintf(to, "\t'%s') words='", c->name);
	completion_option_words(c->options, to);
	completion_option_words(c->run ? command_options : NULL, to);
	(void)fputs("' valued=' ", to);
	completion_valued(c->options, to);
	completion_valued(c->run ? command_options : NULL, to);
	(void)fputc('\'', to);
	if (names)
		(void)fprintf(to, " names=%s", names);
	/* Behind so many operands the words are somebody else's. */
	if (c->n_verbatim)
		(void)fputs(" most=1", to);
	else if (c->n_max != CLI_OPERANDS_ANY)
		(void)fprintf(to, " most=%zu", c->n_max);
	(void)fputs(" ;;\n", to);
}

/* The branches of a shell's `case $cmd`: which words may follow. */
static void completion_cases(FILE *to)
{
	(void)fputs("\t'') words='", to);
	completion_first_words(to);
	(void)fputs("' ;;\n", to);
	for (size_t i = 0; i < n_commands; i++) {
		size_t len = strcspn(commands[i].name, " ");

		if (!commands[i].name[len] || completion_is_repeat(i))
			continue;
		(void)fprintf(to, "\t'%.*s') words='", (int)len, commands[i].name);
		completion_second_words(commands[i].name, len, to);
		(void)fputs("' ;;\n", to);
	}
	for (size_t i = 0; i < n_commands; i++)
		completion_case(&commands[i], to);
}

/* The second half of a name counts only behind a first half. */
static void completion_halves(FILE *to)
{
	const char *bar = "";

	for (size_t i = 0; i < n_commands; i++) {
		size_t len = strcspn(commands[i].name, " ");

		if (!commands[i].name[len] || completion_is_repeat(i))
			continue;
		(void)fprintf(to, "%s%.*s", bar, (int)len, commands[i].name);
		bar = "|";
	}
}

/*
 * What bash and zsh have in common. `all` is the array of words, `at` the index of the word that is
 * completed: first the command is found, and what may follow; then its operands are counted.
 */
static void completion_analysis(unsigned first, FILE *to)
{
	(void)fprintf(to,
		      "\tlocal cmd= words= valued=' ' names= most=1000 n=0 i sock=\n"
		      "\tfor ((i = %u; i < at; i++)); do\n"
		      "\t\tcase ${all[i]} in\n"
		      "\t\t--socket) ((i++)); sock=${all[i]} ;;\n"
		      "\t\t--output|-o) ((i++)) ;;\n"
		      "\t\t-*) ;;\n"
		      "\t\t*) cmd+=${cmd:+ }${all[i]}\n"
		      "\t\t   case $cmd in ",
		      first);
	completion_halves(to);
	(void)fputs(") ;; *) break ;; esac ;;\n"
		    "\t\tesac\n"
		    "\tdone\n"
		    "\tcase $cmd in\n",
		    to);
	completion_cases(to);
	(void)fputs("\tesac\n"
		    "\tfor ((i++; i < at; i++)); do\n"
		    "\t\tcase ${all[i]} in\n"
		    "\t\t-*) case $valued in *\" ${all[i]} \"*) ((i++)) ;; esac ;;\n"
		    "\t\t*) ((n++)) ;;\n"
		    "\t\tesac\n"
		    "\tdone\n"
		    "\t((n < most)) || { words= names=; }\n",
		    to);
}

static void bash(FILE *to)
{
	(void)fputs("# nacre completion bash\n"
		    "_nacre()\n{\n"
		    "\tlocal -a all=(\"${COMP_WORDS[@]}\")\n"
		    "\tlocal at=$COMP_CWORD cur=${COMP_WORDS[COMP_CWORD]}\n",
		    to);
	completion_analysis(1, to);
	(void)fputs("\tif [[ $names && $cur != -* ]]; then\n"
		    "\t\twords=$(nacre ${sock:+--socket \"$sock\"} completion --names $names "
		    "2>/dev/null)\n"
		    "\telif [[ $cur != -* && $cmd && $words == *--* ]]; then\n"
		    "\t\twords=\n"
		    "\tfi\n"
		    "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		    "\t[[ $names != places ]] || compopt -o nospace\n"
		    "}\n"
		    "complete -o default -F _nacre nacre\n",
		    to);
}

static void zsh(FILE *to)
{
	(void)fputs("#compdef nacre\n"
		    "_nacre()\n{\n"
		    "\tlocal -a all=(\"${words[@]}\")\n"
		    "\tlocal at=$CURRENT cur=${words[CURRENT]}\n"
		    "\t() {\n",
		    to);
	completion_analysis(2, to);
	(void)fputs("\tif [[ -n $names && $cur != -* ]]; then\n"
		    "\t\twords=$(nacre ${sock:+--socket} ${sock:+$sock} completion --names $names "
		    "2>/dev/null)\n"
		    "\telif [[ $cur != -* && -n $cmd && $words == *--* ]]; then\n"
		    "\t\twords=\n"
		    "\tfi\n"
		    "\tif [[ $names == places ]]; then compadd -S '' -- ${=words}\n"
		    "\telse compadd -- ${=words}; fi\n"
		    "\t[[ $cmd == '' || ( -n $names && $names != places ) ]] || _files\n"
		    "\t}\n"
		    "}\n"
		    /* As a file of fpath it is run by its first completion, else by hand. */
		    "if [[ $funcstack[1] == _nacre ]]; then _nacre \"$@\"; else compdef _nacre "
		    "nacre; fi\n",
		    to);
}

/* As fish quotes: within '…', backslash and quote are escaped. */
static void completion_fish_text(const char *s, FILE *to)
{
	(void)fputc('\'', to);
	for (; *s; s++) {
		if (*s == '\'' || *s == '\\')
			(void)fputc('\\', to);
		(void)fputc(*s, to);
	}
	(void)fputc('\'', to);
}

static void completion_fish_option(const struct command *c, const struct arg_option *o, FILE *to)
{
	if (c)
		(void)fprintf(to, "complete -c nacre -n '__nacre_in %s'", c->name);
	else
		(void)fputs("complete -c nacre", to);
	(void)fprintf(to, " -l %s", o->name);
	if (o->letter)
		(void)fprintf(to, " -s %c", o->letter);
	(void)fprintf(to, "%s -d ", o->value ? " -r" : "");
	completion_fish_text(o->help, to);
	(void)fputc('\n', to);
}

static void fish(FILE *to)
{
	(void)fputs("# nacre completion fish\n"
		    "function __nacre_in\n"
		    "\tset -l words (string match -v -- '-*' (commandline -opc)[2..])\n"
		    "\tset -l n (count $argv)\n"
		    "\ttest $n -eq 0; and test (count $words) -eq 0; and return 0\n"
		    "\ttest $n -gt 0; and test (count $words) -ge $n; and "
		    "test \"$words[1..$n]\" = \"$argv\"\n"
		    "end\n",
		    to);
	for (size_t i = 0; i < n_commands; i++) {
		const struct command *c = &commands[i];
		const char *blank = strchr(c->name, ' ');

		(void)fprintf(to, "complete -c nacre -f -n '__nacre_in%s%.*s' -a %s -d ",
			      blank ? " " : "", blank ? (int)(blank - c->name) : 0, c->name,
			      blank ? blank + 1 : c->name);
		completion_fish_text(c->summary, to);
		(void)fputc('\n', to);
		if (blank && !completion_is_repeat(i))
			(void)fprintf(to, "complete -c nacre -f -n '__nacre_in' -a %.*s\n",
				      (int)(blank - c->name), c->name);
		if (completion_names(c))
			(void)fprintf(
				to,
				"complete -c nacre -f -n '__nacre_in %s' -a '(nacre completion "
				"--names %s 2>/dev/null)'\n",
				c->name, completion_names(c));
		for (const struct arg_option *o = c->options; o && o->name; o++)
			completion_fish_option(c, o, to);
	}
	for (const struct arg_option *o = command_options; o->name; o++)
		completion_fish_option(NULL, o, to);
}

static const struct {
	const char *shell;
	void (*write)(FILE *to);
} shells[] = {
	{ "bash", bash },
	{ "zsh", zsh },
	{ "fish", fish },
};

int completion_write(const char *shell, FILE *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (str_eq(shells[i].shell, shell)) {
			shells[i].write(to);
			return 0;
		}
	}
	return -EINVAL;
}
