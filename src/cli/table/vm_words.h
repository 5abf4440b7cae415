/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_VM_WORDS_H
#define NACRE_CLI_VM_WORDS_H

#include "base/text/args.h"

/* The texts and options of `vm run` for the table of commands. */
extern const struct arg_option vm_run_options[];
extern const char vm_run_help[];

#endif
