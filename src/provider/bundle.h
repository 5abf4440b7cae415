/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_BUNDLE_H
#define NACRE_PROVIDER_BUNDLE_H

#include <stddef.h>
#include <stdint.h>

#include "wire/message/bootmsg.h"

/* The certificates in DER, one behind the other, as a list into these bytes; or -EBADMSG. */
int bundle_split(const uint8_t *der, size_t len, struct bootmsg_list *ret);

#endif
