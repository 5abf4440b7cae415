/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_WORDS_H
#define NACRE_PROVIDER_VM_WORDS_H

#include <stddef.h>
#include <stdint.h>

/*
 * The output of a guest's console, for a sentence: its last lines, parted by " | ", printable and
 * without the controls of terminals, as many whole lines as fit; the end of the last one alone
 * where not even that does. ret is "" where there is no text.
 */
void vm_words(const uint8_t *console, size_t len, char *ret, size_t size);

#endif
