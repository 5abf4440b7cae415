/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_SPDY_DICTIONARY_H
#define NACRE_STREAM_SPDY_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

/* The initial dictionary for the compression of headers in SPDY/3, as the format defines it byte
 * for byte. Never freed. */
const uint8_t *spdy_dictionary(size_t *ret_len);

#endif
