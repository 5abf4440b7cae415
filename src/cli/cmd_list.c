/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/format.h"
#include "cli/handlers.h"
#include "cli/listing.h"
#include "cli/spec.h"
#include "cli/text.h"
#include "cli/view.h"

/* For --format. */
static void list_view(struct json *j, const void *what)
{
	view_workload(j, NULL, what);
}

static void ps_json(const Nacre__V1__ListResponse *list)
{
	struct json j = JSON_INIT(stdout);

	json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_workloads; i++)
		view_workload(&j, NULL, list->workloads[i]);
	json_put_end(&j);
}

static void ps_row(struct table *t, const Nacre__V1__Workload *w, bool has_ports, nsec_t now)
{
	_cleanup_str_ char *state =
		view_state(w->kind, w->paused ? "paused" : w->state, w->exit_code);
	_cleanup_str_ char *images = view_images(w);
	_cleanup_str_ char *kind = view_kind(w);
	_cleanup_str_ char *ports = view_ports(w);
	char created[TEXT_SIZE];

	text_ago(created, now, w->created_at);
	table_add(t, w->id);
	table_add(t, w->name);
	table_add(t, kind);
	table_add_color(t, view_state_color(w->state), state);
	table_add(t, created);
	if (has_ports)
		table_add(t, ports);
	table_add(t, images);
}

/* A column that nothing stands in takes room from the others. */
static bool ps_has_ports(const Nacre__V1__ListResponse *list)
{
	for (size_t i = 0; i < list->n_workloads; i++)
		if (list->workloads[i]->attachment && list->workloads[i]->attachment->n_publish > 0)
			return true;
	return false;
}

static bool ps_cloud_is_shown(const Nacre__V1__CloudVm *vm, bool all)
{
	return all || (!str_eq(vm->state, "exited") && !str_eq(vm->state, "failed"));
}

static void ps_cloud_row(struct table *t, const Nacre__V1__CloudVm *vm, bool has_ports, nsec_t now)
{
	char created[TEXT_SIZE];

	text_ago(created, now, vm->created_at);
	table_add(t, vm->id);
	table_add(t, vm->name);
	table_add(t, vm->provider);
	table_add_color(t, view_state_color(vm->state), vm->state);
	table_add(t, created);
	if (has_ports)
		table_add(t, "");
	table_add(t, vm->image);
}

/* clouds: NULL where nobody asked for them. */
static void ps_table(const struct cli *cli, const Nacre__V1__ListResponse *list,
		     const Nacre__V1__ListCloudVmsResponse *clouds, bool all)
{
	enum { PS_PORTS = 5 };
	static const char *const heads[] = { "ID",    "NAME",    "KIND",
					     "STATE", "CREATED", [PS_PORTS] = "PORTS",
					     "IMAGE" };
	const bool has_ports = ps_has_ports(list);
	struct table t = { .n_columns = ARRAY_SIZE(heads) - !has_ports, .n_fixed = 1 };
	nsec_t now = clock_real();

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		if (has_ports || i != PS_PORTS)
			table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_workloads; i++)
		ps_row(&t, list->workloads[i], has_ports, now);
	for (size_t i = 0; clouds && i < clouds->n_vms; i++)
		if (ps_cloud_is_shown(clouds->vms[i], all))
			ps_cloud_row(&t, clouds->vms[i], has_ports, now);
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

/* Machines in a cloud, for people: a program knows whether it wants them (nacre cloud ls). NULL
 * where there are none for this user, or with err. */
static Nacre__V1__ListCloudVmsResponse *ps_ask_clouds(const struct cli *cli, struct error *err)
{
	Nacre__V1__ListCloudVmsRequest request = NACRE__V1__LIST_CLOUD_VMS_REQUEST__INIT;
	Nacre__V1__ListCloudVmsResponse *list;

	list = client_ask_once(&cli->daemon, "/nacre.v1.CloudService/ListCloudVms", &request.base,
			       &nacre__v1__list_cloud_vms_response__descriptor, 0, err);
	/* A policy may not allow it, and a daemon of an older release does not know it. */
	if (!list && (err->kind == ERROR_DENIED || err->kind == ERROR_UNSUPPORTED))
		*err = (struct error)ERROR_INIT;
	return list;
}

static int ps_show_table(const struct cli *cli, const struct args *args,
			 const Nacre__V1__ListResponse *list)
{
	bool whole = !args_value(args, "kind") && !args_value(args, "state") && !args->n_operands;
	_cleanup_message_ Nacre__V1__ListCloudVmsResponse *clouds = NULL;
	struct error err = ERROR_INIT;

	if (whole)
		clouds = ps_ask_clouds(cli, &err);
	if (err.code)
		return cli_fail(&err);
	ps_table(cli, list, clouds, args_flag(args, "all"));
	return 0;
}

static Nacre__V1__ListResponse *ps_ask(const struct cli *cli, const struct args *args,
				       struct error *err)
{
	Nacre__V1__ListRequest request = NACRE__V1__LIST_REQUEST__INIT;
	_cleanup_client_ struct client *client = client_open(&cli->daemon, err);
	Nacre__V1__ListResponse *list;

	if (!client)
		return NULL;
	request.all = args_flag(args, "all");
	request.kinds = spec_values(args, "kind", &request.n_kinds);
	request.states = spec_values(args, "state", &request.n_states);
	spec_set(&request.below, args->operands[0]);
	list = listing_ask(client, &request, err);
	free(request.kinds);
	free(request.states);
	return list;
}

int cmd_ps(const struct cli *cli, const struct args *args)
{
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;
	const char *format = args_value(args, "format");
	struct error err = ERROR_INIT;

	if (format && format_check(format, &err) < 0)
		return cli_fail(&err);
	list = ps_ask(cli, args, &err);
	if (!list)
		return cli_fail(&err);
	if (format) {
		for (size_t i = 0; i < list->n_workloads; i++) {
			if (format_show(format, list_view, list->workloads[i], &err) < 0)
				return cli_fail(&err);
		}
	} else if (args_flag(args, "quiet")) {
		for (size_t i = 0; i < list->n_workloads; i++)
			(void)puts(list->workloads[i]->id);
	} else if (cli->json) {
		ps_json(list);
	} else {
		return ps_show_table(cli, args, list);
	}
	return 0;
}

int cmd_inspect(const struct cli *cli, const struct args *args)
{
	Nacre__V1__InspectRequest request = NACRE__V1__INSPECT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectResponse *answer = NULL;
	const char *format = args_value(args, "format");
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	if (format && format_check(format, &err) < 0)
		return cli_fail(&err);
	request.target = args->operands[0];
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Inspect", &request.base,
				 &nacre__v1__inspect_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (!answer->workload)
		return cli_complain("the daemon's answer has no workload");
	if (!format) {
		view_workload(&j, NULL, answer->workload);
		return 0;
	}
	return format_show(format, list_view, answer->workload, &err) < 0 ? cli_fail(&err) : 0;
}
