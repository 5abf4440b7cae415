/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/handlers.h"
#include "cli/listing.h"
#include "cli/progress.h"
#include "cli/spec.h"
#include "cli/text.h"
#include "cli/view.h"

struct import {
	struct client_call call;
	struct progress progress;
	bool json;
	bool imported;
};

static void import_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct import *i = container_of(call, struct import, call);
	const Nacre__V1__ImportResponse *m = (const Nacre__V1__ImportResponse *)message;
	struct json j = JSON_INIT(stdout);

	if (*m->progress)
		progress_tell(&i->progress, "%s", m->progress);
	if (!m->image)
		return;
	progress_done(&i->progress);
	i->imported = true;
	if (i->json) {
		view_image(&j, NULL, m->image);
		return;
	}
	for (size_t k = 0; k < m->image->n_names; k++)
		(void)puts(m->image->names[k]);
	if (m->image->n_names == 0)
		(void)puts(m->image->id);
}

static int import_run(struct client *client, struct import *i, const ProtobufCMessage *request)
{
	struct error err;

	client_call_start(client, &i->call, "/nacre.v1.ImageService/Import", request);
	(void)client_call_wait(client, &i->call);
	err = i->call.err;
	client_call_done(&i->call);
	progress_done(&i->progress);
	if (err.code)
		return cli_fail(&err);
	return i->imported ? 0 : cli_complain("the daemon did not tell which image this is");
}

int cmd_image_import(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ImportRequest request = NACRE__V1__IMPORT_REQUEST__INIT;
	struct import import = {
		.call = { .type = &nacre__v1__import_response__descriptor,
			  .on_message = import_message },
		.json = cli->json,
	};
	_cleanup_client_ struct client *client = NULL;
	_cleanup_str_ char *path = NULL;
	struct error err = ERROR_INIT;

	/* The daemon has a working directory of its own. */
	path = realpath(args->operands[0], NULL);
	if (!path) {
		(void)error_set(&err, -errno, "find %s", args->operands[0]);
		return cli_fail(&err);
	}
	client = client_open(cli->socket, &err);
	if (!client)
		return cli_fail(&err);
	progress_init(&import.progress);
	request.path = path;
	spec_set(&request.name, args_value(args, "name"));
	return import_run(client, &import, &request.base);
}

static void images_row(struct table *t, const char *name, const Nacre__V1__Image *image, nsec_t now)
{
	_cleanup_str_ char *layers = xformat("%" PRIu32, image->layers);
	char id[TEXT_SIZE], size[TEXT_SIZE], created[TEXT_SIZE];

	text_short_id(id, image->id);
	text_bytes(size, image->size);
	text_ago(created, now, image->created_at);
	table_add(t, name);
	table_add(t, id);
	table_add(t, size);
	table_add(t, layers);
	table_add(t, created);
}

static void images_table(const struct cli *cli, const Nacre__V1__ListImagesResponse *list)
{
	static const char *const heads[] = { "NAME", "ID", "SIZE", "LAYERS", "CREATED" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));
	nsec_t now = clock_real();

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_images; i++) {
		const Nacre__V1__Image *image = list->images[i];

		for (size_t k = 0; k < image->n_names; k++)
			images_row(&t, image->names[k], image, now);
		if (image->n_names == 0)
			images_row(&t, "-", image, now);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_image_ls(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListImagesRequest request = NACRE__V1__LIST_IMAGES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListImagesResponse *list = NULL;
	_cleanup_client_ struct client *client = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	client = client_open(cli->socket, &err);
	list = client ? listing_ask_images(client, &request, &err) : NULL;
	if (!list)
		return cli_fail(&err);
	if (!cli->json) {
		images_table(cli, list);
		return 0;
	}
	json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_images; i++)
		view_image(&j, NULL, list->images[i]);
	json_put_end(&j);
	return 0;
}

int cmd_image_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveImageRequest request = NACRE__V1__REMOVE_IMAGE_REQUEST__INIT;
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	int status = 0;

	client = client_open(cli->socket, &err);
	if (!client)
		return cli_fail(&err);
	for (size_t i = 0; i < args->n_operands; i++) {
		_cleanup_message_ Nacre__V1__RemoveImageResponse *answer = NULL;

		request.image = args->operands[i];
		answer = client_ask(client, "/nacre.v1.ImageService/Remove", &request.base,
				    &nacre__v1__remove_image_response__descriptor, &err);
		if (!answer)
			status = cli_fail(&err);
	}
	return status;
}
