/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/tty.h"

#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "unit.h"

static void keys_are_read(void)
{
	struct error err = ERROR_INIT;
	struct detach d;

	CHECK_INT(detach_parse(&d, DETACH_KEYS_DEFAULT, &err), 0);
	CHECK_INT(d.n, 2);
	CHECK_INT(d.keys[0], 16);
	CHECK_INT(d.keys[1], 17);
	CHECK_INT(detach_parse(&d, "a,ctrl-@,ctrl-[,ctrl-_", &err), 0);
	CHECK_INT(d.n, 4);
	CHECK_INT(d.keys[0], 'a');
	CHECK_INT(d.keys[1], 0);
	CHECK_INT(d.keys[2], 27);
	CHECK_INT(d.keys[3], 31);
	CHECK_INT(detach_parse(&d, "", &err), 0);
	CHECK_INT(d.n, 0);
	CHECK_INT(detach_parse(&d, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p", &err), 0);
	CHECK(detach_parse(&d, "a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q", &err) < 0);
	CHECK(detach_parse(&d, "ctrl-", &err) < 0);
	CHECK(detach_parse(&d, "ctrl-1", &err) < 0);
	CHECK(detach_parse(&d, "a,", &err) < 0);
	CHECK(detach_parse(&d, ",", &err) < 0);
	CHECK(detach_parse(&d, "ab", &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
}

/* What comes through where `text` is typed in pieces of n bytes; "!" at its end: left. */
static const char *typed(const char *keys, const char *text, size_t n)
{
	static char out[64];
	struct detach d;
	size_t len = 0;
	bool leave = false;

	CHECK_INT(detach_parse(&d, keys, NULL), 0);
	for (size_t at = 0; at < strlen(text) && !leave; at += n)
		len += detach_filter(&d, (const uint8_t *)text + at, MIN(n, strlen(text) - at),
				     (uint8_t *)out + len, &leave);
	out[len] = leave ? '!' : '\0';
	out[len + 1] = '\0';
	return out;
}

static void keys_are_found(void)
{
	static const struct {
		const char *keys, *text, *want;
	} table[] = {
		{ "x,y", "abxyz", "ab!" },      { "x,y", "axbxc", "axbxc" },
		{ "x,y", "axxyb", "ax!" },      { "x,x,y", "axxxyb", "ax!" },
		{ "x,y,x,z", "xyxyxz", "xy!" }, { "x", "ax", "a!" },
		{ "", "axyb", "axyb" },         { "x,y", "ax", "a" },
		{ "x,x,x", "xxaxxx", "xxa!" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++)
		for (size_t n = 1; n < 8; n++)
			CHECK_STR(typed(table[i].keys, table[i].text, n), table[i].want);
}

static void a_pipe_is_no_terminal(void)
{
	struct tty t = TTY_INIT;
	unsigned width = 1, height = 1;
	int ends[2];

	CHECK_INT(pipe(ends), 0);
	CHECK(tty_init(&t, ends[0], NULL) < 0);
	CHECK_INT(t.fd, -1);
	CHECK(!tty_measure(ends[0], &width, &height));
	CHECK_INT(width + height, 0);
	tty_done(&t);
	fd_close(ends[0]);
	fd_close(ends[1]);
}

UNIT_MAIN({ "keys_are_read", keys_are_read }, { "keys_are_found", keys_are_found },
	  { "a_pipe_is_no_terminal", a_pipe_is_no_terminal })
