/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log/log.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "unit.h"

static int log_to;
static char line[8192];

static nsec_t fixed(int clock_id)
{
	return 0;
}

static void begin(enum log_level least, enum log_form form)
{
	log_to = memfd_create("log-test", MFD_CLOEXEC);
	clock_set_source(fixed);
	log_configure(log_to, least, form);
}

static const char *written(void)
{
	ssize_t n = pread(log_to, line, sizeof(line) - 1, 0);

	line[n > 0 ? n : 0] = '\0';
	CHECK(ftruncate(log_to, 0) == 0 && lseek(log_to, 0, SEEK_SET) == 0);
	return line;
}

static void end(void)
{
	log_to = fd_close(log_to);
	clock_set_source(NULL);
	log_configure(STDERR_FILENO, LOG_INFO, LOG_FORM_TEXT);
}

#define STAMP "1970-01-01T00:00:00.000000000Z"

static void text(void)
{
	struct error err = ERROR_INIT;

	begin(LOG_INFO, LOG_FORM_TEXT);
	log_info("plain");
	CHECK_STR(written(), STAMP " info plain\n");
	(void)error_set(&err, -EBUSY, "rmdir web");
	log_warn("cannot", LOG_STR("pod", "web"), LOG_INT("n", -5), LOG_ERR(&err));
	CHECK_STR(written(),
		  STAMP " warn cannot pod=web n=-5 err=\"rmdir web: Device or resource busy\"\n");
	log_error("x", LOG_STR("a", NULL), LOG_STR("b", "q\"\\"), LOG_STR("c", "k=v"));
	CHECK_STR(written(), STAMP " error x a=\"\" b=\"q\\\"\\\\\" c=\"k=v\"\n");
	log_error("x", LOG_STR("a", "two\nlines\x1b[0m\x7f"), LOG_STR("b", "\xc3\xa4"));
	CHECK_STR(written(), STAMP " error x a=\"two\\u000alines\\u001b[0m\\u007f\" b=\xc3\xa4\n");
	log_error("x", LOG_STR("a", "\xc2\x9b"
				    "31m"));
	CHECK_STR(written(), STAMP " error x a=\"\\u009b31m\"\n");
	log_error("x", LOG_STR("a", "\xff\xc3"));
	CHECK_STR(written(), STAMP " error x a=\"\\u00ff\\u00c3\"\n");
	end();
}

static void json(void)
{
	begin(LOG_INFO, LOG_FORM_JSON);
	log_info("m", LOG_STR("a", "b"), LOG_INT("n", INT64_MIN),
		 LOG_STR("q", "\"\xc3\xa4\n\xe2\x82\xac"));
	CHECK_STR(written(),
		  "{\"time\":\"" STAMP "\",\"level\":\"info\",\"msg\":\"m\",\"a\":\"b\","
		  "\"n\":-9223372036854775808,\"q\":\"\\\"\xc3\xa4\\u000a\xe2\x82\xac\"}\n");
	end();
}

static void levels(void)
{
	begin(LOG_WARN, LOG_FORM_TEXT);
	log_debug("x");
	log_info("x");
	CHECK_STR(written(), "");
	log_warn("x");
	CHECK(*written());
	CHECK_INT(log_level_parse("debug"), LOG_DEBUG);
	CHECK_INT(log_level_parse("error"), LOG_ERROR);
	CHECK_INT(log_level_parse("Error"), -1);
	CHECK_INT(log_level_parse(""), -1);
	end();
}

/* A value too long is cut between characters; the line stays one line and JSON stays JSON. */
static void long_values(void)
{
	static const char *const units[] = { "x",    "\n",
					     "\"",   "\xe2\x82\xac",
					     "\xff", "\xf0\x9f\x98\x80" };
	char value[8000];

	for (size_t i = 0; i < ARRAY_SIZE(units); i++) {
		size_t unit = strlen(units[i]), n;

		for (n = 0; n + unit < sizeof(value); n += unit)
			memcpy(value + n, units[i], unit);
		value[n] = '\0';
		begin(LOG_INFO, LOG_FORM_JSON);
		log_info("m", LOG_STR("a", value), LOG_STR("b", value), LOG_STR("c", "d"));
		n = strlen(written());
		CHECK(n > 3900 && n <= 4096);
		CHECK(str_has_suffix(line, "\"}\n"));
		CHECK(strchr(line, '\n') == line + n - 1);
		CHECK(str_is_utf8(line, n));
		end();
		begin(LOG_INFO, LOG_FORM_TEXT);
		log_info("m", LOG_STR("a", value), LOG_STR("b", value));
		n = strlen(written());
		CHECK(n > 3900 && n <= 4096);
		CHECK(str_has_suffix(line, "\"\n"));
		CHECK(strchr(line, '\n') == line + n - 1);
		CHECK(str_is_utf8(line, n));
		end();
	}
}

static void never_fails(void)
{
	log_configure(-1, LOG_DEBUG, LOG_FORM_TEXT);
	errno = 77;
	log_error("x", LOG_ERR(NULL));
	CHECK_INT(errno, 77);
	log_configure(STDERR_FILENO, LOG_INFO, LOG_FORM_TEXT);
}

UNIT_MAIN({ "text", text }, { "json", json }, { "levels", levels }, { "long values", long_values },
	  { "never fails", never_fails })
