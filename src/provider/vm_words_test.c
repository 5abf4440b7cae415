/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_words.h"

#include <string.h>

#include "base/macros.h"
#include "unit.h"

static void is(const char *console, size_t size, const char *expected)
{
	char ret[512];

	vm_words((const uint8_t *)console, strlen(console), ret, size);
	CHECK_STR(ret, expected);
	CHECK(strlen(ret) < size);
}

static void tells_the_last_lines(void)
{
	is("", 64, "");
	is("\r\n\n \n", 64, "");
	is("one\r\ntwo\r\n", 64, "one | two");
	is("one\n\n\ntwo", 64, "one | two");
	is("one\ntwo\n", 10, "one | two");
	is("one\ntwo\n", 9, "two");
	is("one\ntwo\n", 4, "two");
	is("one\ntwo\n", 3, "wo");
	is("one\ntwo\n", 1, "");
}

static void leaves_out_what_cannot_be_read(void)
{
	is("\033[1;31mred\033[0m and\tblue\n", 64, "red and blue");
	is("a\033[", 64, "a");
	is("a\033", 64, "a");
	is("a\033M\n", 64, "a");
	is("\xff\xfe"
	   "b\x01\x7f"
	   "c\n",
	   64, "bc");
}

static void keeps_the_end_of_a_long_line(void)
{
	char line[1001], ret[400];
	const uint8_t nul[] = { 'a', 0, 'b' };

	memset(line, 'x', sizeof(line));
	line[999] = 'y';
	vm_words((const uint8_t *)line, 1000, ret, sizeof(ret));
	CHECK_INT(strlen(ret), 255);
	CHECK(ret[254] == 'y');
	vm_words(nul, sizeof(nul), ret, sizeof(ret));
	CHECK_STR(ret, "ab");
}

UNIT_MAIN({ "tells_the_last_lines", tells_the_last_lines },
	  { "leaves_out_what_cannot_be_read", leaves_out_what_cannot_be_read },
	  { "keeps_the_end_of_a_long_line", keeps_the_end_of_a_long_line })
