/* SPDX-License-Identifier: Apache-2.0 */
#include "base/text/signal_name.h"

#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <strings.h>

#include "base/macros.h"
#include "base/text/parse.h"

static const struct {
	const char *name;
	int number;
} signals[] = {
	{ "HUP", SIGHUP },       { "INT", SIGINT },       { "QUIT", SIGQUIT },
	{ "ILL", SIGILL },       { "TRAP", SIGTRAP },     { "ABRT", SIGABRT },
	{ "IOT", SIGIOT },       { "BUS", SIGBUS },       { "FPE", SIGFPE },
	{ "KILL", SIGKILL },     { "USR1", SIGUSR1 },     { "SEGV", SIGSEGV },
	{ "USR2", SIGUSR2 },     { "PIPE", SIGPIPE },     { "ALRM", SIGALRM },
	{ "TERM", SIGTERM },     { "STKFLT", SIGSTKFLT }, { "CHLD", SIGCHLD },
	{ "CLD", SIGCHLD },      { "CONT", SIGCONT },     { "STOP", SIGSTOP },
	{ "TSTP", SIGTSTP },     { "TTIN", SIGTTIN },     { "TTOU", SIGTTOU },
	{ "URG", SIGURG },       { "XCPU", SIGXCPU },     { "XFSZ", SIGXFSZ },
	{ "VTALRM", SIGVTALRM }, { "PROF", SIGPROF },     { "WINCH", SIGWINCH },
	{ "IO", SIGIO },         { "POLL", SIGPOLL },     { "PWR", SIGPWR },
	{ "SYS", SIGSYS },
};

/* "RTMIN+3", "RTMAX-1" */
static int signal_real_time(const char *word)
{
	uint64_t room = (uint64_t)(SIGRTMAX - SIGRTMIN), n = 0;
	bool from_min = strncasecmp(word, "RTMIN", 5) == 0;

	if (!from_min && strncasecmp(word, "RTMAX", 5) != 0)
		return -EINVAL;
	word += 5;
	if (*word && (*word != (from_min ? '+' : '-') || parse_u64(word + 1, 0, room, &n) < 0))
		return -EINVAL;
	return from_min ? SIGRTMIN + (int)n : SIGRTMAX - (int)n;
}

int signal_number(const char *word)
{
	uint64_t number;

	if (parse_u64(word, 0, SIGNAL_MAX_NUMBER, &number) == 0)
		return (int)number;
	if (strncasecmp(word, "SIG", 3) == 0)
		word += 3;
	for (size_t i = 0; i < ARRAY_SIZE(signals); i++)
		if (strcasecmp(signals[i].name, word) == 0)
			return signals[i].number;
	return signal_real_time(word);
}
