/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/mount_words.h"
#include "cli/options/spec.h"
#include "cli/output/output.h"
#include "cli/output/table.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

#define CLOUD_METHOD "/nacre.v1.CloudService/"

/* ---- what is shown ---- */

static void cloud_members(struct json *j, const Nacre__V1__CloudVm *vm)
{
	json_put_string(j, "name", vm->name);
	json_put_word(j, "id", vm->id);
	json_put_string(j, "state", vm->state);
	json_put_string(j, "provider", vm->provider);
	json_put_word(j, "region", vm->region);
	json_put_word(j, "instance", vm->instance);
	json_put_word(j, "image", vm->image);
	json_put_word(j, "type", vm->type);
	json_put_word(j, "address", vm->address);
	json_put_word(j, "zone", vm->zone);
	json_put_word(j, "reason", vm->reason);
	json_put_time(j, "created", vm->created_at);
	json_put_time(j, "ended", vm->ended_at);
	json_put_time(j, "lease_ends", vm->lease_ends_at);
	json_put_word(j, "node", vm->node);
}

static void cloud_json(Nacre__V1__CloudVm *const *vms, size_t n)
{
	struct json j = JSON_INIT(stdout);

	json_put_array(&j, NULL);
	for (size_t i = 0; i < n; i++) {
		json_put_object(&j, NULL);
		cloud_members(&j, vms[i]);
		json_put_end(&j);
	}
	json_put_end(&j);
}

