/* SPDX-License-Identifier: Apache-2.0 */
#include "base/file/sysio.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/sysio_raw.h"
#include "base/macros.h"

/* The plan is read once, at the first call; at most this many entries. */
#define SYSIO_PLAN_MAX 8
#define SYSIO_KILL (-1)

struct sysio_fault {
	char name[32];
	unsigned at;
	int error;
	bool sticky;
	atomic_uint seen;
};

static struct sysio_fault sysio_plan[SYSIO_PLAN_MAX];
static size_t sysio_n_plan;
static atomic_int sysio_state; /* 0, 1 while one thread reads the plan, 2 */

static const struct {
	const char *word;
	int error;
} sysio_words[] = {
	{ "ENOSPC", ENOSPC }, { "EIO", EIO },       { "EMFILE", EMFILE },
	{ "ENOMEM", ENOMEM }, { "EAGAIN", EAGAIN }, { "EINTR", EINTR },
	{ "EPERM", EPERM },   { "EROFS", EROFS },   { "kill", SYSIO_KILL },
};

static int sysio_word(const char *word)
{
	for (size_t i = 0; i < ARRAY_SIZE(sysio_words); i++)
		if (strcmp(sysio_words[i].word, word) == 0)
			return sysio_words[i].error;
	return EIO;
}

static void sysio_load_entry(char *entry)
{
	struct sysio_fault *f = &sysio_plan[sysio_n_plan];
	char *save = NULL;
	char *name = strtok_r(entry, ":", &save);
	char *at = strtok_r(NULL, ":", &save);
	char *word = strtok_r(NULL, ":", &save);
	const char *sticky = strtok_r(NULL, ":", &save);

	if (!name || !at || !word || strlen(name) >= sizeof(f->name))
		return;
	memcpy(f->name, name, strlen(name) + 1);
	f->at = (unsigned)strtoul(at, NULL, 10);
	f->error = sysio_word(word);
	f->sticky = sticky != NULL;
	sysio_n_plan++;
}

static void sysio_load(void)
{
	static char text[512];
	const char *plan = getenv("NACRE_SYSIO");
	char *save = NULL;
	size_t n;

	if (!plan)
		return;
	n = MIN(strlen(plan), sizeof(text) - 1);
	memcpy(text, plan, n);
	for (char *e = strtok_r(text, ",", &save); e && sysio_n_plan < SYSIO_PLAN_MAX;
	     e = strtok_r(NULL, ",", &save))
		sysio_load_entry(e);
}

/* As pthread_once(), without a system call: a process that may only read and write comes here. */
static void sysio_load_once(void)
{
	int none = 0;

	if (atomic_load(&sysio_state) == 2)
		return;
	if (atomic_compare_exchange_strong(&sysio_state, &none, 1)) {
		sysio_load();
		atomic_store(&sysio_state, 2);
	}
	while (atomic_load(&sysio_state) != 2)
		;
}

/* Each entry counts each call that it is about, also one that another entry lets fail. */
static int sysio_fault_of(const char *name)
{
	int error = 0;

	sysio_load_once();
	for (size_t i = 0; i < sysio_n_plan; i++) {
		struct sysio_fault *f = &sysio_plan[i];
		unsigned seen;

		if (strcmp(f->name, "*") != 0 && strcmp(f->name, name) != 0)
			continue;
		seen = atomic_fetch_add(&f->seen, 1) + 1;
		if (error == 0 && (seen == f->at || (f->sticky && seen > f->at)))
			error = f->error;
	}
	return error;
}

static bool sysio_fails(const char *name)
{
	int error = sysio_fault_of(name);

	if (error == SYSIO_KILL) {
		(void)raise(SIGKILL);
		/* Pid 1 does not hear signals of its own namespace; what the processor raises it
		 * does. */
		__builtin_trap();
	}
	if (error == 0)
		return false;
	errno = error;
	return true;
}

#define SYSIO_BEFORE(name, failed)                                                                 \
	do {                                                                                       \
		if (sysio_fails(name))                                                             \
			return failed;                                                             \
	} while (0)
#include "base/file/sysio_calls.h"
