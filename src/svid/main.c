/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-svid UID GID: gives workloads their identities (svid/serve.h). It is started by nacre, with
 * a socket to it at SERVE_FD_CONTROL.
 */

#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/process/title.h"
#include "base/text/parse.h"
#include "identity/key.h"
#include "svid/serve.h"

static int main_run(int argc, char **argv, struct error *err)
{
	uint32_t uid, gid;
	int r;

	if (argc != 3 || parse_u32(argv[1], &uid) < 0 || parse_u32(argv[2], &gid) < 0)
		return error_refuse(err, ERROR_INVALID, "it is started by nacre");
	title_set("nacre: svid");
	r = identity_begin(err);
	return r < 0 ? r : serve_run(uid, gid, err);
}

int main(int argc, char **argv)
{
	const struct sigaction ignore = { .sa_handler = SIG_IGN };
	struct error err = ERROR_INIT;

	if (fd_open_standard("nacre-svid") < 0)
		return EXIT_FAILURE;
	title_init(argc, argv);
	(void)sigaction(SIGPIPE, &ignore, NULL);
	if (main_run(argc, argv, &err) == 0)
		return EXIT_SUCCESS;
	(void)fprintf(stderr, "nacre-svid: %s\n", error_text(&err));
	return EXIT_FAILURE;
}
