/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_ID_FILE_H
#define NACRE_CLI_ID_FILE_H

#include "base/log/error.h"
#include "base/text/args.h"

/* Steps before and after a start: --replace, and the file for an id. */

struct client;

/* The file that the option names, which must not be there yet: before anything is started. A
 * descriptor; -1 where the option is not given. ERROR_EXISTS. */
int id_file_open(const struct args *args, const char *option, int *ret_fd, struct error *err);
/* Writes the id and closes, where there is a file. A pod that nobody could find by it is told, and
 * stays: a negative errno. */
int id_file_write(int fd, const struct args *args, const char *option, const char *id);
/* Nothing was started: the file goes again. */
void id_file_drop(const struct args *args, const char *option);

/* --replace: whatever has the name goes, with all that is in it. 0, or an exit status. */
int replace_named(struct client *client, const struct args *args);
/* By force, with its volumes; one that is not there is gone already. Returns `status`, or
 * CLI_FAILED with a complaint. */
int remove_by_force(struct client *client, const char *target, int status);

#endif
