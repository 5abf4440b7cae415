/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INIT_KEEPER_MAIN_H
#define NACRE_INIT_KEEPER_MAIN_H

/* `nacre keeper …`: what instance_spawn() executes. argv[0] is the word "keeper"; main()
 * has called title_init(). Returns the exit status of the process. */
int keeper_main(int argc, char **argv);

#endif
