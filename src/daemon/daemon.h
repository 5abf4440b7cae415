/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_DAEMON_H
#define NACRE_DAEMON_DAEMON_H

/* `nacre daemon [--config FILE] [--root DIR] [--run DIR] [--socket PATH]`. Returns the exit status.
 */
int daemon_main(int argc, char **argv);

#endif
