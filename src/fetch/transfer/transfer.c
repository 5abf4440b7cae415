/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-transfer: the part of nacre that speaks to registries. The core starts it in new
 * namespaces, but in the machine's network, with two descriptors and one of these words:
 *
 *   nacre-transfer pull     3: socket, 5: staging directory
 *   nacre-transfer push     the same, with a directory that stays as it is
 *   nacre-transfer copy     3: socket, 5: staging directory
 *   nacre-transfer list     the same, with a directory that stays as it is
 *   nacre-transfer verify   likewise
 *   nacre-transfer login    likewise
 */

#include "base/macros.h"
#include "fetch/job/job.h"
#include "fetch/job/sandbox.h"
#include "fetch/transfer/copy.h"
#include "fetch/transfer/key.h"
#include "fetch/transfer/list.h"
#include "fetch/transfer/network.h"
#include "fetch/transfer/pull.h"
#include "fetch/transfer/push.h"
#include "fetch/transfer/verify.h"

/* What the machine is needed for comes first, then the sandbox closes, then strangers are heard. */
static int transfer_run(const struct fetchmsg *request, int to_fd, struct error *err)
{
	static struct network n, to;
	const enum fetchmsg_type type = request->type;
	int r;

	r = key_prepare();
	if (r < 0)
		return error_set(err, r, "start libcrypto");
	r = network_open(&n, JOB_SOCK_FD, request, err);
	if (r == 0 && type == FETCHMSG_COPY)
		r = network_open_destination(&to, &n, err);
	if (r == 0)
		r = sandbox_enter(SANDBOX_NETWORK, to_fd, -1, FETCH_BYTES_MAX, err);
	if (r == 0 && type == FETCHMSG_PULL)
		r = pull_run(&n, to_fd, err);
	else if (r == 0 && type == FETCHMSG_PUSH)
		r = push_run(&n, err);
	else if (r == 0 && type == FETCHMSG_COPY)
		r = copy_run(&n, &to, to_fd, err);
	else if (r == 0 && type == FETCHMSG_VERIFY)
		r = verify_run(&n, to_fd, err);
	else if (r == 0 && type == FETCHMSG_LOGIN)
		r = list_login(&n, err);
	else if (r == 0)
		r = list_run(&n, err);
	network_close(&to);
	network_close(&n);
	return r;
}

static const struct job_command commands[] = {
	{ "pull", FETCHMSG_PULL, transfer_run, false },
	{ "push", FETCHMSG_PUSH, transfer_run, false },
	{ "copy", FETCHMSG_COPY, transfer_run, false },
	{ "list", FETCHMSG_LIST, transfer_run, false },
	{ "verify", FETCHMSG_VERIFY, transfer_run, false },
	{ "login", FETCHMSG_LOGIN, transfer_run, false },
};

int main(int argc, char **argv)
{
	return job_main(&(struct job_program){ .name = "nacre-transfer",
					       .commands = commands,
					       .n_commands = ARRAY_SIZE(commands) },
			argc, argv);
}
