/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "api/nacre.pb-c.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/completion.h"
#include "cli/handlers.h"
#include "cli/text.h"

/* A shell that waits for names does not wait longer. */
#define NAMES_TIMEOUT (2 * NSEC_PER_SEC)
#define NAMES_MAX 10000

static void names_put(const char *name, const char *suffix)
{
	_cleanup_str_ char *line = xformat("%s%s", name, suffix);

	text_clean(line);
	(void)puts(line);
}

/* As many as one answer holds: nobody chooses from more. */
static int names_of_workloads(const struct cli *cli, const char *suffix, struct error *err)
{
	static char field[] = "name";
	char *fields[] = { field };
	Nacre__V1__ListRequest request = NACRE__V1__LIST_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;

	request.all = true;
	request.page_size = NAMES_MAX;
	request.fields = fields;
	request.n_fields = ARRAY_SIZE(fields);
	list = client_ask_once(cli->socket, "/nacre.v1.WorkloadService/List", &request.base,
			       &nacre__v1__list_response__descriptor, NAMES_TIMEOUT, err);
	if (!list)
		return err->code;
	for (size_t i = 0; i < list->n_workloads; i++)
		names_put(list->workloads[i]->name, suffix);
	return 0;
}

static int workloads(const struct cli *cli, struct error *err)
{
	return names_of_workloads(cli, "", err);
}

static int places(const struct cli *cli, struct error *err)
{
	return names_of_workloads(cli, ":/", err);
}

static int images(const struct cli *cli, struct error *err)
{
	Nacre__V1__ListImagesRequest request = NACRE__V1__LIST_IMAGES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListImagesResponse *list = NULL;

	list = client_ask_once(cli->socket, "/nacre.v1.ImageService/List", &request.base,
			       &nacre__v1__list_images_response__descriptor, NAMES_TIMEOUT, err);
	if (!list)
		return err->code;
	for (size_t i = 0; i < list->n_images; i++) {
		for (size_t k = 0; k < list->images[i]->n_names; k++)
			names_put(list->images[i]->names[k], "");
	}
	return 0;
}

static int all_commands(const struct cli *cli, struct error *err)
{
	(void)cli;
	(void)err;
	for (size_t i = 0; i < n_commands; i++)
		(void)puts(commands[i].name);
	return 0;
}

static const struct {
	const char *what;
	int (*put)(const struct cli *cli, struct error *err);
} names[] = {
	{ "workloads", workloads },
	{ "places", places },
	{ "images", images },
	{ "commands", all_commands },
};

static int completion_names_put(const struct cli *cli, const char *what)
{
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		if (str_eq(names[i].what, what))
			return names[i].put(cli, &err) < 0 ? cli_fail(&err) : 0;
	}
	return cli_complain(
		"completion: --names is workloads, places, images or commands, not \"%s\"", what);
}

int cmd_completion(const struct cli *cli, const struct args *args)
{
	const char *what = args_value(args, "names");

	if (what && args->n_operands == 0)
		return completion_names_put(cli, what);
	if (what || args->n_operands == 0)
		return cli_complain("completion: a shell (bash, zsh or fish), or --names");
	if (completion_write(args->operands[0], stdout) < 0)
		return cli_complain(
			"completion: there is none for \"%s\", only for bash, zsh and fish",
			args->operands[0]);
	return 0;
}
