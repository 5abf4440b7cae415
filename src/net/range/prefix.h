/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NET_PREFIX_H
#define NACRE_NET_PREFIX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/macros.h"

/*
 * An address of IPv4 or IPv6 together with how many of its bits name its network: "10.1.2.3/24",
 * "fd00::1/64". A value without pointers; the bytes behind the address are 0, so that two equal
 * ones are equal bytes.
 */

#define PREFIX_BYTES_MAX 16
#define PREFIX_TEXT_MAX 52

struct prefix {
	uint8_t family; /* AF_INET or AF_INET6; 0: none */
	uint8_t length; /* bits */
	uint8_t bytes[PREFIX_BYTES_MAX];
};

/* 4 or 16; 0 for none. */
size_t prefix_size(const struct prefix *p);

/* With "/length" or without it (then all bits). Nothing else is taken: no blanks, no short forms
 * of IPv4, no zone. 0 or -EINVAL. */
int prefix_parse(const char *text, struct prefix *ret) _must_check_;
/* "10.1.2.3/24". */
void prefix_print(const struct prefix *p, char ret[PREFIX_TEXT_MAX]);
/* The same without the length. */
void prefix_print_address(const struct prefix *p, char ret[PREFIX_TEXT_MAX]);

bool prefix_eq(const struct prefix *a, const struct prefix *b);
/* Whether both addresses are the same, whatever the lengths. */
bool prefix_same_address(const struct prefix *a, const struct prefix *b);
/* Whether the address `a` lies within the network that `p` names. */
bool prefix_has(const struct prefix *p, const struct prefix *a);
/* The address with all bits behind the length cleared. */
struct prefix prefix_network(const struct prefix *p);

#endif
