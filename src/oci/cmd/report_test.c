/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/cmd/report.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "oci/config/given.h"
#include "scratch.h"
#include "unit.h"

static char dir[] = "/tmp/nacre-report-XXXXXX";
static char path[64];

/* What is in the file of the log, which is emptied. */
static char *said(void)
{
	struct buf b = BUF_INIT;

	report_close();
	CHECK_INT(given_read(path, 65536, &b), 0);
	CHECK(truncate(path, 0) == 0);
	return buf_take_str(&b);
}

static void say_all(void)
{
	struct error err = ERROR_INIT;

	(void)error_refuse(&err, ERROR_INVALID, "no \"such\" thing");
	report_warning("%d of %s", 3, "four");
	report_debug("in passing");
	report_error(&err);
}

static void writes_lines_for_callers(void)
{
	struct error err = ERROR_INIT;
	char *text;

	CHECK(mkdtemp(dir) != NULL);
	CHECK(str_printf(path, sizeof(path), "%s/log", dir) > 0);
	CHECK_INT(report_open(path, "json", false, &err), 0);
	say_all();
	text = said();
	CHECK(strstr(text, "{\"level\":\"warning\",\"msg\":\"3 of four\",\"time\":\"2") == text);
	CHECK(strstr(text, "\n{\"level\":\"error\",\"msg\":\"no \\\"such\\\" thing\",") != NULL);
	CHECK(strstr(text, "in passing") == NULL);
	free(text);
	CHECK_INT(report_open(path, "text", true, &err), 0);
	say_all();
	text = said();
	CHECK(strstr(text, "level=warning msg=\"3 of four\"\n") != NULL);
	CHECK(strstr(text, "level=debug msg=\"in passing\"\n") != NULL);
	CHECK(strstr(text, "level=error msg=\"no \\\"such\\\" thing\"\n") != NULL);
	CHECK(strncmp(text, "time=\"2", 7) == 0);
	free(text);
	CHECK_INT(scratch_remove(dir), 0);
}

static void refuses_what_it_cannot_write(void)
{
	struct error err = ERROR_INIT;

	CHECK(report_open(path, "yaml", false, &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	CHECK(strstr(err.text, "--log-format is text or json, not yaml") != NULL);
	err = (struct error)ERROR_INIT;
	CHECK_INT(report_open("/nowhere/log", "json", false, &err), -ENOENT);
	/* Without a file people still read it. */
	CHECK_INT(report_open("", "json", true, &err), 0);
	report_debug("to nobody");
}

UNIT_MAIN({ "writes_lines_for_callers", writes_lines_for_callers },
	  { "refuses_what_it_cannot_write", refuses_what_it_cannot_write })
