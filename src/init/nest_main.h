/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_NEST_MAIN_H
#define NACRE_INIT_NEST_MAIN_H

/* "nacre nest TITLE TOOLS MEMORY CPUS": what keeper/nested/nest.h starts in a guest. Returns the
 * exit status. */
int nest_main(int argc, char **argv);

#endif
