/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_STOP_SIGNAL_H
#define NACRE_POD_STOP_SIGNAL_H

#include <stdbool.h>

/* The signal that an image wants to be stopped with: "SIGQUIT", "QUIT", "3", "SIGRTMIN+3". SIGTERM
 * for "" and for whatever is none (OCI image specification, StopSignal). */
int stop_signal_parse(const char *word);
/* Whether that is what the word says. */
bool stop_signal_is_known(const char *word);

#endif
