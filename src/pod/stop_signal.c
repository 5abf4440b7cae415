/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/stop_signal.h"

#include <signal.h>

#include "base/signal_name.h"
#include "base/str.h"

int stop_signal_parse(const char *word)
{
	int number = str_empty(word) ? SIGTERM : signal_number(word);

	return number > 0 ? number : SIGTERM;
}
