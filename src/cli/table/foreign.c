/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/table/foreign.h"

#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/* Their operands and options mean the same here. */
static const char *const foreign_synonyms[][2] = {
	{ "pull", "image pull" }, { "push", "image push" }, { "images", "image ls" },
	{ "rmi", "image rm" },    { "tag", "image tag" },   { "history", "image history" },
};

static const struct {
	const char *word;
	const char *advice;
} foreign_commands[] = {
	{ "save", "use `nacre image export`" },
	{ "load", "use `nacre image import`" },
	{ "import", "use `nacre image import`" },
	{ "ls", "use `nacre ps`" },
	{ "list", "use `nacre ps`" },
	{ "get", "use `nacre ps`" },
	{ "describe", "use `nacre inspect`" },
	{ "delete", "use `nacre rm`" },
	{ "apply", "use `nacre pod`" },
	{ "container", "its commands stand alone here: `nacre ps`, `nacre rm`" },
	{ "build", "build with another tool, then use `nacre image import`" },
	{ "commit", "build with another tool, then use `nacre image import`" },
	{ "compose", "there is none here; `nacre pod` starts several containers together" },
};

static const struct {
	const char *name;
	const char *ours;
	bool is_same; /* their value means the same here */
} foreign_options[] = {
	{ "workdir", "cwd", true },
	{ "net", "network", true },
	{ "cpu-shares", "cpu-weight", false },
};

const char *foreign_synonym(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign_synonyms); i++) {
		if (str_eq(foreign_synonyms[i][0], word))
			return foreign_synonyms[i][1];
	}
	return NULL;
}

const char *foreign_command(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign_commands); i++) {
		if (str_eq(foreign_commands[i].word, word))
			return foreign_commands[i].advice;
	}
	return NULL;
}

const char *foreign_word(size_t i)
{
	return i < ARRAY_SIZE(foreign_commands) ? foreign_commands[i].word : NULL;
}

const char *foreign_option(const char *name, bool *ret_is_same)
{
	for (size_t i = 0; i < ARRAY_SIZE(foreign_options); i++) {
		const char *theirs = foreign_options[i].name;

		if (strcspn(name, "=") == strlen(theirs) && str_has_prefix(name, theirs)) {
			*ret_is_same = foreign_options[i].is_same;
			return foreign_options[i].ours;
		}
	}
	return NULL;
}
