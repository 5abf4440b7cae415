/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/usage.h"

#include <getopt.h>
#include <stdio.h>

#include "base/fault/failpoint.h"

#define DAEMON_EXIT_USAGE 2

/* Behind what was wrong (NULL: it was asked for) with a word (or NULL). The exit status. */
static int daemon_usage(const char *problem, const char *word)
{
	if (problem)
		(void)fprintf(stderr, "nacre daemon: %s%s\n", problem, word ? word : "");
	(void)fprintf(
		problem ? stderr : stdout,
		"Usage: nacre daemon [--config FILE] [--root DIR] [--run DIR] [--socket PATH]\n"
		"                    [--replace]\n"
		"\n"
		"Serves this node until it gets SIGTERM; workloads go on without it, and the next\n"
		"daemon takes them up again. SIGPWR stops them first, the last one first. As pid 1 "
		"it\n"
		"mounts what is missing and brings up the network (doc/appliance.md).\n"
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

int daemon_options_parse(struct daemon_options *o, int argc, char **argv)
{
	static const struct option longs[] = {
		{ "config", required_argument, NULL, 'c' },
		{ "root", required_argument, NULL, 'r' },
		{ "run", required_argument, NULL, 'u' },
		{ "socket", required_argument, NULL, 's' },
		{ "replace", no_argument, NULL, 'R' },
		{ "help", no_argument, NULL, 'h' },
		{ "list-failpoints", no_argument, NULL, 'f' },
		{ NULL, 0, NULL, 0 },
	};

	optind = 1;
	opterr = 0;
	for (;;) {
		switch (getopt_long(argc, argv, "+h", longs, NULL)) {
		case -1:
			return optind < argc ? daemon_usage("unexpected word: ", argv[optind]) : -1;
		case 'c':
			o->config = optarg;
			o->config_given = true;
			break;
		case 'r':
			o->root = optarg;
			break;
		case 'u':
			o->run = optarg;
			break;
		case 's':
			o->socket = optarg;
			break;
		case 'R':
			o->replace = true;
			break;
		case 'h':
			return daemon_usage(NULL, NULL);
		case 'f':
			failpoint_list(stdout);
			return 0;
		default:
			return daemon_usage("unknown, or without its value: ", argv[optind - 1]);
		}
	}
}