static void cloud_table(const struct cli *cli, Nacre__V1__CloudVm *const *vms, size_t n)
{
	static const char *const heads[] = { "NAME", "STATE",   "INSTANCE",
					     "TYPE", "ADDRESS", "REASON" };
	struct table t = TABLE_INIT_WRAPS(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < n; i++) {
		const Nacre__V1__CloudVm *vm = vms[i];
		bool good = str_eq(vm->state, "running"), bad = str_eq(vm->state, "failed");

		table_add(&t, vm->name);
		table_add_color(&t, good ? TABLE_GREEN : bad ? TABLE_RED : TABLE_PLAIN, vm->state);
		table_add(&t, vm->instance);
		table_add(&t, vm->type);
		table_add(&t, vm->address);
		table_add(&t, vm->reason);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

/* ---- cloud run ---- */

static int cloud_run_fill(const struct args *args, Nacre__V1__RunCloudVmRequest *q,
			  struct error *err)
{
	const char *cpus = args_value(args, "cpus"), *memory = args_value(args, "memory");

	spec_set(&q->name, args_value(args, "name"));
	spec_set(&q->type, args_value(args, "type"));
	q->image = args->operands[0];
	q->dry_run = args_flag(args, "dry-run");
	if (cpus && parse_u32(cpus, &q->cpus) < 0)
		return error_refuse(err, ERROR_INVALID, "--cpus: \"%s\" is no number", cpus);
	if (memory && mount_words_size(memory, &q->memory) < 0)
		return error_refuse(err, ERROR_INVALID, "--memory: \"%s\" is no size", memory);
	if (*q->type && (cpus || memory))
		return error_refuse(err, ERROR_INVALID,
				    "--type says how large it is: --cpus and --memory choose one");
	return 0;
}

static void cloud_run_tell(const Nacre__V1__CloudVm *vm)
{
	struct json j = JSON_INIT(stdout);

	json_put_object(&j, NULL);
	cloud_members(&j, vm);
	json_put_end(&j);
}

int cmd_cloud_run(const struct cli *cli, const struct args *args)
{
	static char possible[] = "possible", provider[] = "ec2";
	Nacre__V1__RunCloudVmRequest q = NACRE__V1__RUN_CLOUD_VM_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RunCloudVmResponse *answer = NULL;
	Nacre__V1__CloudVm would = NACRE__V1__CLOUD_VM__INIT;
	struct error err = ERROR_INIT;

	if (cloud_run_fill(args, &q, &err) < 0)
		return cli_fail(&err);
	answer = client_ask_once(&cli->daemon, CLOUD_METHOD "RunCloudVm", &q.base,
				 &nacre__v1__run_cloud_vm_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	would.name = q.name;
	would.image = q.image;
	would.type = q.type;
	would.state = possible;
	would.provider = provider;
	if (cli->json)
		cloud_run_tell(answer->vm ? answer->vm : &would);
	else
		(void)puts(answer->vm ? answer->vm->name : "the cloud would make it");
	return 0;
}

/* ---- cloud ls, gc ---- */

int cmd_cloud_ls(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListCloudVmsRequest q = NACRE__V1__LIST_CLOUD_VMS_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListCloudVmsResponse *list = NULL;
	struct error err = ERROR_INIT;

	(void)args;
	list = client_ask_once(&cli->daemon, CLOUD_METHOD "ListCloudVms", &q.base,
			       &nacre__v1__list_cloud_vms_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	if (cli->json)
		cloud_json(list->vms, list->n_vms);
	else
		cloud_table(cli, list->vms, list->n_vms);
	return 0;
}

int cmd_cloud_gc(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CollectCloudVmsRequest q = NACRE__V1__COLLECT_CLOUD_VMS_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__CollectCloudVmsResponse *list = NULL;
	struct error err = ERROR_INIT;
	int status = 0;

	spec_set(&q.node, args_value(args, "node"));
	q.dry_run = args_flag(args, "dry-run");
	q.expired = args_flag(args, "expired");
	list = client_ask_once(&cli->daemon, CLOUD_METHOD "CollectCloudVms", &q.base,
			       &nacre__v1__collect_cloud_vms_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	if (cli->json)
		cloud_json(list->vms, list->n_vms);
	else
		cloud_table(cli, list->vms, list->n_vms);
	for (size_t i = 0; i < list->n_vms; i++)
		if (*list->vms[i]->reason)
			status = cli_complain("%s: %s", list->vms[i]->instance,
					      list->vms[i]->reason);
	return status;
}

/* ---- what is asked of one ---- */

int cmd_cloud_logs(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CloudVmConsoleRequest q = NACRE__V1__CLOUD_VM_CONSOLE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__CloudVmConsoleResponse *answer = NULL;
	struct error err = ERROR_INIT;
	int r;

	q.target = args->operands[0];
	answer = client_ask_once(&cli->daemon, CLOUD_METHOD "CloudVmConsole", &q.base,
				 &nacre__v1__cloud_vm_console_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	r = output_write(STDOUT_FILENO, answer->output.data, answer->output.len);
	if (r == 0 || r == -EPIPE)
		return 0;
	(void)error_set(&err, r, "write to standard output");
	return cli_fail(&err);
}

int cmd_cloud_stop(const struct cli *cli, const struct args *args)
{
	int status = 0;

	for (size_t i = 0; i < args->n_operands; i++) {
		Nacre__V1__StopCloudVmRequest q = NACRE__V1__STOP_CLOUD_VM_REQUEST__INIT;
		_cleanup_message_ Nacre__V1__StopCloudVmResponse *answer = NULL;
		struct error err = ERROR_INIT;

		q.target = args->operands[i];
		answer = client_ask_once(&cli->daemon, CLOUD_METHOD "StopCloudVm", &q.base,
					 &nacre__v1__stop_cloud_vm_response__descriptor, 0, &err);
		if (answer)
			(void)puts(q.target);
		else
			status = cli_fail(&err);
	}
	return status;
}

int cmd_cloud_rm(const struct cli *cli, const struct args *args)
{
	int status = 0;

	for (size_t i = 0; i < args->n_operands; i++) {
		Nacre__V1__RemoveCloudVmRequest q = NACRE__V1__REMOVE_CLOUD_VM_REQUEST__INIT;
		_cleanup_message_ Nacre__V1__RemoveCloudVmResponse *answer = NULL;
		struct error err = ERROR_INIT;

		q.target = args->operands[i];
		q.force = args_flag(args, "force");
		answer = client_ask_once(&cli->daemon, CLOUD_METHOD "RemoveCloudVm", &q.base,
					 &nacre__v1__remove_cloud_vm_response__descriptor, 0, &err);
		if (answer)
			(void)puts(q.target);
		else
			status = cli_fail(&err);
	}
	return status;
}
