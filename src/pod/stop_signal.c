/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/stop_signal.h"

#include <signal.h>

#include "base/parse.h"
#include "base/str.h"

int stop_signal_parse(const char *word)
{
	static const struct {
		const char *name;
		int number;
	} signals[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },     { "QUIT", SIGQUIT },
		{ "KILL", SIGKILL }, { "USR1", SIGUSR1 },   { "USR2", SIGUSR2 },
		{ "TERM", SIGTERM }, { "WINCH", SIGWINCH }, { "STOP", SIGSTOP },
		{ "CONT", SIGCONT }, { "PWR", SIGPWR },
	};
	uint64_t number;

	if (str_empty(word))
		return SIGTERM;
	if (parse_u64(word, 1, 64, &number) == 0)
		return (int)number;
	if (str_has_prefix(word, "SIG"))
		word += 3;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (str_eq(signals[i].name, word))
			return signals[i].number;
	if (str_has_prefix(word, "RTMIN+") && parse_u64(word + 6, 0, 30, &number) == 0)
		return SIGRTMIN + (int)number;
	return SIGTERM;
}
