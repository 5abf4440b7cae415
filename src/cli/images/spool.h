/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SPOOL_H
#define NACRE_CLI_SPOOL_H

#include "base/log/error.h"

/*
 * Standard input as a file, for a daemon that wants a path: a copy in $TMPDIR (else /var/tmp) that
 * has no name there, so that nothing is left of it however this program ends.
 */
struct spool {
	int fd;
	char path[64]; /* by which another process of this machine opens it, while `fd` is open */
};
#define SPOOL_INIT                                                                                 \
	{                                                                                          \
		.fd = -1                                                                           \
	}

int spool_stdin(struct spool *s, struct error *err);
void spool_done(struct spool *s);

#endif
