/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/table/command.h"

#define METHOD(name) "/nacre.v1.VolumeService/" name

static void volume_json(struct json *j, const Nacre__V1__NodeVolume *v)
{
	json_put_object(j, NULL);
	json_put_string(j, "name", v->name);
	json_put_string(j, "id", v->id);
	json_put_object(j, "labels");
	for (size_t i = 0; i < v->n_labels; i++) {
		const char *value = strchr(v->labels[i], '=');
		_cleanup_str_ char *name =
			xformat("%.*s", (int)strcspn(v->labels[i], "="), v->labels[i]);

		json_put_string(j, name, value ? value + 1 : "");
	}
	json_put_end(j);
	json_put_bool(j, "anonymous", v->anonymous);
	json_put_time(j, "created_at", v->created_at);
	view_words(j, "workloads", v->workloads, v->n_workloads);
	json_put_string(j, "path", v->path);
	json_put_end(j);
}

int cmd_volume_create(const struct cli *cli, const struct args *args)
{
	Nacre__V1__CreateVolumeRequest request = NACRE__V1__CREATE_VOLUME_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__CreateVolumeResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	if (args->n_operands > 0)
		request.name = args->operands[0];
	request.labels = spec_values(args, "label", &request.n_labels);
	answer = client_ask_once(&cli->daemon, METHOD("CreateVolume"), &request.base,
				 &nacre__v1__create_volume_response__descriptor, 0, &err);
	free(request.labels);
	if (!answer)
		return cli_fail(&err);
	if (!answer->volume)
		return cli_complain("the daemon's answer has no volume");
	if (cli->json)
		volume_json(&j, answer->volume);
	else
		(void)puts(answer->volume->name);
	return 0;
}

/* ---- volume ls ---- */

static bool volume_has_label(const Nacre__V1__NodeVolume *v, const char *wanted)
{
	size_t n = strlen(wanted);

	for (size_t i = 0; i < v->n_labels; i++) {
		const char *label = v->labels[i];

		if (str_eq(label, wanted))
			return true;
		if (!strchr(wanted, '=') && strncmp(label, wanted, n) == 0 && label[n] == '=')
			return true;
	}
	return false;
}

static int volume_truth(const char *text, bool is)
{
	if (str_eq(text, "true") || str_eq(text, "1"))
		return is;
	if (str_eq(text, "false") || str_eq(text, "0"))
		return !is;
	return -1;
}

/* 1: it is shown, 0: it is not; -1: the filter is none. */
static int volume_passes(const Nacre__V1__NodeVolume *v, const char *filter)
{
	if (str_has_prefix(filter, "name="))
		return strstr(v->name, filter + strlen("name=")) != NULL;
	if (str_has_prefix(filter, "label="))
		return volume_has_label(v, filter + strlen("label="));
	if (str_has_prefix(filter, "dangling="))
		return volume_truth(filter + strlen("dangling="), v->n_workloads == 0);
	if (str_has_prefix(filter, "anonymous="))
		return volume_truth(filter + strlen("anonymous="), v->anonymous);
	return -1;
}

/* Filters that name the same thing are alternatives in docker; of labels all must be there. */
static bool volume_is_shown(const Nacre__V1__NodeVolume *v, const struct args *args)
{
	const char *filter;
	size_t pos = 0;

	while ((filter = args_next(args, "filter", &pos)))
		if (volume_passes(v, filter) == 0)
			return false;
	return true;
}

static int volume_check_filters(const struct args *args, struct error *err)
{
	const Nacre__V1__NodeVolume none = NACRE__V1__NODE_VOLUME__INIT;
	const char *filter;
	size_t pos = 0;

	while ((filter = args_next(args, "filter", &pos)))
		if (volume_passes(&none, filter) < 0)
			return error_refuse(err, ERROR_INVALID,
					    "--filter: \"%s\" is none of name=PART, "
					    "label=NAME[=VALUE], dangling=true and anonymous=true",
					    filter);
	return 0;
}

