/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/bundle.h"

#include <errno.h>

/* Each is a SEQUENCE with a length of two bytes. */
int bundle_split(const uint8_t *der, size_t len, struct bootmsg_list *ret)
{
	size_t at = 0;

	ret->n = 0;
	while (at < len) {
		const uint8_t *one = der + at;
		size_t left = len - at, n;

		if (left < 4 || one[0] != 0x30 || one[1] != 0x82 || ret->n == BOOTMSG_BUNDLE_MAX)
			return -EBADMSG;
		n = 4 + ((size_t)one[2] << 8 | one[3]);
		if (n > left)
			return -EBADMSG;
		ret->item[ret->n++] = (struct bootmsg_blob){ one, n };
		at += n;
	}
	return ret->n > 0 ? 0 : -EBADMSG;
}
