/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/remote/contexts.h"
#include "cli/table/command.h"

/* A file by its whole name: the user stands elsewhere later. */
static int context_file(char **ret, const char *path, struct error *err)
{
	if (!path)
		return 0;
	*ret = realpath(path, NULL);
	return *ret ? 0 : error_set(err, -errno, "find %s", path);
}

static int context_fill(struct context *c, const struct client_target *t, struct error *err)
{
	int r;

	if (t->socket)
		c->fields[CONTEXT_SOCKET] = xstrdup(t->socket);
	else
		c->fields[CONTEXT_HOST] = target_text(t);
	r = context_file(&c->fields[CONTEXT_TLS_CA], t->ca, err);
	if (r == 0)
		r = context_file(&c->fields[CONTEXT_TLS_CERT], t->cert, err);
	if (r == 0)
		r = context_file(&c->fields[CONTEXT_TLS_KEY], t->key, err);
	if (r == 0 && t->host && !str_eq(t->server_name, t->host))
		c->fields[CONTEXT_TLS_NAME] = xstrdup(t->server_name);
	return r;
}

static int context_create(const struct args *args, struct error *err)
{
	_cleanup_(contexts_freep) struct contexts *all = NULL;
	_cleanup_(target_done) struct client_target target = { .n_owned = 0 };
	struct context *c;
	int r;

	if (!args_value(args, "host") && !args_value(args, "socket"))
		return error_refuse(err, ERROR_INVALID,
				    "context create: --host NAME:PORT or --socket PATH says which "
				    "daemon it is");
	r = context_check_name(args->operands[0], err);
	if (r == 0)
		r = target_settle(&target, args, args, err);
	if (r == 0)
		r = contexts_load(&all, err);
	if (r < 0)
		return r;
	if (contexts_find(all, args->operands[0]))
		return error_refuse(err, ERROR_EXISTS, "there is a context %s already",
				    args->operands[0]);
	c = contexts_add(all, args->operands[0]);
	if (!c)
		return error_refuse(err, ERROR_EXHAUSTED,
				    "there are %d contexts, and no more can be", CONTEXTS_MAX);
	r = context_fill(c, &target, err);
	return r == 0 ? contexts_save(all, err) : r;
}

int cmd_context_create(const struct cli *cli, const struct args *args)
{
	struct error err = ERROR_INIT;

	(void)cli;
	if (context_create(args, &err) < 0)
		return cli_fail(&err);
	(void)puts(args->operands[0]);
	return 0;
}

static int context_change(const char *name, bool remove, struct error *err)
{
	_cleanup_(contexts_freep) struct contexts *all = NULL;
	struct context *c;
	int r = contexts_load(&all, err);

	if (r < 0)
		return r;
	c = contexts_find(all, name);
	if (!c)
		return error_refuse(err, ERROR_NOT_FOUND, "there is no context %s", name);
	if (remove) {
		contexts_remove(all, c);
	} else {
		free(all->current);
		all->current = xstrdup(name);
	}
	return contexts_save(all, err);
}

static int context_each(const struct args *args, bool remove)
{
	int status = 0;

	for (size_t i = 0; i < args->n_operands; i++) {
		struct error err = ERROR_INIT;

		if (context_change(args->operands[i], remove, &err) < 0)
			status = cli_fail(&err);
		else
			(void)puts(args->operands[i]);
	}
	return status;
}

int cmd_context_use(const struct cli *cli, const struct args *args)
{
	(void)cli;
	return context_each(args, false);
}

int cmd_context_rm(const struct cli *cli, const struct args *args)
{
	(void)cli;
	return context_each(args, true);
}

static void context_json(struct json *j, const struct contexts *all, const struct context *c)
{
	json_put_object(j, NULL);
	json_put_string(j, "name", c->name);
	json_put_bool(j, "current", all->current && str_eq(all->current, c->name));
	for (size_t f = 0; f < CONTEXT_FIELD_COUNT; f++)
		json_put_string(j, context_field_names[f], c->fields[f]);
	json_put_end(j);
}

static void context_table(const struct cli *cli, const struct contexts *all)
{
	static const char *const heads[] = { "", "NAME", "DAEMON", "CERTIFICATE" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < all->n; i++) {
		const struct context *c = &all->list[i];
		const char *host = c->fields[CONTEXT_HOST], *cert = c->fields[CONTEXT_TLS_CERT];

		table_add(&t, all->current && str_eq(all->current, c->name) ? "*" : "");
		table_add(&t, c->name);
		table_add(&t, host ? host : c->fields[CONTEXT_SOCKET]);
		table_add(&t, cert ? cert : "");
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_context_ls(const struct cli *cli, const struct args *args)
{
	_cleanup_(contexts_freep) struct contexts *all = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	(void)args;
	if (contexts_load(&all, &err) < 0)
		return cli_fail(&err);
	if (!cli->json) {
		context_table(cli, all);
		return 0;
	}
	json_put_array(&j, NULL);
	for (size_t i = 0; i < all->n; i++)
		context_json(&j, all, &all->list[i]);
	json_put_end(&j);
	return 0;
}

int cmd_context_show(const struct cli *cli, const struct args *args)
{
	_cleanup_(contexts_freep) struct contexts *all = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	const struct context *c;
	const char *name;

	(void)cli;
	if (contexts_load(&all, &err) < 0)
		return cli_fail(&err);
	name = args->n_operands > 0 ? args->operands[0] : all->current;
	c = name ? contexts_find(all, name) : NULL;
	if (!c) {
		(void)error_refuse(&err, ERROR_NOT_FOUND, "there is no context %s",
				   name ? name : "in use");
		return cli_fail(&err);
	}
	context_json(&j, all, c);
	return 0;
}
