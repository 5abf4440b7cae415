/* SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/process/title.h"
#include "base/text/str.h"
#include "cli/copy/untar.h"
#include "cli/table/cli.h"
#include "daemon/daemon.h"
#include "init/guest_main.h"
#include "init/keeper_main.h"
#include "init/nest_main.h"
#include "oci/cmd/main.h"

/*
 * One program: the node's daemon, the keeper of a layer (also as its pid 1), pid 1
 * of a virtual machine, what keeps a machine in a machine, the command line and the reader of its
 * archives, and a runtime for OCI
 * bundles, which is dispatched before anything else.
 */
int main(int argc, char **argv)
{
	static const struct cli_extra extras[] = { { "daemon", daemon_main } };

	/* Pid 1 of a machine may have no /dev yet (init/guest_root.h, init/system_mounts.h). */
	if (getpid() != 1 && fd_open_standard("nacre") < 0)
		return EXIT_FAILURE;
	if (oci_is_name(argv[0]))
		return oci_main(argc - 1, argv + 1, argv);
	if (argc > 1 && str_eq(argv[1], "oci"))
		return oci_main(argc - 2, argv + 2, argv);
	title_init(argc, argv);
	if (guest_is_init(argv[0]))
		guest_main();
	if (argc > 1 && str_eq(argv[1], "keeper"))
		return keeper_main(argc - 1, argv + 1);
	if (argc > 1 && str_eq(argv[1], "nest"))
		return nest_main(argc - 1, argv + 1);
	if (argc > 1 && str_eq(argv[1], "untar"))
		return untar_main();
	return cli_main(argc, argv, extras, ARRAY_SIZE(extras));
}
