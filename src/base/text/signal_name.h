/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_SIGNAL_NAME_H
#define NACRE_BASE_SIGNAL_NAME_H

/*
 * Signals by name, in the forms of kill(1): "TERM", "SIGTERM", "15", "RTMIN", "RTMIN+3", "RTMAX-1",
 * in any case. 0 to 64; 0 is no signal, and asks whether a process is there (kill(2)).
 *
 * RTMIN is that of libc, 34: it keeps two for itself.
 */
#define SIGNAL_MAX_NUMBER 64

/* The number; -EINVAL for what is no signal. */
int signal_number(const char *word);

#endif
