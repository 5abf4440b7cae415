/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>

#include "cli/client.h"
#include "cli/command.h"
#include "cli/each.h"
#include "cli/handlers.h"
#include "cli/spec.h"
#include "cli/view.h"

#define STOP_GRACE_MS 10000

int cmd_wait(const struct cli *cli, const struct args *args)
{
	Nacre__V1__WaitRequest request = NACRE__V1__WAIT_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__WaitResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	request.target = args->operands[0];
	spec_set(&request.container, args_value(args, "container"));
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Wait", &request.base,
				 &nacre__v1__wait_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (!cli->json) {
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

int cmd_stop(const struct cli *cli, const struct args *args)
{
	Nacre__V1__StopRequest request = NACRE__V1__STOP_REQUEST__INIT;
	struct error err = ERROR_INIT;

	if (spec_milliseconds(args, "time", STOP_GRACE_MS, &request.grace_ms, &err) < 0)
		return cli_fail(&err);
	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.WorkloadService/Stop", &request.base,
						 &request.target,
						 &nacre__v1__stop_response__descriptor, true });
}

int cmd_rm(const struct cli *cli, const struct args *args)
{
	Nacre__V1__RemoveRequest request = NACRE__V1__REMOVE_REQUEST__INIT;

	request.force = args_flag(args, "force");
	return each_operand(cli, args,
			    &(struct each_call){ "/nacre.v1.WorkloadService/Remove", &request.base,
						 &request.target,
						 &nacre__v1__remove_response__descriptor,
						 request.force });
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
