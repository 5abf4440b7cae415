/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_ID_H
#define NACRE_BASE_ID_H

/* Identifiers of objects: 64 random bits as 16 hexadecimal digits. Unique by chance; the maker of
 * an object checks, and draws again. */

#define ID_LEN 16
#define ID_SIZE (ID_LEN + 1)

/* 0, or a negative errno where the kernel has no random bytes to give. */
int id_new(char ret[ID_SIZE]);

#endif
