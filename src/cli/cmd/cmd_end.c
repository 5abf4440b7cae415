/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/signal_name.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/each.h"
#include "cli/remote/listing.h"
#include "cli/table/command.h"

#define STOP_GRACE_MS 10000

int cmd_wait(const struct cli *cli, const struct args *args)
{
	Nacre__V1__WaitRequest request = NACRE__V1__WAIT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__WaitResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	request.target = args->operands[0];
	spec_set(&request.container, args_value(args, "container"));
	spec_set(&request.condition, args_value(args, "condition"));
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Wait", &request.base,
				 &nacre__v1__wait_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (!cli->json) {
		if (str_empty(request.condition) || str_eq(request.condition, "stopped"))
			(void)printf("%" PRId32 "\n", answer->exit_code);
		return 0;
	}
	json_put_object(&j, NULL);
	json_put_integer(&j, "exit_code", answer->exit_code);
	if (answer->workload)
		view_workload(&j, "workload", answer->workload);
	json_put_end(&j);
	return 0;
}

/* ---- the operands, or all that there are ---- */

static bool end_is_idle(const char *state)
{
	return view_has_ended(state) || str_eq(state, "created");
}

/* The workloads that --all selects. */
enum end_all { END_ALL_RUNNING, END_ALL_ENDED, END_ALL };

static bool end_wants(const Nacre__V1__Workload *w, enum end_all all)
{
	/* Instances stay: only workloads are meant, those in instances too. */
	return !str_eq(w->kind, "instance") &&
	       (all == END_ALL || end_is_idle(w->state) == (all == END_ALL_ENDED));
}

static Nacre__V1__ListResponse *end_list(const struct cli *cli, struct error *err)
{
	Nacre__V1__ListRequest request = NACRE__V1__LIST_REQUEST__INIT;
	_cleanup_client_ struct client *client = client_open(&cli->daemon, err);

	request.all = true;
	return client ? listing_ask(client, &request, err) : NULL;
}

static int end_all_of_them(const struct cli *cli, const struct args *args, enum end_all all,
			   const struct each_call *call)
{
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;
	struct error err = ERROR_INIT;
	struct args those = *args;
	int status = 0;

	if (args->n_operands > 0)
		return cli_complain("either name the targets, or give --all");
	list = end_list(cli, &err);
	if (!list)
		return cli_fail(&err);
	those.operands = xrealloc(NULL, list->n_workloads + 1, sizeof(*those.operands));
	for (size_t i = 0; i < list->n_workloads; i++)
		if (end_wants(list->workloads[i], all))
			those.operands[those.n_operands++] = list->workloads[i]->id;
	if (those.n_operands)
		status = each_operand(cli, &those, call);
	free(those.operands);
	return status;
}

static int end_each(const struct cli *cli, const struct args *args, enum end_all all,
		    const struct each_call *call)
{
	if (args_flag(args, "all"))
		return end_all_of_them(cli, args, all, call);
	if (args->n_operands == 0)
		return cli_complain("name a TARGET, or give --all");
	return each_operand(cli, args, call);
}

/* ---- the commands ---- */

int cmd_stop(const struct cli *cli, const struct args *args)
{
	Nacre__V1__StopRequest request = NACRE__V1__STOP_REQUEST__INIT;
	struct error err = ERROR_INIT;

	if (spec_milliseconds(args, "time", STOP_GRACE_MS, &request.grace_ms, &err) < 0)
		return cli_fail(&err);
	spec_set(&request.container, args_value(args, "container"));
	return end_each(cli, args, END_ALL_RUNNING,
			&(struct each_call){ "/nacre.v1.WorkloadService/Stop", &request.base,
					     &request.target, &nacre__v1__stop_response__descriptor,
					     true });
}

