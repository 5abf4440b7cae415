/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/completion.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cli/table/command.h"

/* More operands than anybody writes. */
#define COMPLETION_ANY 1000

/* Whether a command before this one has the same first word ("image"). */
static bool completion_is_repeat(const struct command_table *all, size_t i)
{
	size_t len = strcspn(command_at(all, i)->name, " ");

	for (size_t k = 0; k < i; k++) {
		if (strcspn(command_at(all, k)->name, " ") == len &&
		    memcmp(command_at(all, k)->name, command_at(all, i)->name, len) == 0)
			return true;
	}
	return false;
}

static void completion_first_words(const struct command_table *all, FILE *to)
{
	for (size_t i = 0; command_at(all, i); i++) {
		if (!completion_is_repeat(all, i))
			(void)fprintf(to, "%s%.*s", i ? " " : "",
				      (int)strcspn(command_at(all, i)->name, " "),
				      command_at(all, i)->name);
	}
}

static void completion_second_words(const struct command_table *all, const char *first, size_t len,
				    FILE *to)
{
	for (size_t i = 0; command_at(all, i); i++) {
		const char *name = command_at(all, i)->name;

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
		{ "TARGET", "workloads" },  { "FROM", "places" },  { "IMAGE", "images" },
		{ "COMMAND]", "commands" }, { "bash|", "shells" },
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
	if (c->n_verbatim)
		(void)fputs(" most=1 ours=1", to);
	else if (c->n_max != CLI_OPERANDS_ANY)
		(void)fprintf(to, " most=%zu", c->n_max);
	(void)fputs(" ;;\n", to);
}

/* The branches of a shell's `case $cmd`: which words may follow. */
static void completion_cases(const struct command_table *all, FILE *to)
{
	(void)fputs("\t'') words='", to);
	completion_first_words(all, to);
	(void)fputs("'\n\t\t[[ $cur != -* ]] || words='", to);
	completion_option_words(command_options, to);
	(void)fputs("' ;;\n", to);
	for (size_t i = 0; command_at(all, i); i++) {
		size_t len = strcspn(command_at(all, i)->name, " ");

		if (!command_at(all, i)->name[len] || completion_is_repeat(all, i))
			continue;
		(void)fprintf(to, "\t'%.*s') words='", (int)len, command_at(all, i)->name);
		completion_second_words(all, command_at(all, i)->name, len, to);
		(void)fputs("' ;;\n", to);
	}
	for (size_t i = 0; command_at(all, i); i++)
		completion_case(command_at(all, i), to);
}

/* The second half of a name counts only behind a first half. */
static void completion_halves(const struct command_table *all, FILE *to)
{
	const char *bar = "";

	for (size_t i = 0; command_at(all, i); i++) {
		size_t len = strcspn(command_at(all, i)->name, " ");

		if (!command_at(all, i)->name[len] || completion_is_repeat(all, i))
			continue;
		(void)fprintf(to, "%s%.*s", bar, (int)len, command_at(all, i)->name);
		bar = "|";
	}
}

/*
 * What bash and zsh have in common. `all` is the array of words, `at` the index of the word that is
 * completed: first the command is found, and what may follow; then its operands are counted. `most`
 * operands have names to choose from, and behind `ours` of them the words are somebody else's.
 */
static void completion_analysis(const struct command_table *all, unsigned first, FILE *to)
{
	(void)fprintf(to,
		      "\tlocal cmd= words= valued=' ' names= most=1000 ours=1000 n=0 i sock=\n"
		      "\tfor ((i = %u; i < at; i++)); do\n"
		      "\t\tcase ${all[i]} in\n"
		      "\t\t--socket) ((i++)); sock=${all[i]} ;;\n"
		      "\t\t--output|-o) ((i++)) ;;\n"
		      "\t\t-*) ;;\n"
		      "\t\t*) cmd+=${cmd:+ }${all[i]}\n"
		      "\t\t   case $cmd in ",
		      first);
	completion_halves(all, to);
	(void)fputs(") ;; *) break ;; esac ;;\n"
		    "\t\tesac\n"
		    "\tdone\n"
		    "\tcase $cmd in\n",
		    to);
	completion_cases(all, to);
	(void)fputs("\tesac\n"
		    "\tfor ((i++; i < at; i++)); do\n"
		    "\t\tcase ${all[i]} in\n"
		    "\t\t-*) case $valued in *\" ${all[i]} \"*) ((i++)) ;; esac ;;\n"
		    "\t\t*) ((n++)) ;;\n"
		    "\t\tesac\n"
		    "\tdone\n"
		    "\t((n < most)) || names=\n"
		    "\t((n < ours)) || words=\n",
		    to);
}

/* Bash parts words at colons, which images and places have: what stands before the last one is not
 * replaced. */
static void bash(const struct command_table *all, FILE *to)
{
	(void)fputs("# nacre completion bash\n"
		    "_nacre()\n{\n"
		    "\tlocal line=${COMP_LINE:0:COMP_POINT}\n"
		    "\tlocal -a all\n"
		    "\tread -ra all <<<\"$line\"\n"
		    "\t[[ $line != *[[:blank:]] ]] || all+=('')\n"
		    "\tlocal at=$((${#all[@]} - 1))\n"
		    "\tlocal cur=${all[at]}\n",
		    to);
	completion_analysis(all, 1, to);
	(void)fputs("\tif [[ $names && $cur != -* ]]; then\n"
		    "\t\twords=$(nacre ${sock:+--socket \"$sock\"} completion --names $names "
		    "2>/dev/null)\n"
		    "\telif [[ $cur != -* && $cmd && $words == *--* ]]; then\n"
		    "\t\twords=\n"
		    "\tfi\n"
		    "\tCOMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n"
		    "\tif [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
		    "\t\tlocal head=${cur%\"${cur##*:}\"}\n"
		    "\t\tCOMPREPLY=(\"${COMPREPLY[@]#\"$head\"}\")\n"
		    "\tfi\n"
		    "\t[[ $names != places ]] || compopt -o nospace\n"
		    "}\n"
		    "complete -o default -F _nacre nacre\n",
		    to);
}

static void zsh(const struct command_table *all, FILE *to)
{
	(void)fputs("#compdef nacre\n"
		    "_nacre()\n{\n"
		    "\tlocal -a all=(\"${words[@]}\")\n"
		    "\tlocal at=$CURRENT cur=${words[CURRENT]}\n"
		    "\t() {\n",
		    to);
	completion_analysis(all, 2, to);
	(void)fputs("\tif [[ -n $names && $cur != -* ]]; then\n"
		    "\t\twords=$(nacre ${sock:+--socket} ${sock:+$sock} completion --names $names "
		    "2>/dev/null)\n"
		    "\telif [[ $cur != -* && -n $cmd && $words == *--* ]]; then\n"
		    "\t\twords=\n"
		    "\tfi\n"
		    "\tif [[ $names == places ]]; then compadd -S '' -- ${=words}\n"
		    "\telse compadd -- ${=words}; fi\n"
		    "\tcase $cmd in ''|",
		    to);
	completion_halves(all, to);
	(void)fputs(") ;; *) [[ -n $names && $names != places ]] || _files ;; esac\n"
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

/* After which words the options of a command are still its own. */
static void completion_fish_at(const struct command *c, FILE *to)
{
	(void)fprintf(to, "complete -c nacre -n '__nacre_at \"%s\" %d'", c->name,
		      c->n_verbatim ? 1 : COMPLETION_ANY);
}

static void completion_fish_option(const struct command *c, const struct arg_option *o, FILE *to)
{
	if (c)
		completion_fish_at(c, to);
	else
		(void)fputs("complete -c nacre -n __nacre_ours", to);
	(void)fprintf(to, " -l %s", o->name);
	if (o->letter)
		(void)fprintf(to, " -s %c", o->letter);
	(void)fprintf(to, "%s -d ", o->value ? " -r" : "");
	completion_fish_text(o->help, to);
	(void)fputc('\n', to);
}

/* What an operand may be. Where nothing is known of it, it is a file. */
static void completion_fish_operand(const struct command *c, FILE *to)
{
	const char *names = completion_names(c);
	bool files = !names || str_eq(names, "places");
	size_t most = c->n_verbatim ? 1 : MIN(c->n_max, (size_t)COMPLETION_ANY);

	if (names)
		(void)fprintf(to,
			      "complete -c nacre%s -n '__nacre_at \"%s\" %zu' -a "
			      "'(__nacre_names %s)'\n",
			      files ? "" : " -f", c->name, most, names);
	if (c->n_max == 0)
		(void)fprintf(to, "complete -c nacre -f -n '__nacre_at \"%s\" %d'\n", c->name,
			      COMPLETION_ANY);
}

/* The first word of a command, or its second one behind the first. */
static void completion_fish_word(const struct command_table *all, size_t at, FILE *to)
{
	const struct command *c = command_at(all, at);
	size_t len = strcspn(c->name, " ");
	const char *second = c->name[len] ? c->name + len + 1 : "";

	(void)fprintf(to, "complete -c nacre -f -n '__nacre_at \"%.*s\" 1' -a %s -d ",
		      *second ? (int)len : 0, c->name, *second ? second : c->name);
	completion_fish_text(c->summary, to);
	(void)fputc('\n', to);
	if (*second && !completion_is_repeat(all, at))
		(void)fprintf(to, "complete -c nacre -f -n '__nacre_at \"\" 1' -a %.*s\n", (int)len,
			      c->name);
}

/*
 * __nacre_state tells, a line each: the command, how many operands there are, the socket, and
 * whether the words are nacre's still. `complete` asks __nacre_at, with a command and so many
 * operands as are too many.
 */
static void completion_fish_functions(const struct command_table *all, FILE *to)
{
	(void)fputs(
		"# nacre completion fish\n"
		"function __nacre_state\n"
		"\tset -l cmd ''\n"
		"\tset -l n 0\n"
		"\tset -l sock ''\n"
		"\tset -l skip ''\n"
		"\tset -l most 1000\n"
		"\tset -l valued ''\n"
		"\tfor word in (commandline -opc)[2..]\n"
		"\t\tif test -n \"$skip\"\n"
		"\t\t\ttest \"$skip\" = --socket; and set sock $word\n"
		"\t\t\tset skip ''\n"
		"\t\t\tcontinue\n"
		"\t\tend\n"
		"\t\tif string match -q -- '-*' $word; and test $n -lt $most\n"
		"\t\t\tcontains -- $word --socket --output -o $valued; and set skip $word\n"
		"\t\t\tstring match -q -- '--socket=*' $word; and set sock (string sub -s 10 -- "
		"$word)\n"
		"\t\t\tcontinue\n"
		"\t\tend\n"
		"\t\tswitch $cmd\n"
		"\t\t\tcase '' ",
		to);
	for (size_t i = 0; command_at(all, i); i++)
		if (strchr(command_at(all, i)->name, ' ') && !completion_is_repeat(all, i))
			(void)fprintf(to, "'%.*s' ", (int)strcspn(command_at(all, i)->name, " "),
				      command_at(all, i)->name);
	(void)fputs("\n\t\t\t\tset cmd (string trim -- \"$cmd $word\")\n"
		    "\t\t\t\tset valued\n"
		    "\t\t\t\tswitch $cmd\n",
		    to);
	for (size_t i = 0; command_at(all, i); i++) {
		(void)fprintf(to, "\t\t\t\t\tcase '%s'\n\t\t\t\t\t\tset valued ",
			      command_at(all, i)->name);
		completion_valued(command_at(all, i)->options, to);
		(void)fprintf(to, "\n\t\t\t\t\t\tset most %d\n",
			      command_at(all, i)->n_verbatim ? 1 : COMPLETION_ANY);
	}
	(void)fputs("\t\t\t\tend\n"
		    "\t\t\tcase '*'\n"
		    "\t\t\t\tset n (math $n + 1)\n"
		    "\t\tend\n"
		    "\tend\n"
		    "\techo $cmd\n"
		    "\techo $n\n"
		    "\techo $sock\n"
		    "\ttest $n -lt $most; and echo ours\n"
		    "end\n"
		    "function __nacre_at\n"
		    "\tset -l at (__nacre_state)\n"
		    "\ttest \"$at[1]\" = \"$argv[1]\"; and test $at[2] -lt $argv[2]\n"
		    "end\n"
		    "function __nacre_ours\n"
		    "\tset -l at (__nacre_state)\n"
		    "\ttest (count $at) -eq 4\n"
		    "end\n"
		    "function __nacre_names\n"
		    "\tset -l at (__nacre_state)\n"
		    "\tset -l sock\n"
		    "\ttest -n \"$at[3]\"; and set sock --socket $at[3]\n"
		    "\tnacre $sock completion --names $argv[1] 2>/dev/null\n"
		    "end\n",
		    to);
}

static void fish(const struct command_table *all, FILE *to)
{
	completion_fish_functions(all, to);
	for (size_t i = 0; command_at(all, i); i++) {
		completion_fish_word(all, i, to);
		completion_fish_operand(command_at(all, i), to);
		for (const struct arg_option *o = command_at(all, i)->options; o && o->name; o++)
			completion_fish_option(command_at(all, i), o, to);
	}
	for (const struct arg_option *o = command_options; o->name; o++)
		completion_fish_option(NULL, o, to);
}

static const struct {
	const char *shell;
	void (*write)(const struct command_table *all, FILE *to);
} shells[] = {
	{ "bash", bash },
	{ "zsh", zsh },
	{ "fish", fish },
};

int completion_write(const struct command_table *all, const char *shell, FILE *to)
{
	for (size_t i = 0; i < ARRAY_SIZE(shells); i++) {
		if (str_eq(shells[i].shell, shell)) {
			shells[i].write(all, to);
			return 0;
		}
	}
	return -EINVAL;
}

const char *completion_shell(size_t i)
{
	return i < ARRAY_SIZE(shells) ? shells[i].shell : NULL;
}
