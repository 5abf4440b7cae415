/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/usage.h"

#include <stdio.h>

#define DAEMON_EXIT_USAGE 2

int daemon_usage(const char *problem, const char *word)
{
	if (problem)
		(void)fprintf(stderr, "nacre daemon: %s%s\n", problem, word ? word : "");
	(void)fprintf(
		problem ? stderr : stdout,
		"Usage: nacre daemon [--config FILE] [--root DIR] [--run DIR] [--socket PATH]\n"
		"                    [--replace]\n"
		"\n"
		"Serves this node until it gets SIGTERM; workloads go on without it, and the next\n"
		"daemon takes them up again.\n"
		"\n"
		"  --config FILE   the configuration (default: /etc/nacre/config.yaml, if it is "
		"there)\n"
		"  --root DIR      images and logs (default: /var/lib/nacre)\n"
		"  --run DIR       what lasts until a reboot (default: /run/nacre)\n"
		"  --socket PATH   where to serve (default: RUN/nacre.sock)\n"
		"  --replace       asks the daemon that serves here to end, lets it finish its "
		"calls, and\n"
		"                  takes over; keepers of another build go on as this one\n"
		"  --list-failpoints  the places where a test build can be made to fail\n");
	return problem ? DAEMON_EXIT_USAGE : 0;
}
