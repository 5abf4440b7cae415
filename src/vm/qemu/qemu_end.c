/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu_end.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "base/macros.h"
#include "base/text/str.h"

#define QEMU_END_LINE 120

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

/* Takes the last line away from what was said; of one that is long its end, where the reason
 * stands.
 */
static void qemu_end_take_line(char *words, char ret[QEMU_END_LINE + 1])
{
	char *at = strrchr(words, '\n'), *line = at ? at + 1 : words;
	size_t len = strlen(line);

	(void)str_copy(ret, QEMU_END_LINE + 1,
		       line + (len > QEMU_END_LINE ? len - QEMU_END_LINE : 0));
	*(at ?: words) = '\0';
}

void qemu_end_judge(struct vm_end *ret, const struct qemu_seen *seen, const char *words)
{
	enum vm_end_cause cause = qemu_end_cause(seen);
	char detail[ERROR_TEXT_MAX / 2], line[QEMU_END_LINE + 1] = "";

	*ret = (struct vm_end){ .cause = cause, .code = seen->code, .status = seen->status };
	(void)str_copy(ret->words, sizeof(ret->words), words);
	qemu_end_detail(detail, sizeof(detail), seen, cause);
	if (*detail)
		qemu_end_take_line(ret->words, line);
	(void)snprintf(ret->text, sizeof(ret->text), "%s%s%s%s%s", vm_end_sentence(cause), detail,
		       *line ? " (\"" : "", line, *line ? "\")" : "");
	str_clean(ret->text);
}