int cmd_restart(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RestartRequest request = NACRE__V1__RESTART_REQUEST__INIT;
	struct error err = ERROR_INIT;

	if (spec_milliseconds(args, "time", STOP_GRACE_MS, &request.grace_ms, &err) < 0)
		return cli_fail(&err);
	spec_set(&request.container, args_value(args, "container"));
	return end_each(cli, args, END_ALL_RUNNING,
			&(struct each_call){ "/nacre.v1.WorkloadService/Restart", &request.base,
					     &request.target,
					     &nacre__v1__restart_response__descriptor, true });
}

/* All of it, or of one container, is killed as a stop without patience does it. */
static int end_kill_whole(const struct cli *cli, const struct args *args)
{
	Nacre__V1__StopRequest request = NACRE__V1__STOP_REQUEST__INIT;

	spec_set(&request.container, args_value(args, "container"));
	return end_each(cli, args, END_ALL_RUNNING,
			&(struct each_call){ "/nacre.v1.WorkloadService/Stop", &request.base,
					     &request.target, &nacre__v1__stop_response__descriptor,
					     true });
}

int cmd_kill(const struct cli *cli, const struct args *args)
{
	Nacre__V1__SignalRequest request = NACRE__V1__SIGNAL_REQUEST__INIT;
	const char *word = args_value(args, "signal");
	int number = word ? signal_number(word) : SIGKILL;

	if (number < 0)
		return cli_complain("--signal is a name or number such as HUP, SIGUSR1 or 9, "
				    "not \"%s\"",
				    word);
	if (number == SIGKILL)
		return end_kill_whole(cli, args);
	request.signal = (uint32_t)number;
	request.probe = number == 0;
	spec_set(&request.container, args_value(args, "container"));
	return end_each(cli, args, END_ALL_RUNNING,
			&(struct each_call){ "/nacre.v1.WorkloadService/Signal", &request.base,
					     &request.target,
					     &nacre__v1__signal_response__descriptor, false });
}

int cmd_pause(const struct cli *cli, const struct args *args)
{
	Nacre__V1__PauseRequest request = NACRE__V1__PAUSE_REQUEST__INIT;

	return end_each(cli, args, END_ALL_RUNNING,
			&(struct each_call){ "/nacre.v1.WorkloadService/Pause", &request.base,
					     &request.target,
					     &nacre__v1__pause_response__descriptor, false });
}

int cmd_unpause(const struct cli *cli, const struct args *args)
{
	Nacre__V1__UnpauseRequest request = NACRE__V1__UNPAUSE_REQUEST__INIT;

	return end_each(cli, args, END_ALL_RUNNING,
			&(struct each_call){ "/nacre.v1.WorkloadService/Unpause", &request.base,
					     &request.target,
					     &nacre__v1__unpause_response__descriptor, false });
}

int cmd_rename(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RenameRequest request = NACRE__V1__RENAME_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__RenameResponse *answer = NULL;
	struct error err = ERROR_INIT;

	request.target = args->operands[0];
	request.name = args->operands[1];
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Rename", &request.base,
				 &nacre__v1__rename_response__descriptor, 0, &err);
	return answer ? 0 : cli_fail(&err);
}

int cmd_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveRequest request = NACRE__V1__REMOVE_REQUEST__INIT;

	request.force = args_flag(args, "force");
	request.volumes = args_flag(args, "volumes");
	return end_each(cli, args, request.force ? END_ALL : END_ALL_ENDED,
			&(struct each_call){
				"/nacre.v1.WorkloadService/Remove", &request.base, &request.target,
				&nacre__v1__remove_response__descriptor, request.force });
}

int cmd_update(const struct cli *cli, const struct args *args)
{
	Nacre__V1__UpdateRequest request = NACRE__V1__UPDATE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__UpdateResponse *answer = NULL;
	Aurae__Runtime__V0__Resources resources;
	struct error err = ERROR_INIT;

	request.target = args->operands[0];
	request.whole = args_flag(args, "whole");
	spec_set(&request.container, args_value(args, "container"));
	if (walls_limits(&request.resources, &resources, args, &err) < 0)
		return cli_fail(&err);
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Update", &request.base,
				 &nacre__v1__update_response__descriptor, 0, &err);
	return answer ? 0 : cli_fail(&err);
}
