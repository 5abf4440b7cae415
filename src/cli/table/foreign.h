/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_FOREIGN_H
#define NACRE_CLI_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>

/* The commands that users of docker, podman and kubectl type, and what does the same here. */

/* The command of ours that a first word of theirs stands for, operands and options alike ("image
 * rm" for "rmi"); or NULL. */
const char *foreign_synonym(const char *word);
/* The advice for the first word of a command line ("use `nacre image export`"); or NULL. */
const char *foreign_command(const char *word);
/* The option of ours that does what `name` (up to '=') does elsewhere, and whether with the same
 * value; or NULL. */
const char *foreign_option(const char *name, bool *ret_is_same);
/* The i-th word that foreign_command() knows; NULL behind the last. */
const char *foreign_word(size_t i);

#endif
