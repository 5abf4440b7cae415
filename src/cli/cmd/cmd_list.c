/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/image_show.h"
#include "cli/options/health_view.h"
#include "cli/options/ps_filter.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/docker_view.h"
#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/listing.h"
#include "cli/table/command.h"

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

/* Its state, and what its policy has made of it. */
static char *ps_state(const Nacre__V1__Workload *w)
{
	_cleanup_str_ char *state =
		view_state(w->kind, w->paused ? "paused" : w->state, w->exit_code);
	const char *health = health_view_word(w);

	if (w->restart_at)
		return xformat("%s, restarts", state);
	if (w->restart_count == 0)
		return *health ? xformat("%s (%s)", state, health) : xstrdup(state);
	return xformat("%s (%s%s%" PRIu32 " restart%s)", state, health, *health ? ", " : "",
		       w->restart_count, w->restart_count == 1 ? "" : "s");
}

static void ps_row(struct table *t, const Nacre__V1__Workload *w, bool has_ports, nsec_t now)
{
	_cleanup_str_ char *state = ps_state(w);
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

/* ---- choosing ---- */

/* The last so many alone. */
static int ps_last(const struct args *args, size_t *ret, struct error *err)
{
	const char *text = args_value(args, "last");
	uint32_t n = 0;

	*ret = args_flag(args, "latest") ? 1 : SIZE_MAX;
	if (!text)
		return 0;
	if (parse_u32(text, &n) < 0 || n == 0)
		return error_refuse(err, ERROR_INVALID, "--last is a number from 1 on, not \"%s\"",
				    text);
	*ret = n;
	return 0;
}

/* Leaves those in the list that are asked for; what goes is freed. */
static void ps_choose(Nacre__V1__ListResponse *list, const struct ps_filter *filter, size_t n_last)
{
	size_t n = 0, n_before;

	for (size_t i = 0; i < list->n_workloads; i++) {
		if (ps_filter_matches(filter, list->workloads[i]))
			list->workloads[n++] = list->workloads[i];
		else
			nacre__v1__workload__free_unpacked(list->workloads[i], NULL);
	}
	n_before = n > n_last ? n - n_last : 0;
	for (size_t i = 0; i < n_before; i++)
		nacre__v1__workload__free_unpacked(list->workloads[i], NULL);
	list->n_workloads = n - n_before;
	if (n_before > 0)
		memmove(list->workloads, list->workloads + n_before,
			list->n_workloads * sizeof(*list->workloads));
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
	bool whole = !args_value(args, "kind") && !args_value(args, "state") &&
		     !args_value(args, "filter") && !args_value(args, "last") &&
		     !args_flag(args, "latest") && !args->n_operands;
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
	_cleanup_(ps_filter_done) struct ps_filter filter = { .n = 0 };
	_cleanup_client_ struct client *client = NULL;
	Nacre__V1__ListResponse *list;
	size_t n_last;

	if (ps_filter_init(&filter, args, err) < 0 || ps_last(args, &n_last, err) < 0)
		return NULL;
	client = client_open(&cli->daemon, err);
	if (!client)
		return NULL;
	request.all = args_flag(args, "all") || filter.ended || n_last != SIZE_MAX;
	request.kinds = spec_values(args, "kind", &request.n_kinds);
	request.states = spec_values(args, "state", &request.n_states);
	request.labels = filter.labels;
	request.n_labels = filter.n_labels;
	spec_set(&request.below, args->operands[0]);
	list = listing_ask(client, &request, err);
	free(request.kinds);
	free(request.states);
	if (list)
		ps_choose(list, &filter, n_last);
	return list;
}

/* ---- ps ---- */

static int ps_rows(const struct cli *cli, const struct args *args, struct rows *rows,
		   const Nacre__V1__ListResponse *list, struct error *err)
{
	struct docker_row row = { .now = clock_real(), .no_trunc = args_flag(args, "no-trunc") };
	int r = 0;

	for (size_t i = 0; i < list->n_workloads && r == 0; i++) {
		row.workload = list->workloads[i];
		r = rows_add(rows, list->workloads[i], &row, err);
	}
	if (r == 0)
		rows_end(rows, cli->color);
	return r;
}

int cmd_ps(const struct cli *cli, const struct args *args)
{
	static const struct rows_view view = { list_view, docker_view_row, docker_view_head };
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;
	_cleanup_(rows_done) struct rows rows = { .format = NULL };
	const char *format = args_value(args, "format");
	struct error err = ERROR_INIT;

	if (format && rows_begin(&rows, &view, format, &err) < 0)
		return cli_fail(&err);
	list = ps_ask(cli, args, &err);
	if (!list)
		return cli_fail(&err);
	if (format) {
		if (ps_rows(cli, args, &rows, list, &err) < 0)
			return cli_fail(&err);
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

/* ---- inspect ---- */

static int inspect_one(struct client *client, char *target, struct rows *rows, struct json *j,
		       format_view_fn show, struct error *err)
{
	Nacre__V1__InspectRequest request = NACRE__V1__INSPECT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__InspectResponse *answer = NULL;

	request.target = target;
	answer = client_ask(client, "/nacre.v1.WorkloadService/Inspect", &request.base,
			    &nacre__v1__inspect_response__descriptor, err);
	if (!answer)
		return err->code;
	if (!answer->workload)
		return error_set(err, -EPROTO, "the daemon's answer has no workload");
	if (rows->format)
		return rows_add(rows, answer->workload, answer->workload, err);
	show(j, answer->workload);
	return 0;
}

/* One object for one target; an array for several, and in docker's form always. One that is not
 * there is told, and the others are shown. */
int cmd_inspect(const struct cli *cli, const struct args *args)
{
	static const struct rows_view view = { list_view, docker_view_workload, NULL };
	bool docker = args_flag(args, "docker"), many = docker || args->n_operands > 1;
	_cleanup_(rows_done) struct rows rows = { .format = NULL };
	_cleanup_client_ struct client *client = NULL;
	const char *format = args_value(args, "format");
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	int status = 0;

	if (format && rows_begin(&rows, &view, format, &err) < 0)
		return cli_fail(&err);
	client = client_open(&cli->daemon, &err);
	if (!client)
		return cli_fail(&err);
	if (many && !format)
		json_put_array(&j, NULL);
	for (size_t i = 0; i < args->n_operands; i++) {
		struct error no_image = ERROR_INIT;

		err = (struct error)ERROR_INIT;
		if (inspect_one(client, args->operands[i], &rows, &j,
				docker ? docker_view_workload : list_view, &err) == 0)
			continue;
		/* To docker an image is a thing like others. */
		if (docker && err.kind == ERROR_NOT_FOUND &&
		    image_show_docker(cli, args->operands[i], &rows, &j, &no_image) == 0)
			continue;
		status = cli_fail(&err);
	}
	if (many && !format)
		json_put_end(&j);
	return status;
}
