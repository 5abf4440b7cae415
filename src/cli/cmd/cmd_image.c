/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/images/rootconfig.h"
#include "cli/images/spool.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/progress.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/table/command.h"

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

/* Only an image that is made here can be told what to be. */
static int import_config(const struct args *args, char **ret, struct error *err)
{
	static const char *const settings[] = { "cmd",  "entrypoint", "env",     "workdir",
						"user", "label",      "platform" };

	if (args_flag(args, "root") && args_value(args, "ref"))
		return error_refuse(err, ERROR_INVALID,
				    "--ref is for archives with images: not with --root");
	if (!args_flag(args, "root")) {
		for (size_t i = 0; i < ARRAY_SIZE(settings); i++)
			if (args_value(args, settings[i]))
				return error_refuse(err, ERROR_INVALID,
						    "--%s is for a root file system: with --root",
						    settings[i]);
		return 0;
	}
	*ret = rootconfig_new(args, err);
	return *ret ? 0 : -EINVAL;
}

/* The daemon has a working directory of its own. */
static int import_path(const char *operand, struct spool *spool, char **ret, struct error *err)
{
	int r;

	if (str_eq(operand, "-")) {
		r = spool_stdin(spool, err);
		if (r == 0)
			*ret = xstrdup(spool->path);
		return r;
	}
	*ret = realpath(operand, NULL);
	return *ret ? 0 : error_set(err, -errno, "find %s", operand);
}

int cmd_image_import(const struct cli *cli, const struct args *args)
{
	static char from_stdin[] = "stdin";
	Nacre__V1__ImportRequest request = NACRE__V1__IMPORT_REQUEST__INIT;
	struct import import = {
		.call = { .type = &nacre__v1__import_response__descriptor,
			  .on_message = import_message },
		.json = cli->json,
	};
	_cleanup_client_ struct client *client = NULL;
	_cleanup_str_ char *path = NULL, *config = NULL;
	_cleanup_(spool_done) struct spool spool = SPOOL_INIT;
	struct error err = ERROR_INIT;
	int r;

	r = target_check_local(&cli->daemon, "image import", &err);
	if (r == 0)
		r = import_config(args, &config, &err);
	if (r == 0)
		r = import_path(args->operands[0], &spool, &path, &err);
	if (r < 0)
		return cli_fail(&err);
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	progress_init(&import.progress);
	request.path = path;
	spec_set(&request.config, config);
	if (spool.fd >= 0)
		request.source = from_stdin;
	spec_set(&request.name, args_value(args, "name"));
	spec_set(&request.ref, args_value(args, "ref"));
	return import_run(client, &import, &request.base);
}

int cmd_image_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveImageRequest request = NACRE__V1__REMOVE_IMAGE_REQUEST__INIT;

	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.ImageService/Remove", &request.base,
						 &request.image,
						 &nacre__v1__remove_image_response__descriptor });
}
