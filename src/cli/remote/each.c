/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/each.h"

#include <stdlib.h>

#include "base/text/args.h"
#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

/* The calls of one command; calls[n_told..n_started) run, or have ended and are not told yet. */
struct each {
	struct client *client;
	const struct args *args;
	const struct each_call *call;
	struct client_call *calls; /* as many as operands */
	size_t n_started, n_told;
	int status;
};

static void each_start(struct each *e)
{
	struct client_call *c = &e->calls[e->n_started];

	*c = (struct client_call){ .type = e->call->answer };
	*e->call->slot = e->args->operands[e->n_started++];
	client_call_start(e->client, c, e->call->method, e->call->request);
}

/* Waits for what runs, and tells how it has ended. */
static void each_finish(struct each *e)
{
	while (e->n_told < e->n_started) {
		struct client_call *c = &e->calls[e->n_told++];

		(void)client_call_wait(e->client, c);
		if (!c->err.code && !c->answer)
			(void)error_refuse(&c->err, ERROR_FAULT,
					   "the daemon's answer to %s is empty", e->call->method);
		if (c->err.code && !(e->call->missing_is_fine && c->err.kind == ERROR_NOT_FOUND))
			e->status = cli_fail(&c->err);
		client_call_done(c);
	}
}

static bool each_runs(const struct each *e, const char *operand)
{
	for (size_t i = e->n_told; i < e->n_started; i++)
		if (str_eq(e->args->operands[i], operand))
			return true;
	return false;
}

int each_operand(const struct cli *cli, const struct args *args, const struct each_call *call)
{
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	struct each e = { .args = args, .call = call };

	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	e.client = client;
	e.calls = xrealloc(NULL, args->n_operands, sizeof(*e.calls));
	while (e.n_started < args->n_operands) {
		if (!call->together || each_runs(&e, args->operands[e.n_started]))
			each_finish(&e);
		each_start(&e);
	}
	each_finish(&e);
	free(e.calls);
	return e.status;
}
