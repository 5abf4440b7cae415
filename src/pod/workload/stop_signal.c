/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/stop_signal.h"

#include <signal.h>

#include "base/text/signal_name.h"
#include "base/text/str.h"

bool stop_signal_is_known(const char *word)
{
	return str_empty(word) || signal_number(word) > 0;
}

int stop_signal_parse(const char *word)
{
	int number = str_empty(word) ? SIGTERM : signal_number(word);

	return number > 0 ? number : SIGTERM;
}
