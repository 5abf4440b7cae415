/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_FOREIGN_H
#define NACRE_CLI_FOREIGN_H

#include <stddef.h>

/* The commands that users of docker, podman and kubectl type, and what does the same here. */

/* What to say to the first word of a command line ("use `nacre image rm`"); or NULL. */
const char *foreign_command(const char *word);
/* The option of ours that does what `name` (up to '=') does elsewhere; or NULL. */
const char *foreign_option(const char *name);
/* The i-th word that foreign_command() knows; NULL behind the last. */
const char *foreign_word(size_t i);

#endif
