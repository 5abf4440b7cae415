/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_USAGE_H
#define NACRE_DAEMON_USAGE_H

/* How `nacre daemon` is called, behind what was wrong (NULL: it was asked for) with a word (or
 * NULL). The exit status. */
int daemon_usage(const char *problem, const char *word);

#endif
