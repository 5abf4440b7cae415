/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "cli/table/help.h"
#include "cli/table/man.h"

/* `nacre version` does not wait longer for the daemon. */
#define VERSION_TIMEOUT (2 * NSEC_PER_SEC)

static Nacre__V1__InfoResponse *about_ask(const struct cli *cli, nsec_t timeout, struct error *err)
{
	Nacre__V1__InfoRequest request = NACRE__V1__INFO_REQUEST__INIT;

	return client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Info", &request.base,
			       &nacre__v1__info_response__descriptor, timeout, err);
}

int cmd_version(const struct cli *cli, const struct args *args)
{
	struct error err = ERROR_INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = about_ask(cli, VERSION_TIMEOUT, &err);
	struct json j = JSON_INIT(stdout);

	if (cli->json) {
		json_put_object(&j, NULL);
		json_put_string(&j, "client", NACRE_VERSION);
		json_put_string(&j, "server", info ? info->version : NULL);
		json_put_end(&j);
		return 0;
	}
	(void)printf("nacre %s\n", NACRE_VERSION);
	if (info)
		(void)printf("daemon %s\n", info->version);
	return 0;
}

static void info_json_pool(struct json *j, const Nacre__V1__MachinePool *pool)
{
	if (!pool) {
		json_put_null(j, "pool");
		return;
	}
	json_put_object(j, "pool");
	json_put_unsigned(j, "size", pool->size);
	json_put_unsigned(j, "waiting", pool->waiting);
	json_put_unsigned(j, "memory", pool->memory);
	json_put_word(j, "reason", pool->reason);
	json_put_end(j);
}

static void info_json(const Nacre__V1__InfoResponse *info)
{
	struct json j = JSON_INIT(stdout);

	json_put_object(&j, NULL);
	json_put_string(&j, "version", info->version);
	json_put_string(&j, "root", info->root);
	json_put_string(&j, "run", info->run);
	json_put_string(&j, "cgroup", info->cgroup);
	json_put_integer(&j, "pid", info->pid);
	json_put_time(&j, "started_at", info->started_at);
	json_put_string(&j, "kernel", info->kernel);
	json_put_array(&j, "lacks");
	for (size_t i = 0; i < info->n_lacks; i++)
		json_put_string(&j, NULL, info->lacks[i]);
	json_put_end(&j);
	info_json_pool(&j, info->pool);
	json_put_end(&j);
}

static void info_row(struct table *t, const char *name, const char *value)
{
	table_add_color(t, TABLE_BOLD, name);
	table_add(t, value);
}

static char *info_pool(const Nacre__V1__MachinePool *pool)
{
	char memory[TEXT_SIZE];

	text_bytes(memory, pool->memory);
	return xformat("%" PRIu32 " of %" PRIu32 " machines wait, %s%s%s", pool->waiting,
		       pool->size, memory, *pool->reason ? "; " : "", pool->reason);
}

static void info_table(const struct cli *cli, const Nacre__V1__InfoResponse *info)
{
	_cleanup_str_ char *pid = xformat("%" PRId64, info->pid);
	_cleanup_str_ char *cgroup = xformat("/%s", info->cgroup + (info->cgroup[0] == '/'));
	_cleanup_str_ char *pool = info->pool ? info_pool(info->pool) : NULL;
	struct table t = TABLE_INIT(2);
	char started[TEXT_SIZE];

	text_ago(started, clock_real(), info->started_at);
	info_row(&t, "version", info->version);
	info_row(&t, "pid", pid);
	info_row(&t, "started", started);
	info_row(&t, "root", info->root);
	info_row(&t, "run", info->run);
	info_row(&t, "cgroup", cgroup);
	info_row(&t, "kernel", info->kernel);
	for (size_t i = 0; i < info->n_lacks; i++)
		info_row(&t, "lacks", info->lacks[i]);
	if (info->pool)
		info_row(&t, "pool", pool);
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_info(const struct cli *cli, const struct args *args)
{
	struct error err = ERROR_INIT;
	_cleanup_message_ Nacre__V1__InfoResponse *info = about_ask(cli, 0, &err);

	if (!info)
		return cli_fail(&err);
	if (cli->json)
		info_json(info);
	else
		info_table(cli, info);
	return 0;
}

int cmd_help(const struct cli *cli, const struct args *args)
{
	struct error err = ERROR_INIT;
	const struct command *c;
	size_t n_words;

	if (args->n_operands == 0) {
		help_overview(cli->commands, stdout);
		return 0;
	}
	c = command_find(cli->commands, args->operands, args->n_operands, &n_words);
	if (!c && args->n_operands == 1 && help_group(cli->commands, args->operands[0], stdout))
		return 0;
	if (!c) {
		(void)command_unknown(cli->commands, args->operands, args->n_operands, &err);
		return cli_fail(&err);
	}
	help_command(c, stdout);
	return 0;
}

int cmd_man(const struct cli *cli, const struct args *args)
{
	man_write(cli->commands, stdout);
	return 0;
}
