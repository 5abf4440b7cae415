/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/json.h"
#include "base/str.h"
#include "cli/alloc.h"
#include "cli/command.h"
#include "cli/copy.h"
#include "cli/handlers.h"
#include "cli/text.h"

/* Exit status where something was left out. */
#define COPY_PARTIAL 1

void copy_warn(struct copy *c, const char *path, const char *why)
{
	progress_done(&c->progress);
	(void)cli_complain("cp: %s is left out: %s", path, why);
	c->n_left_out++;
}

void copy_tell(struct copy *c)
{
	char bytes[TEXT_SIZE];

	if (c->quiet)
		return;
	text_bytes(bytes, c->n_bytes);
	progress_tell(&c->progress, "%" PRIu64 " %s, %s: %s", c->n_entries,
		      c->n_entries == 1 ? "entry" : "entries", bytes, c->file ? c->file : "");
}

void copy_set_file(struct copy *c, const char *path)
{
	free(c->file);
	c->file = xstrdup(path);
}

static int copy_report(const struct cli *cli, const struct copy *c)
{
	struct json j = JSON_INIT(stdout);

	if (cli->json) {
		json_put_object(&j, NULL);
		json_put_unsigned(&j, "entries", c->n_entries);
		json_put_unsigned(&j, "bytes", c->n_bytes);
		json_put_unsigned(&j, "left_out", c->n_left_out);
		json_put_end(&j);
	}
	return c->n_left_out ? COPY_PARTIAL : 0;
}

static int copy_check(const struct cli *cli, const struct copy_place *from,
		      const struct copy_place *to, struct error *err)
{
	if (!from->target == !to->target)
		return error_refuse(
			err, ERROR_INVALID,
			"cp: one of the two is a path in a container (TARGET:/PATH), the other "
			"one of this system, or - for a tar archive");
	if (to->stream && cli->json)
		return error_refuse(err, ERROR_INVALID,
				    "cp: standard output cannot have both a tar archive and JSON");
	return 0;
}

int cmd_cp(const struct cli *cli, const struct args *args)
{
	_cleanup_(copy_place_done) struct copy_place from = { .path = NULL };
	_cleanup_(copy_place_done) struct copy_place to = { .path = NULL };
	struct copy c = { .archive = args_flag(args, "archive"),
			  .follow = args_flag(args, "follow-link"),
			  .quiet = args_flag(args, "quiet") };
	_cleanup_client_ struct client *client = NULL;
	int r;

	r = copy_place_init(&from, args->operands[0], &c.err);
	if (r == 0)
		r = copy_place_init(&to, args->operands[1], &c.err);
	if (r == 0)
		r = copy_check(cli, &from, &to, &c.err);
	if (r < 0)
		return cli_fail(&c.err);
	client = client_open(&cli->daemon, &c.err);
	if (!client)
		return cli_fail(&c.err);
	c.client = client;
	progress_init(&c.progress);
	r = from.target ? copy_from(&c, &from, &to) : copy_to(&c, &from, &to);
	progress_done(&c.progress);
	free(c.file);
	return r < 0 ? cli_fail(&c.err) : copy_report(cli, &c);
}
