/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATE_CA_ROLE_H
#define NACRE_GATE_CA_ROLE_H

#include <sys/types.h>

#include "base/log/error.h"

/*
 * The process that holds the key of the node's certificate authority: asked over the socket at
 * descriptor 3, it reads, makes or changes the file in the directory at descriptor 4
 * (identity/ca.h), gives up all privilege, and signs. It ends with the connection.
 */

enum ca_fd {
	CA_FD_SOCKET = 3,
	CA_FD_DIR,
	/* Of an authority that is given: open for reading. */
	CA_FD_KEY,
	CA_FD_CERT
};

int ca_role_run(uid_t uid, gid_t gid, struct error *err);

#endif
