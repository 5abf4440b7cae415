/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_TYPED_H
#define NACRE_CLI_TYPED_H

#include "base/log/error.h"
#include "base/text/args.h"

/* Names for fields of requests in messages for people: the options by which they were typed. */

/* The command line that runs, until it is noted anew; NULL: none. */
void typed_note(const struct args *args);

/* Where the error blames a field that an option of the noted command line has set, the option
 * stands in its place: "--memory: …" for "containers[0].resources.memory: …". */
void typed_rename(struct error *err);

#endif
