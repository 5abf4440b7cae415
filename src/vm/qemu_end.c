/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu_end.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "base/str.h"

/* What SHUTDOWN says of a guest that was willing. */
static const struct {
	const char *reason;
	enum vm_end_cause cause;
} qemu_reasons[] = {
	{ "guest-shutdown", VM_END_POWERED_OFF },
	{ "guest-reset", VM_END_RESET },
	{ "guest-panic", VM_END_PANIC },
};

static enum vm_end_cause qemu_end_cause(const struct qemu_seen *seen)
{
	if (seen->failed.code)
		return VM_END_NOT_STARTED;
	if (seen->panicked)
		return VM_END_PANIC;
	for (size_t i = 0; i < ARRAY_SIZE(qemu_reasons); i++)
		if (str_eq(seen->reason, qemu_reasons[i].reason))
			return qemu_reasons[i].cause;
	if (seen->broken.code)
		return VM_END_BROKEN;
	if (seen->asked)
		return VM_END_ASKED;
	if (!seen->code)
		return VM_END_UNSEEN;
	return seen->up || seen->code != CLD_EXITED ? VM_END_CRASHED : VM_END_NOT_STARTED;
}

/* The part behind the sentence: "" where the sentence says it all. */
static void qemu_end_detail(char *ret, size_t size, const struct qemu_seen *seen,
			    enum vm_end_cause cause)
{
	ret[0] = '\0';
	if (cause == VM_END_BROKEN)
		(void)snprintf(ret, size, ": %.200s", seen->broken.text);
	else if (seen->failed.code)
		(void)snprintf(ret, size, ": %.200s", seen->failed.text);
	else if (cause != VM_END_CRASHED && cause != VM_END_NOT_STARTED)
		return;
	else if (*seen->reason)
		(void)snprintf(ret, size, ": it ended for \"%s\"", seen->reason);
	else if (seen->code == CLD_EXITED)
		(void)snprintf(ret, size, ": it ended with status %d", seen->status);
	else
		(void)snprintf(ret, size, ": it was killed by signal %d", seen->status);
}

/* The last line of what was said. */
static const char *qemu_end_line(const char *words)
{
	const char *at = strrchr(words, '\n');

	return at ? at + 1 : words;
}

void qemu_end_judge(struct vm_end *ret, const struct qemu_seen *seen, const char *words)
{
	enum vm_end_cause cause = qemu_end_cause(seen);
	char detail[ERROR_TEXT_MAX / 2];
	const char *line;

	*ret = (struct vm_end){ .cause = cause, .code = seen->code, .status = seen->status };
	(void)str_copy(ret->words, sizeof(ret->words), words);
	line = qemu_end_line(ret->words);
	qemu_end_detail(detail, sizeof(detail), seen, cause);
	(void)snprintf(ret->text, sizeof(ret->text), "%s%s%s%.120s%s", vm_end_sentence(cause),
		       detail, *detail && *line ? " (\"" : "", *detail ? line : "",
		       *detail && *line ? "\")" : "");
	str_clean(ret->text);
}
