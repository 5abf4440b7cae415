/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/system.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/memory/arena.h"
#include "daemon/config.h"
#include "init/system_main.h"

#define SYSTEM_WORDS_MAX 32

static int system_load(void *userdata, struct system_config *ret, struct error *err)
{
	const struct daemon_options *o = userdata;
	struct config *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return error_set(err, -ENOMEM, "read the configuration");
	config_init(c);
	*ret = c->sys;
	r = config_load(c, o->config, !o->config_given, err);
	if (r == 0) {
		*ret = c->sys;
		ret->log_level = c->log_level;
		ret->log_form = c->log_form;
	}
	free(c);
	return r;
}

bool system_is_asked(void)
{
	return getpid() == 1;
}

/* The memory of the arguments becomes the title of the process. */
static char *system_keep(struct arena *a, const char *word)
{
	char *kept = arena_strdup(a, word);

	return kept ?: (char *)(uintptr_t) "";
}

int system_run(const struct daemon_options *options, int argc, char **argv)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct daemon_options kept = *options;
	const char *words[SYSTEM_WORDS_MAX] = { "nacre", "daemon" };
	struct system_start start = { .argv = words, .load = system_load, .userdata = &kept };

	for (start.argc = 2; start.argc - 1 < (size_t)argc && start.argc < SYSTEM_WORDS_MAX - 1;
	     start.argc++)
		words[start.argc] = system_keep(&a, argv[start.argc - 1]);
	kept.config = system_keep(&a, options->config);
	kept.root = system_keep(&a, options->root);
	start.root = kept.root;
	return system_main(&start);
}
