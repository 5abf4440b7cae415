/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/text.h"

#include <inttypes.h>
#include <stdbool.h>

#include "base/text/str.h"

void text_ago(char ret[TEXT_SIZE], nsec_t now, nsec_t then)
{
	static const struct {
		uint64_t seconds;
		const char *name;
	} units[] = {
		{ 31536000, "year" }, { 2592000, "month" }, { 604800, "week" }, { 86400, "day" },
		{ 3600, "hour" },     { 60, "minute" },     { 1, "second" },
	};
	uint64_t seconds = then < now ? (now - then) / NSEC_PER_SEC : 0;

	if (!then) {
		(void)str_copy(ret, TEXT_SIZE, "-");
		return;
	}
	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		uint64_t n = seconds / units[i].seconds;

		if (!n)
			continue;
		(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 " %s%s ago", n, units[i].name,
				 n == 1 ? "" : "s");
		return;
	}
	(void)str_copy(ret, TEXT_SIZE, "just now");
}

void text_bytes(char ret[TEXT_SIZE], uint64_t n)
{
	static const char *const units[] = { "kB", "MB", "GB", "TB", "PB", "EB" };
	uint64_t tenths = n / 100;
	size_t unit = 0;

	if (n < 1000) {
		(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 " B", n);
		return;
	}
	while (tenths >= 10000 && unit + 1 < ARRAY_SIZE(units)) {
		tenths /= 1000;
		unit++;
	}
	(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 ".%" PRIu64 " %s", tenths / 10, tenths % 10,
			 units[unit]);
}

void text_cpu(char ret[TEXT_SIZE], uint64_t us)
{
	uint64_t seconds = us / 1000000;

	if (us < 1000000)
		(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 "ms", us / 1000);
	else if (seconds < 60)
		(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 ".%02" PRIu64 "s", seconds,
				 us / 10000 % 100);
	else if (seconds < 3600)
		(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 "m%02" PRIu64 "s", seconds / 60,
				 seconds % 60);
	else
		(void)str_printf(ret, TEXT_SIZE, "%" PRIu64 "h%02" PRIu64 "m", seconds / 3600,
				 seconds / 60 % 60);
}

void text_short_id(char ret[TEXT_SIZE], const char *id)
{
	const char *colon = strchr(id, ':');

	(void)str_printf(ret, TEXT_SIZE, "%.12s", colon ? colon + 1 : id);
}

size_t text_width(const char *s)
{
	size_t n = 0;

	for (; *s; s++)
		n += ((unsigned char)*s & 0xc0) != 0x80;
	return n;
}

size_t text_prefix(const char *s, size_t n)
{
	size_t i = 0;

	for (; s[i]; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80 && n-- == 0)
			break;
	}
	return i;
}
