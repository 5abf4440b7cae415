/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cli/cmd/handlers.h"
#include "cli/output/alloc.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "cli/table/completion.h"

/* A shell that waits for names does not wait longer, over all pages, and nobody chooses from more.
 */
#define NAMES_TIMEOUT (2 * NSEC_PER_SEC)
#define NAMES_MAX 20000

/* One list of names, page after page. */
struct names {
	const struct client_target *daemon;
	const struct command_table *commands;
	const char *suffix;
	nsec_t deadline;
	size_t n;
	char *token; /* of the next page; NULL: the first */
};

static void names_put(struct names *to, const char *name)
{
	_cleanup_str_ char *line = xformat("%s%s", name, to->suffix);

	str_clean(line);
	if (to->n++ < NAMES_MAX)
		(void)puts(line);
}

/* The response, or NULL with err. */
static void *names_ask(struct names *to, const char *method, const ProtobufCMessage *request,
		       const ProtobufCMessageDescriptor *type, struct error *err)
{
	nsec_t now = clock_mono();

	return client_ask_once(to->daemon, method, request, type,
			       to->deadline > now ? to->deadline - now : 1, err);
}

/* Whether there is a next page, and it is to be asked for. */
static bool names_go_on(struct names *to, const char *token)
{
	free(to->token);
	to->token = str_empty(token) ? NULL : xstrdup(token);
	return to->token && to->n < NAMES_MAX;
}

static int names_of_workloads(struct names *to, struct error *err)
{
	static char field[] = "name";
	char *fields[] = { field };
	Nacre__V1__ListRequest request = NACRE__V1__LIST_REQUEST__INIT;
	bool more = true;

	request.all = true;
	request.fields = fields;
	request.n_fields = ARRAY_SIZE(fields);
	while (more) {
		_cleanup_message_ Nacre__V1__ListResponse *list = NULL;

		request.page_token = to->token ?: request.page_token;
		list = names_ask(to, "/nacre.v1.WorkloadService/List", &request.base,
				 &nacre__v1__list_response__descriptor, err);
		if (!list)
			return err->code;
		for (size_t i = 0; i < list->n_workloads; i++)
			names_put(to, list->workloads[i]->name);
		more = names_go_on(to, list->next_page_token);
	}
	return 0;
}

static int names_of_images(struct names *to, struct error *err)
{
	Nacre__V1__ListImagesRequest request = NACRE__V1__LIST_IMAGES_REQUEST__INIT;
	bool more = true;

	while (more) {
		_cleanup_message_ Nacre__V1__ListImagesResponse *list = NULL;

		request.page_token = to->token ?: request.page_token;
		list = names_ask(to, "/nacre.v1.ImageService/List", &request.base,
				 &nacre__v1__list_images_response__descriptor, err);
		if (!list)
			return err->code;
		for (size_t i = 0; i < list->n_images; i++) {
			for (size_t k = 0; k < list->images[i]->n_names; k++)
				names_put(to, list->images[i]->names[k]);
		}
		more = names_go_on(to, list->next_page_token);
	}
	return 0;
}

static int names_of_commands(struct names *to, struct error *err)
{
	(void)err;
	for (size_t i = 0; command_at(to->commands, i); i++)
		names_put(to, command_at(to->commands, i)->name);
	return 0;
}

static int names_of_shells(struct names *to, struct error *err)
{
	(void)err;
	for (size_t i = 0; completion_shell(i); i++)
		names_put(to, completion_shell(i));
	return 0;
}

static const struct {
	const char *what, *suffix;
	int (*put)(struct names *to, struct error *err);
} names[] = {
	{ "workloads", "", names_of_workloads }, { "places", ":/", names_of_workloads },
	{ "images", "", names_of_images },       { "commands", "", names_of_commands },
	{ "shells", "", names_of_shells },
};

static int completion_names_put(const struct cli *cli, const char *what)
{
	struct names to = { .daemon = &cli->daemon,
			    .commands = cli->commands,
			    .deadline = clock_mono() + NAMES_TIMEOUT };
	struct error err = ERROR_INIT;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (!str_eq(names[i].what, what))
			continue;
		to.suffix = names[i].suffix;
		r = names[i].put(&to, &err);
		free(to.token);
		return r < 0 ? cli_fail(&err) : 0;
	}
	return cli_complain(
		"completion: --names is workloads, places, images, commands or shells, not \"%s\"",
		what);
}

int cmd_completion(const struct cli *cli, const struct args *args)
{
	const char *what = args_value(args, "names");

	if (what && args->n_operands == 0)
		return completion_names_put(cli, what);
	if (what || args->n_operands == 0)
		return cli_complain("completion: a shell (bash, zsh or fish), or --names");
	if (completion_write(cli->commands, args->operands[0], stdout) < 0)
		return cli_complain(
			"completion: there is none for \"%s\", only for bash, zsh and fish",
			args->operands[0]);
	return 0;
}
