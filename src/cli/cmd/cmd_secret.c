/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cli/cmd/handlers.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/table/command.h"

#define METHOD(name) "/nacre.v1.SecretService/" name
#define SECRET_MAX 512000

static void secret_json(struct json *j, const Nacre__V1__Secret *s)
{
	json_put_object(j, NULL);
	json_put_string(j, "name", s->name);
	json_put_string(j, "id", s->id);
	json_put_time(j, "created_at", s->created_at);
	json_put_time(j, "updated_at", s->updated_at);
	json_put_unsigned(j, "size", s->size);
	json_put_end(j);
}

/* ---- secret create ---- */

static int secret_from_env(const char *name, struct buf *b, struct error *err)
{
	const char *value = getenv(name);

	if (!value)
		return error_refuse(err, ERROR_INVALID, "there is no variable %s", name);
	return buf_add_str(b, value) < 0 ? error_set(err, -ENOMEM, "read a variable") : 0;
}

static int secret_from_file(const char *path, struct buf *b, struct error *err)
{
	_cleanup_fd_ int fd = str_eq(path, "-")
				      ? fd_copy(STDIN_FILENO)
				      : sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	int r = fd < 0 ? -errno : fd_read_all(fd, SECRET_MAX, b);

	if (r == -EFBIG || r == -ENOBUFS)
		return error_refuse(err, ERROR_INVALID, "%s: a secret has at most %d bytes", path,
				    SECRET_MAX);
	return r < 0 ? error_set(err, r, "read %s", path) : 0;
}

int cmd_secret_create(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CreateSecretRequest request = NACRE__V1__CREATE_SECRET_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__CreateSecretResponse *answer = NULL;
	const char *from = args->n_operands > 1 ? args->operands[1] : "-";
	_cleanup_(buf_done) struct buf data = BUF_INIT;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	int r = args_flag(args, "env") ? secret_from_env(from, &data, &err)
				       : secret_from_file(from, &data, &err);

	if (r < 0)
		return cli_fail(&err);
	request.name = args->operands[0];
	request.replace = args_flag(args, "replace");
	request.data.data = data.len ? (uint8_t *)(uintptr_t)buf_data(&data) : NULL;
	request.data.len = data.len;
	answer = client_ask_once(&cli->daemon, METHOD("CreateSecret"), &request.base,
				 &nacre__v1__create_secret_response__descriptor, 0, &err);
	if (data.base)
		explicit_bzero(data.base, data.size);
	if (!answer)
		return cli_fail(&err);
	if (!answer->secret)
		return cli_complain("the daemon's answer has no secret");
	if (cli->json)
		secret_json(&j, answer->secret);
	else
		(void)puts(answer->secret->id);
	return 0;
}

/* ---- secret ls ---- */

static void secret_table(const struct cli *cli, const Nacre__V1__ListSecretsResponse *list)
{
	static const char *const heads[] = { "ID", "NAME", "SIZE", "CREATED", "UPDATED" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));
	nsec_t now = clock_real();
	char text[TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_secrets; i++) {
		const Nacre__V1__Secret *s = list->secrets[i];

		table_add(&t, s->id);
		table_add(&t, s->name);
		text_bytes(text, s->size);
		table_add(&t, text);
		text_ago(text, now, s->created_at);
		table_add(&t, text);
		text_ago(text, now, s->updated_at);
		table_add(&t, text);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_secret_ls(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListSecretsRequest request = NACRE__V1__LIST_SECRETS_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListSecretsResponse *list = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	list = client_ask_once(&cli->daemon, METHOD("ListSecrets"), &request.base,
			       &nacre__v1__list_secrets_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	if (!cli->json && !args_flag(args, "quiet")) {
		secret_table(cli, list);
		return 0;
	}
	if (cli->json)
		json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_secrets; i++) {
		if (cli->json)
			secret_json(&j, list->secrets[i]);
		else
			(void)puts(list->secrets[i]->id);
	}
	if (cli->json)
		json_put_end(&j);
	return 0;
}

/* ---- secret inspect, rm ---- */

int cmd_secret_inspect(const struct cli *cli, const struct args *args)
{
	struct json j = JSON_INIT(stdout);
	int status = 0;

	json_put_array(&j, NULL);
	for (size_t i = 0; i < args->n_operands; i++) {
		Nacre__V1__InspectSecretRequest request = NACRE__V1__INSPECT_SECRET_REQUEST__INIT;
		_cleanup_message_ Nacre__V1__InspectSecretResponse *answer = NULL;
		struct error err = ERROR_INIT;

		request.name = args->operands[i];
		answer = client_ask_once(&cli->daemon, METHOD("InspectSecret"), &request.base,
					 &nacre__v1__inspect_secret_response__descriptor, 0, &err);
		if (answer && answer->secret)
			secret_json(&j, answer->secret);
		else
			status = cli_fail(&err);
	}
	json_put_end(&j);
	return status;
}

int cmd_secret_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveSecretRequest request = NACRE__V1__REMOVE_SECRET_REQUEST__INIT;

	return each_operand(
		cli, args,
		&(struct each_call){ .method = METHOD("RemoveSecret"),
				     .request = &request.base,
				     .slot = &request.name,
				     .answer = &nacre__v1__remove_secret_response__descriptor,
				     .missing_is_fine = args_flag(args, "ignore") });
}