static char *volume_workloads(const Nacre__V1__NodeVolume *v)
{
	if (v->n_workloads > 1)
		return xformat("%s and %zu more", v->workloads[0], v->n_workloads - 1);
	return xstrdup(v->n_workloads == 1 ? v->workloads[0] : "");
}

static void volume_table(const struct cli *cli, const struct args *args,
			 const Nacre__V1__ListVolumesResponse *list)
{
	static const char *const heads[] = { "NAME", "CREATED", "KIND", "WORKLOADS" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_volumes; i++) {
		const Nacre__V1__NodeVolume *v = list->volumes[i];
		_cleanup_str_ char *users = volume_workloads(v);
		char age[TEXT_SIZE];

		if (!volume_is_shown(v, args))
			continue;
		text_ago(age, clock_real(), v->created_at);
		table_add(&t, v->name);
		table_add(&t, age);
		table_add(&t, v->anonymous ? "anonymous" : "named");
		table_add(&t, users);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_volume_ls(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListVolumesRequest request = NACRE__V1__LIST_VOLUMES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListVolumesResponse *list = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	if (volume_check_filters(args, &err) < 0)
		return cli_fail(&err);
	list = client_ask_once(&cli->daemon, METHOD("ListVolumes"), &request.base,
			       &nacre__v1__list_volumes_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	if (!cli->json && !args_flag(args, "quiet")) {
		volume_table(cli, args, list);
		return 0;
	}
	if (cli->json)
		json_put_array(&j, NULL);
	for (size_t i = 0; i < list->n_volumes; i++) {
		if (!volume_is_shown(list->volumes[i], args))
			continue;
		if (cli->json)
			volume_json(&j, list->volumes[i]);
		else
			(void)puts(list->volumes[i]->name);
	}
	if (cli->json)
		json_put_end(&j);
	return 0;
}

/* ---- volume inspect, rm, prune ---- */

int cmd_volume_inspect(const struct cli *cli, const struct args *args)
{
	struct json j = JSON_INIT(stdout);
	int status = 0;

	json_put_array(&j, NULL);
	for (size_t i = 0; i < args->n_operands; i++) {
		Nacre__V1__InspectVolumeRequest request = NACRE__V1__INSPECT_VOLUME_REQUEST__INIT;
		_cleanup_message_ Nacre__V1__InspectVolumeResponse *answer = NULL;
		struct error err = ERROR_INIT;

		request.name = args->operands[i];
		answer = client_ask_once(&cli->daemon, METHOD("InspectVolume"), &request.base,
					 &nacre__v1__inspect_volume_response__descriptor, 0, &err);
		if (answer && answer->volume)
			volume_json(&j, answer->volume);
		else
			status = answer ? cli_complain("the daemon's answer has no volume")
					: cli_fail(&err);
	}
	json_put_end(&j);
	return status;
}

int cmd_volume_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveVolumeRequest request = NACRE__V1__REMOVE_VOLUME_REQUEST__INIT;

	return each_operand(
		cli, args,
		&(struct each_call){ .method = METHOD("RemoveVolume"),
				     .request = &request.base,
				     .slot = &request.name,
				     .answer = &nacre__v1__remove_volume_response__descriptor,
				     .missing_is_fine = args_flag(args, "force") });
}

int cmd_volume_prune(const struct cli *cli, const struct args *args)
{
	Nacre__V1__PruneVolumesRequest request = NACRE__V1__PRUNE_VOLUMES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__PruneVolumesResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	request.all = args_flag(args, "all");
	answer = client_ask_once(&cli->daemon, METHOD("PruneVolumes"), &request.base,
				 &nacre__v1__prune_volumes_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (cli->json) {
		json_put_object(&j, NULL);
		view_words(&j, "removed", answer->removed, answer->n_removed);
		json_put_end(&j);
		return 0;
	}
	for (size_t i = 0; i < answer->n_removed; i++)
		(void)puts(answer->removed[i]);
	return 0;
}
