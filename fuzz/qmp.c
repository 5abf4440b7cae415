/* SPDX-License-Identifier: Apache-2.0 */

/*
 * A hostile VMM: what it says to us, and what becomes of the disks in its slots meanwhile. Each
 * line of the input is said at once; one that begins with "@" changes a slot before.
 */

#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "fuzz.h"
#include "loop/loop.h"
#include "vm/qemu/qemu_slots.h"
#include "vm/qemu/qmp.h"

#define TURNS 3

struct target {
	struct qmp *qmp;
	struct slots slots;
	unsigned asked, answered;
};

static void on_learned(const struct json_value *answer, const struct error *err, void *data)
{
	struct target *t = data;

	fuzz_need(!answer != !err || !err);
	if (!err)
		(void)slots_learn(&t->slots, answer, NULL);
	fuzz_need(t->slots.n <= VM_SLOTS_MAX);
}

static void on_done(struct vm *vm, const struct error *err, void *data)
{
	struct target *t = data;

	fuzz_need(!err || err->code != 0);
	t->answered++;
}

static void on_ready(struct qmp *q, void *owner)
{
	static const struct qmp_command command = { .name = "query-block", .fd = -1 };

	fuzz_need(qmp_ask(q, &command, on_learned, owner, NULL) == 0);
}

static void on_event(struct qmp *q, const char *name, const struct json_value *data, void *owner)
{
	fuzz_need(name && (!data || data->kind == JSON_OBJECT));
}

static void on_end(struct qmp *q, const struct error *err, void *owner)
{
	struct target *t = owner;

	fuzz_need(!err || err->code != 0);
	t->slots.qmp = NULL;
	t->qmp = qmp_free(t->qmp);
}

static const struct qmp_events events = { on_ready, on_event, on_end };

static void change(struct target *t, unsigned how)
{
	const struct vm_disk disk = {
		.fd = STDIN_FILENO,
		.format = how & 4 ? VM_DISK_QCOW2 : VM_DISK_RAW,
		.writable = how & 1,
	};

	if (slots_change(&t->slots, how & 1, how & 2 ? &disk : NULL, on_done, t, NULL) == 0)
		t->asked++;
}

static void say(struct target *t, struct loop *loop, int fd, struct fuzz_input line)
{
	static char room[4096];

	if (line.len > 1 && *line.at == '@') {
		(void)fuzz_byte(&line);
		change(t, fuzz_byte(&line));
	}
	if (send(fd, line.at, line.len, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ||
	    send(fd, "\n", 1, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
		return;
	for (int i = 0; i < TURNS && t->qmp; i++)
		loop_turn(loop, false);
	while (recv(fd, room, sizeof(room), MSG_DONTWAIT) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct target t;
	struct fuzz_input in = { data, size };
	struct loop *loop;
	int pair[2];

	t = (struct target){ .qmp = NULL };
	fuzz_need(loop_new(&loop) == 0);
	fuzz_need(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	fuzz_need(qmp_new(&t.qmp, loop, pair[0], &events, &t, NULL) == 0);
	slots_init(&t.slots, NULL, 2, 2);
	t.slots.generation = 2;
	t.slots.qmp = t.qmp;
	while (in.len > 0 && t.qmp)
		say(&t, loop, pair[1], fuzz_until(&in, '\n'));
	(void)close(pair[1]);
	while (t.qmp)
		loop_turn(loop, true);
	/* Whatever it says, who has asked gets one answer. */
	fuzz_need(t.asked == t.answered);
	slots_done(&t.slots);
	(void)loop_free(loop);
	return 0;
}
