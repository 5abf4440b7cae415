/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STREAM_SPDY_DICTIONARY_H
#define NACRE_STREAM_SPDY_DICTIONARY_H

#include <stddef.h>
#include <stdint.h>

/* What both ends of SPDY/3 begin to compress headers with: a number that the format defines, byte
 * for byte. Lives for ever. */
const uint8_t *spdy_dictionary(size_t *ret_len);

#endif
