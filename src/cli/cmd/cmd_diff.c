/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/rows.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

struct diff {
	struct client_call call;
	const struct cli *cli;
	const char *format;
	struct rows rows;
	struct json json;
	struct error err;
};

struct diff_line {
	char kind[2];
	char *path;
};

static const char *diff_kind(const Nacre__V1__FileChange *c)
{
	return c->kind == NACRE__V1__FILE_CHANGE__KIND__KIND_ADDED     ? "A"
	       : c->kind == NACRE__V1__FILE_CHANGE__KIND__KIND_DELETED ? "D"
								       : "C";
}

static void diff_members(struct json *j, const struct diff_line *line)
{
	json_put_string(j, "change", line->kind);
	json_put_string(j, "path", line->path);
}

static void diff_view(struct json *j, const void *what)
{
	json_put_object(j, NULL);
	diff_members(j, what);
	json_put_end(j);
}

/* As the Engine's API says it. */
static void diff_view_docker(struct json *j, const void *what)
{
	const struct diff_line *line = what;

	json_put_object(j, NULL);
	json_put_string(j, "Path", line->path);
	json_put_integer(j, "Kind", line->kind[0] == 'C' ? 0 : line->kind[0] == 'A' ? 1 : 2);
	json_put_end(j);
}

/* A name is the container's: no byte of it moves the cursor of a terminal, or begins a line. */
static void diff_print(const struct diff_line *line)
{
	(void)printf("%s ", line->kind);
	for (const unsigned char *p = (const unsigned char *)line->path; *p; p++) {
		if (*p < ' ' || *p == 0x7f)
			(void)printf("\\%03o", *p);
		else
			(void)putchar(*p);
	}
	(void)putchar('\n');
}

static void diff_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct diff *d = container_of(call, struct diff, call);
	const Nacre__V1__DiffResponse *m = (const Nacre__V1__DiffResponse *)message;

	for (size_t i = 0; i < m->n_changes && !d->err.code; i++) {
		const Nacre__V1__FileChange *c = m->changes[i];
		_cleanup_str_ char *path =
			xformat("%.*s", (int)c->path.len, (const char *)c->path.data);
		struct diff_line line = { .path = path };

		(void)str_copy(line.kind, sizeof(line.kind), diff_kind(c));
		if (d->format) {
			(void)rows_add(&d->rows, &line, &line, &d->err);
		} else if (d->cli->json) {
			json_put_object(&d->json, NULL);
			diff_members(&d->json, &line);
			json_put_end(&d->json);
		} else {
			diff_print(&line);
		}
	}
}

static int diff_ask(struct diff *d, const Nacre__V1__DiffRequest *request, struct error *err)
{
	_cleanup_client_ struct client *client = client_open(&d->cli->daemon, err);

	if (!client)
		return err->code;
	client_call_start(client, &d->call, "/nacre.v1.WorkloadService/Diff", &request->base);
	(void)client_call_wait(client, &d->call);
	*err = d->call.err;
	client_call_done(&d->call);
	return err->code;
}

int cmd_diff(const struct cli *cli, const struct args *args)
{
	static const struct rows_view view = { diff_view, diff_view_docker, NULL };
	Nacre__V1__DiffRequest request = NACRE__V1__DIFF_REQUEST__INIT;
	struct diff d = { .call = { .type = &nacre__v1__diff_response__descriptor,
				    .on_message = diff_message },
			  .cli = cli,
			  .format = args_value(args, "format"),
			  .json = JSON_INIT(stdout) };
	struct error err = ERROR_INIT;
	int r;

	if (d.format && rows_begin(&d.rows, &view, d.format, &err) < 0)
		return cli_fail(&err);
	request.target = args->operands[0];
	spec_set(&request.container, args_value(args, "container"));
	if (cli->json)
		json_put_array(&d.json, NULL);
	r = diff_ask(&d, &request, &err);
	if (r == 0 && d.err.code)
		r = error_copy(&err, &d.err);
	if (r == 0 && d.format)
		rows_end(&d.rows, cli->color);
	if (cli->json)
		json_put_end(&d.json);
	if (d.format)
		rows_done(&d.rows);
	return r < 0 ? cli_fail(&err) : 0;
}
