/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "cli/cmd/handlers.h"
#include "cli/output/table.h"
#include "cli/remote/client.h"
#include "cli/table/cli.h"
#include "cli/table/command.h"

/* The exit status where something was found; that of a failure is CLI_FAILED too. */
#define CHECK_FOUND 1

static void check_json(const Nacre__V1__CheckResponse *answer)
{
	struct json j = JSON_INIT(stdout);

	json_put_array(&j, NULL);
	for (size_t i = 0; i < answer->n_findings; i++) {
		const Nacre__V1__Finding *f = answer->findings[i];

		json_put_object(&j, NULL);
		json_put_string(&j, "object", f->object);
		json_put_word(&j, "id", f->id);
		json_put_string(&j, "name", f->name);
		json_put_string(&j, "what", f->what);
		json_put_end(&j);
	}
	json_put_end(&j);
}

static void check_table(const struct cli *cli, const Nacre__V1__CheckResponse *answer)
{
	static const char *const heads[] = { "OBJECT", "NAME", "ID", "WHAT" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < answer->n_findings; i++) {
		const Nacre__V1__Finding *f = answer->findings[i];

		table_add_color(&t, TABLE_RED, f->object);
		table_add(&t, f->name);
		table_add(&t, *f->id ? f->id : "-");
		table_add(&t, f->what);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_check(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CheckRequest request = NACRE__V1__CHECK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__CheckResponse *answer = NULL;
	struct error err = ERROR_INIT;

	(void)args;
	answer = client_ask_once(&cli->daemon, "/nacre.v1.NodeService/Check", &request.base,
				 &nacre__v1__check_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (cli->json)
		check_json(answer);
	else if (answer->n_findings > 0)
		check_table(cli, answer);
	return answer->n_findings > 0 ? CHECK_FOUND : 0;
}
