/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-gate: the part of nacre that speaks TLS, holds keys, and reads what guests say. It is
 * started by nacre, in one of eight roles:
 *
 *   nacre-gate ca UID GID                    the node's certificate authority (gate/ca_role.h)
 *   nacre-gate node UID GID TITLE PATIENCE   the node's end of a virtual machine (gate/node.h)
 *   nacre-gate far UID GID TITLE PATIENCE    likewise, of one in a cloud
 *   nacre-gate front UID GID                 where users from elsewhere meet the node
 *                                            (gate/front.h)
 *   nacre-gate metrics UID GID               where Prometheus scrapes it (gate/metrics.h)
 *   nacre-gate metadata UID GID              what pods ask for who they are
 *                                            (gate/metadata.h)
 *   nacre-gate relay UID GID TITLE           console and agent of somebody's own system
 *                                            (gate/relay.h)
 *   nacre-gate guest PATIENCE LEASE          the other end, within it (gate/guest.h)
 *
 * PATIENCE is in seconds, for a handshake; LEASE likewise, for a machine in a cloud
 * (wire/message/guestgate.h).
 *
 * Each says at its head which descriptors it finds open, and gives up what it does not need
 * (gate/drop.h) before it reads the first byte of anybody else than nacre.
 */

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/process/thread.h"
#include "base/process/title.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "gate/ca_role.h"
#include "gate/front.h"
#include "gate/guest.h"
#include "gate/metadata.h"
#include "gate/metrics.h"
#include "gate/node.h"
#include "gate/relay.h"
#include "identity/key.h"

#define PATIENCE_MAX 3600
#define LEASE_MAX 604800

struct role_args {
	uid_t uid;
	gid_t gid;
	nsec_t patience, lease;
};

static int run_ca(const struct role_args *a, struct error *err)
{
	return ca_role_run(a->uid, a->gid, err);
}

static int run_node(const struct role_args *a, struct error *err)
{
	return node_run(a->uid, a->gid, a->patience, false, err);
}

static int run_far(const struct role_args *a, struct error *err)
{
	return node_run(a->uid, a->gid, a->patience, true, err);
}

static int run_front(const struct role_args *a, struct error *err)
{
	return front_run(a->uid, a->gid, err);
}

static int run_metrics(const struct role_args *a, struct error *err)
{
	return metrics_run(a->uid, a->gid, err);
}

static int run_metadata(const struct role_args *a, struct error *err)
{
	return metadata_run(a->uid, a->gid, err);
}

static int run_relay(const struct role_args *a, struct error *err)
{
	return relay_run(a->uid, a->gid, err);
}

static int run_guest(const struct role_args *a, struct error *err)
{
	return guest_run(a->patience, a->lease, err);
}

/* ids, title, patience, lease: which arguments these are; 0: it has none. */
static const struct {
	const char *name;
	int n_args, ids, title, patience, lease;
	int (*run)(const struct role_args *args, struct error *err);
} roles[] = {
	{ "ca", .n_args = 4, .ids = 2, .run = run_ca },
	{ "node", .n_args = 6, .ids = 2, .title = 4, .patience = 5, .run = run_node },
	{ "far", .n_args = 6, .ids = 2, .title = 4, .patience = 5, .run = run_far },
	{ "front", .n_args = 4, .ids = 2, .run = run_front },
	{ "metrics", .n_args = 4, .ids = 2, .run = run_metrics },
	{ "metadata", .n_args = 4, .ids = 2, .run = run_metadata },
	{ "relay", .n_args = 5, .ids = 2, .title = 4, .run = run_relay },
	{ "guest", .n_args = 4, .patience = 2, .lease = 3, .run = run_guest },
};

static int main_run(int argc, char **argv, struct error *err)
{
	char title[128] = "nacre: gate";
	uint64_t seconds = 0, lease = 0;
	uint32_t ids[2] = { 0 };
	size_t i = 0;
	int r;

	while (i < ARRAY_SIZE(roles) && (argc < 2 || !str_eq(roles[i].name, argv[1])))
		i++;
	if (i == ARRAY_SIZE(roles) || roles[i].n_args != argc)
		return error_refuse(err, ERROR_INVALID, "it is started by nacre");
	if (roles[i].ids && (parse_u32(argv[roles[i].ids], &ids[0]) < 0 ||
			     parse_u32(argv[roles[i].ids + 1], &ids[1]) < 0))
		return error_refuse(err, ERROR_INVALID, "UID and GID are numbers");
	if (roles[i].patience && parse_u64(argv[roles[i].patience], 1, PATIENCE_MAX, &seconds) < 0)
		return error_refuse(err, ERROR_INVALID, "PATIENCE is a number of seconds");
	if (roles[i].lease && parse_u64(argv[roles[i].lease], 1, LEASE_MAX, &lease) < 0)
		return error_refuse(err, ERROR_INVALID, "LEASE is a number of seconds");
	(void)str_printf(title, sizeof(title), "nacre: gate %s",
			 argv[roles[i].title ? roles[i].title : 1]);
	title_set(title);
	(void)thread_be_prompt();
	r = identity_begin(err);
	return r < 0 ? r
		     : roles[i].run(&(struct role_args){ ids[0], ids[1],
							 (nsec_t)seconds * NSEC_PER_SEC,
							 (nsec_t)lease * NSEC_PER_SEC },
				    err);
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct error err = ERROR_INIT;

	if (fd_open_standard("nacre-gate") < 0)
		return EXIT_FAILURE;
	title_init(argc, argv);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (main_run(argc, argv, &err) == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "nacre-gate: %s\n", error_text(&err));
	return EXIT_FAILURE;
}
