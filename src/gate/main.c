/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-gate: the part of nacre that speaks TLS, holds keys, and reads what guests say. It is
 * started by nacre, in one of four roles:
 *
 *   nacre-gate ca UID GID            the node's certificate authority (gate/ca_role.h)
 *   nacre-gate node UID GID TITLE    the node's end of a virtual machine (gate/node.h)
 *   nacre-gate relay UID GID TITLE   console and agent of somebody's own system (gate/relay.h)
 *   nacre-gate guest                 the other end, within it (gate/guest.h)
 *
 * Each says at its head which descriptors it finds open, and gives up what it does not need
 * (gate/drop.h) before it reads the first byte of anybody else than nacre.
 */

#include <errno.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/parse.h"
#include "base/str.h"
#include "base/title.h"
#include "gate/ca_role.h"
#include "gate/guest.h"
#include "gate/node.h"
#include "gate/relay.h"
#include "identity/key.h"

static int run_guest(uid_t uid, gid_t gid, struct error *err)
{
	(void)uid;
	(void)gid;
	return guest_run(err);
}

static const struct {
	const char *name;
	int n_args;
	int (*run)(uid_t uid, gid_t gid, struct error *err);
} roles[] = {
	{ "ca", 4, ca_role_run },
	{ "node", 5, node_run },
	{ "relay", 5, relay_run },
	{ "guest", 2, run_guest },
};

static int main_run(int argc, char **argv, struct error *err)
{
	char title[128] = "nacre: gate";
	uint32_t ids[2] = { 0 };
	size_t i = 0;
	int r;

	while (i < ARRAY_SIZE(roles) && (argc < 2 || !str_eq(roles[i].name, argv[1])))
		i++;
	if (i == ARRAY_SIZE(roles) || roles[i].n_args != argc)
		return error_refuse(err, ERROR_INVALID, "it is started by nacre");
	if (argc > 3 && (parse_u32(argv[2], &ids[0]) < 0 || parse_u32(argv[3], &ids[1]) < 0))
		return error_refuse(err, ERROR_INVALID, "UID and GID are numbers");
	(void)str_printf(title, sizeof(title), "nacre: gate %s", argc > 4 ? argv[4] : argv[1]);
	title_set(title);
	r = identity_begin(err);
	return r == 0 ? roles[i].run(ids[0], ids[1], err) : r;
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct error err = ERROR_INIT;

	title_init(argc, argv);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (main_run(argc, argv, &err) == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "nacre-gate: %s\n", error_text(&err));
	return EXIT_FAILURE;
}
