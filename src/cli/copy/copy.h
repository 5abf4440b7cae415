/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_COPY_H
#define NACRE_CLI_COPY_H

#include <stdbool.h>
#include <stdint.h>

#include "cli/copy/copy_place.h"
#include "cli/output/progress.h"
#include "cli/remote/client.h"

/*
 * One `nacre cp`. A tree travels as entries and data, and is read and written on this side by what
 * the daemon uses on its own (base/file/tree.h): what a container sends cannot leave the directory
 * that the user named. A tar archive is written here, and read by a process without privilege
 * (cli/copy/untar.h).
 */

struct copy_in;

struct copy {
	struct client_call call;
	struct progress progress;
	struct client *client; /* not owned */
	bool archive, follow, quiet;
	bool one_mount;     /* without what is mounted there */
	char *volume;       /* all of it, in the place of a container; NULL: none. Not owned */
	int archive_fd;     /* where a tar archive goes; not owned */
	struct copy_in *in; /* of copy_from(), for as long as it runs */
	uint64_t n_entries, n_bytes, n_left_out;
	char *file; /* that is in hand */
	struct error err;
};

/* Both return 0, or a negative errno with c->err. */
int copy_from(struct copy *c, const struct copy_place *from, const struct copy_place *to);
int copy_to(struct copy *c, const struct copy_place *from, const struct copy_place *to);

void copy_warn(struct copy *c, const char *path, const char *why);
void copy_tell(struct copy *c);
void copy_set_file(struct copy *c, const char *path);

#endif
