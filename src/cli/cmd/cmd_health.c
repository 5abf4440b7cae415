/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/health_view.h"
#include "cli/options/spec.h"
#include "cli/output/output.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

int cmd_healthcheck_run(const struct cli *cli, const struct args *args)
{
	Nacre__V1__HealthCheckRequest request = NACRE__V1__HEALTH_CHECK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__HealthCheckResponse *answer = NULL;
	struct json j = JSON_INIT(stdout);
	const Nacre__V1__HealthResult *r;
	struct error err = ERROR_INIT;

	request.target = args->operands[0];
	spec_set(&request.container, args_value(args, "container"));
	answer = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/HealthCheck",
				 &request.base, &nacre__v1__health_check_response__descriptor, 0,
				 &err);
	if (!answer)
		return cli_fail(&err);
	r = answer->result;
	if (!r)
		return cli_complain("the daemon's answer is empty");
	if (cli->json) {
		json_put_object(&j, NULL);
		json_put_string(&j, "status", answer->status);
		health_view_result(&j, r);
		json_put_end(&j);
	} else if (r->output.len > 0) {
		(void)output_write(STDOUT_FILENO, r->output.data, r->output.len);
		if (r->output.data[r->output.len - 1] != '\n')
			(void)output_write(STDOUT_FILENO, "\n", 1);
	}
	return r->exit_code == 0 ? 0 : 1;
}
