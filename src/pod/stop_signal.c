/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/stop_signal.h"

#include <signal.h>

#include "base/signal_name.h"
#include "base/str.h"

bool stop_signal_is_known(const char *word)
{
	return str_empty(word) || signal_number(word) > 0;
}

int stop_signal_parse(const char *word)
{
	int number = str_empty(word) ? SIGTERM : signal_number(word);

	return number > 0 ? number : SIGTERM;
}
