/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/stop_signal.h"

#include <signal.h>

#include "unit.h"

static void parses(void)
{
	CHECK(stop_signal_is_known("") && stop_signal_is_known(NULL));
	CHECK(stop_signal_is_known("SIGRTMIN+3") && stop_signal_is_known("3"));
	CHECK(!stop_signal_is_known("SIGNONSENSE") && !stop_signal_is_known("0"));
	CHECK_INT(stop_signal_parse(""), SIGTERM);
	CHECK_INT(stop_signal_parse(NULL), SIGTERM);
	CHECK_INT(stop_signal_parse("SIGQUIT"), SIGQUIT);
	CHECK_INT(stop_signal_parse("QUIT"), SIGQUIT);
	CHECK_INT(stop_signal_parse("3"), 3);
	CHECK_INT(stop_signal_parse("SIGRTMIN+3"), SIGRTMIN + 3);
	CHECK_INT(stop_signal_parse("0"), SIGTERM);
	CHECK_INT(stop_signal_parse("65"), SIGTERM);
	CHECK_INT(stop_signal_parse("SIGNONSENSE"), SIGTERM);
	CHECK_INT(stop_signal_parse("SIGRTMIN+31"), SIGTERM);
}

UNIT_MAIN({ "parses", parses })
