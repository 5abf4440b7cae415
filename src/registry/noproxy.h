/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_REGISTRY_NOPROXY_H
#define NACRE_REGISTRY_NOPROXY_H

#include <stdbool.h>

#include "registry/url.h"

/*
 * The hosts that NO_PROXY says to ask directly. It is decided here and not by libcurl, so that it
 * is known before a connection is made whether its far end is a proxy or the host itself.
 *
 * Entries are parted by commas or blanks: "*" is everybody; "a.example" and ".a.example" are that
 * host and all below it; an address is itself, with "/24" behind it a network; ":443" behind a name
 * or address of IPv4 (or "[...]") limits it to a port. An entry that cannot be read matches no
 * host.
 */
bool noproxy_has(const char *list, const struct url *u);

#endif
