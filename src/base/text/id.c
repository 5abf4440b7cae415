/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/id.h"

#include <errno.h>
#include <stdint.h>
#include <sys/random.h>

int id_new(char ret[ID_SIZE])
{
	static const char digits[] = "0123456789abcdef";
	uint8_t bits[ID_LEN / 2];

	if (getrandom(bits, sizeof(bits), 0) != (ssize_t)sizeof(bits))
		return errno ? -errno : -EIO;
	for (int i = 0; i < ID_LEN / 2; i++) {
		ret[2 * i] = digits[bits[i] >> 4];
		ret[2 * i + 1] = digits[bits[i] & 15];
	}
	ret[ID_LEN] = '\0';
	return 0;
}
