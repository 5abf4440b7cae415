/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_TITLE_H
#define NACRE_BASE_TITLE_H

/*
 * The title of a process as `ps` shows it ("nacre: keeper pod/web"), architecture 9.12.
 * title_init() is called first in main(): it takes the memory of the arguments over and copies
 * nothing, so main() must have read its arguments before the first title_set(). A title longer than
 * that memory is cut.
 */
void title_init(int argc, char **argv);
void title_set(const char *title);

#endif
