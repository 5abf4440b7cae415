/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/signal_name.h"

#include <errno.h>
#include <signal.h>

#include "unit.h"

static void reads_what_kill_reads(void)
{
	CHECK_INT(signal_number("TERM"), SIGTERM);
	CHECK_INT(signal_number("SIGTERM"), SIGTERM);
	CHECK_INT(signal_number("sigterm"), SIGTERM);
	CHECK_INT(signal_number("hup"), SIGHUP);
	CHECK_INT(signal_number("15"), 15);
	CHECK_INT(signal_number("0"), 0);
	CHECK_INT(signal_number("64"), 64);
	CHECK_INT(signal_number("IOT"), SIGABRT);
	CHECK_INT(signal_number("POLL"), SIGIO);
	CHECK_INT(signal_number("SIGSYS"), SIGSYS);
}

static void reads_real_time_signals(void)
{
	CHECK_INT(signal_number("RTMIN"), SIGRTMIN);
	CHECK_INT(signal_number("SIGRTMIN+3"), SIGRTMIN + 3);
	CHECK_INT(signal_number("rtmax"), SIGRTMAX);
	CHECK_INT(signal_number("RTMAX-1"), SIGRTMAX - 1);
	CHECK_INT(signal_number("RTMIN+30"), SIGRTMAX);
	CHECK_INT(signal_number("RTMAX-30"), SIGRTMIN);
}

static void refuses_all_else(void)
{
	static const char *const wrong[] = { "",         "SIG",     "65",      "-1",
					     "TERMS",    "RTMIN-1", "RTMAX+1", "RTMIN+31",
					     "RTMAX-31", "RTMIN+",  "RTMAX-x", "SIGSIGTERM",
					     "9 " };

	for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
		CHECK_INT(signal_number(wrong[i]), -EINVAL);
}

UNIT_MAIN({ "reads what kill reads", reads_what_kill_reads },
	  { "reads real-time signals", reads_real_time_signals },
	  { "refuses all else", refuses_all_else })
