/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qmp.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "loop/wait_test.h"
#include "unit.h"
#include "vm/qemu/qemu_slots.h"

static void put_a(struct json *j, const void *what)
{
	json_put_string(j, "a", what);
}

static const struct qmp_command ask_one = { .name = "one", .fd = -1 };
static const struct qmp_command ask_two = { .name = "two", .put = put_a, .what = "\"1", .fd = -1 };

#define GREETING "{\"QMP\": {\"version\": {}, \"capabilities\": [\"oob\"]}}\r\n"
#define FIRST "{\"execute\":\"qmp_capabilities\",\"id\":1}\n"

/* Both ends of a conversation: `far` is QEMU's. */
struct bed {
	struct loop *loop;
	struct qmp *qmp;
	int far;
	bool ready, ended, free_in_event;
	struct error end;
	char event[64], data[64];
	char answers[256];
	char heard[4096];
	size_t n_heard;
	int heard_fd;
};

static void bed_on_ready(struct qmp *q, void *owner)
{
	((struct bed *)owner)->ready = true;
}

static void bed_on_event(struct qmp *q, const char *name, const struct json_value *data,
			 void *owner)
{
	struct bed *b = owner;
	const struct json_value *v = data ? json_member(data, "reason") : NULL;

	(void)str_copy(b->event, sizeof(b->event), name);
	(void)str_copy(b->data, sizeof(b->data), v ? v->text : "");
	if (b->free_in_event)
		b->qmp = qmp_free(b->qmp);
}

static void bed_on_end(struct qmp *q, const struct error *err, void *owner)
{
	struct bed *b = owner;

	b->ended = true;
	(void)error_copy(&b->end, err);
	b->qmp = qmp_free(b->qmp);
}

static const struct qmp_events bed_events = {
	.on_ready = bed_on_ready,
	.on_event = bed_on_event,
	.on_end = bed_on_end,
};

/* What was answered, with a blank behind each. */
static void bed_on_answer(const struct json_value *answer, const struct error *err, void *data)
{
	struct bed *b = data;
	size_t n = strlen(b->answers);

	(void)snprintf(b->answers + n, sizeof(b->answers) - n, "%s ",
		       err                           ? err->text
		       : answer->kind == JSON_NUMBER ? answer->text
						     : "object");
}

static void bed_done(struct bed *b)
{
	(void)qmp_free(b->qmp);
	(void)fd_close(b->far);
	(void)fd_close(b->heard_fd);
	(void)loop_free(b->loop);
}

static bool bed_init(struct bed *b)
{
	int pair[2];

	*b = (struct bed){ .far = -1, .heard_fd = -1, .end = ERROR_INIT };
	if (loop_new(&b->loop) < 0 ||
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
		CHECK(false);
		return false;
	}
	b->far = pair[1];
	if (qmp_new(&b->qmp, b->loop, pair[0], &bed_events, b, NULL) < 0) {
		(void)fd_close(pair[0]);
		CHECK(false);
		return false;
	}
	return true;
}

static void bed_says(const struct bed *b, const char *text)
{
	CHECK(send(b->far, text, strlen(text), MSG_NOSIGNAL) == (ssize_t)strlen(text));
}

/* What was said to QEMU so far, with the last descriptor. */
static void bed_hear(struct bed *b)
{
	_Alignas(struct cmsghdr) char room[CMSG_SPACE(sizeof(int))];
	struct iovec io = { b->heard + b->n_heard, sizeof(b->heard) - 1 - b->n_heard };
	struct msghdr m = {
		.msg_iov = &io, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof(room)
	};
	ssize_t n = recvmsg(b->far, &m, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;

	if (n > 0)
		b->n_heard += (size_t)n;
	b->heard[b->n_heard] = '\0';
	if (c && c->cmsg_type == SCM_RIGHTS) {
		(void)fd_close(b->heard_fd);
		memcpy(&b->heard_fd, CMSG_DATA(c), sizeof(int));
	}
}

static bool bed_heard(struct bed *b, const char *text)
{
	bed_hear(b);
	return strstr(b->heard, text) != NULL;
}

static bool bed_ready(struct bed *b)
{
	if (!bed_init(b))
		return false;
	bed_says(b, GREETING);
	LOOP_WAIT(b->loop, bed_heard(b, FIRST) || b->ended);
	bed_says(b, "{\"return\": {}, \"id\": 1}\r\n");
	LOOP_WAIT(b->loop, b->ready || b->ended);
	return b->ready && b->qmp;
}

static void asks_one_after_the_other(void)
{
	_cleanup_(bed_done) struct bed b;

	if (!bed_ready(&b))
		return;
	CHECK(qmp_ask(b.qmp, &ask_one, bed_on_answer, &b, NULL) == 0);
	CHECK(qmp_ask(b.qmp, &ask_two, bed_on_answer, &b, NULL) == 0);
	bed_hear(&b);
	CHECK_STR(b.heard, FIRST "{\"execute\":\"one\",\"id\":2}\n");
	bed_says(&b, "{\"id\": 2, \"return\": 7}\r\n");
	LOOP_WAIT(
		b.loop,
		bed_heard(&b, "{\"execute\":\"two\",\"id\":3,\"arguments\":{\"a\":\"\\\"1\"}}\n") ||
			b.ended);
	bed_says(&b, "{\"id\": 3, \"error\": {\"class\": \"X\", \"desc\": \"not \\u0007so\"}}\r\n");
	LOOP_WAIT(b.loop, strlen(b.answers) > 3 || b.ended);
	CHECK_STR(b.answers, "7 the machine's monitor refused: not ?so ");
}

static void tells_events(void)
{
	_cleanup_(bed_done) struct bed b;

	if (!bed_ready(&b))
		return;
	bed_says(&b, "{\"event\": \"SHUTDOWN\", \"data\": {\"reason\": \"guest-reset\"}}\n");
	LOOP_WAIT(b.loop, b.event[0] || b.ended);
	CHECK_STR(b.event, "SHUTDOWN");
	CHECK_STR(b.data, "guest-reset");
	b.free_in_event = true;
	bed_says(&b, "{\"event\": \"STOP\"}\n{\"event\": \"RESUME\"}\n");
	LOOP_WAIT(b.loop, !b.qmp);
	CHECK_STR(b.event, b.ended ? b.event : "STOP");
}

static void sends_a_descriptor_along(void)
{
	_cleanup_fd_ int null_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	struct qmp_command command = { .name = "add-fd" };
	_cleanup_(bed_done) struct bed b;
	struct stat a, z = { 0 };

	if (!bed_ready(&b))
		return;
	command.fd = null_fd;
	CHECK(qmp_ask(b.qmp, &command, NULL, NULL, NULL) == 0);
	bed_hear(&b);
	CHECK(fstat(null_fd, &a) == 0 && b.heard_fd >= 0 && fstat(b.heard_fd, &z) == 0 &&
	      a.st_ino == z.st_ino);
}

static void fails_what_waits_at_the_end(void)
{
	_cleanup_(bed_done) struct bed b;

	if (!bed_ready(&b))
		return;
	CHECK(qmp_ask(b.qmp, &ask_one, bed_on_answer, &b, NULL) == 0);
	CHECK(qmp_ask(b.qmp, &ask_two, bed_on_answer, &b, NULL) == 0);
	b.far = fd_close(b.far);
	LOOP_WAIT(b.loop, b.ended);
	CHECK_STR(b.answers, "the machine's monitor is gone the machine's monitor is gone ");
	CHECK_INT(b.end.code, 0);
}

static void takes_so_many(void)
{
	struct error err = ERROR_INIT;
	_cleanup_(bed_done) struct bed b;

	if (!bed_ready(&b))
		return;
	for (int i = 0; i < QMP_WAITING_MAX; i++)
		CHECK(qmp_ask(b.qmp, &ask_one, NULL, NULL, NULL) == 0);
	CHECK(qmp_ask(b.qmp, &ask_one, NULL, NULL, &err) < 0);
	CHECK(err.kind == ERROR_EXHAUSTED || err.code == -ENOMEM);
}

/* What a stranger says: the end, and why. */
static void ends_with_a_liar(void)
{
	static const struct {
		const char *says, *why;
	} cases[] = {
		{ "[]\n", "the machine's monitor sent something else than an object" },
		{ GREETING, "the machine's monitor sent a second greeting" },
		{ "{\"return\": {}, \"id\": 2}\n",
		  "the machine's monitor sent an answer that nobody asked for" },
		{ "{\"return\": {}}\n",
		  "the machine's monitor sent an answer that nobody asked for" },
		{ "{\"event\": 1}\n", "the machine's monitor sent an event that is none" },
		{ "{\"event\": \"a\", \"data\": 1}\n",
		  "the machine's monitor sent an event that is none" },
		{ "{\"event\": \"a\", \"return\": 1}\n",
		  "the machine's monitor sent neither an answer nor an event" },
		{ "{}\n", "the machine's monitor sent neither an answer nor an event" },
		{ "{\n", "read what the machine's monitor sent: " },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		_cleanup_(bed_done) struct bed b;

		if (!bed_ready(&b))
			return;
		bed_says(&b, cases[i].says);
		LOOP_WAIT(b.loop, b.ended);
		CHECK(strncmp(b.end.text, cases[i].why, strlen(cases[i].why)) == 0);
	}
}

/* The answer to another question than the one that waits. */
static void ends_with_who_is_mistaken(void)
{
	_cleanup_(bed_done) struct bed b;

	if (!bed_ready(&b))
		return;
	CHECK(qmp_ask(b.qmp, &ask_one, bed_on_answer, &b, NULL) == 0);
	CHECK(qmp_ask(b.qmp, &ask_two, bed_on_answer, &b, NULL) == 0);
	bed_says(&b, "{\"return\": {}, \"id\": 3}\n");
	LOOP_WAIT(b.loop, b.ended);
	CHECK_STR(b.end.text, "the machine's monitor sent an answer that nobody asked for");
}

static void bed_says_long(struct bed *b, size_t n, char last)
{
	char block[4096];

	memset(block, ' ', sizeof(block));
	for (size_t i = 0; i < n && b->qmp; i += sizeof(block)) {
		if (i + sizeof(block) >= n)
			block[sizeof(block) - 1] = last;
		while (send(b->far, block, sizeof(block), MSG_NOSIGNAL) < 0 && errno == EAGAIN)
			loop_turn(b->loop, false);
	}
}

static void bounds_a_line(void)
{
	_cleanup_(bed_done) struct bed b;

	if (!bed_ready(&b))
		return;
	bed_says(&b, "{\"event\": \"LONG\"}");
	bed_says_long(&b, QMP_LINE_MAX - 4096, '\n');
	LOOP_WAIT(b.loop, b.event[0] || b.ended);
	CHECK_STR(b.event, "LONG");
	bed_says_long(&b, QMP_LINE_MAX, ' ');
	LOOP_WAIT(b.loop, b.ended);
	CHECK_STR(b.end.text, "the machine's monitor sent too long a line");
}

/* ---- slots ---- */

struct change {
	struct error err;
	unsigned n;
};

static void change_on_done(struct vm *vm, const struct error *err, void *data)
{
	struct change *c = data;

	c->n++;
	(void)error_copy(&c->err, err);
}

/* QEMU is asked this, and says that. */
static void bed_answers(struct bed *b, unsigned id, const char *asked, const char *says)
{
	char line[128], want[64];

	(void)snprintf(want, sizeof(want), "\"id\":%u,", id);
	LOOP_WAIT(b->loop, bed_heard(b, want) || b->ended);
	CHECK(strstr(b->heard, asked) != NULL);
	(void)snprintf(line, sizeof(line), "{\"id\": %u, %s}\n", id, says);
	bed_says(b, line);
}

#define FINE "\"return\": {}"
#define WRONG "\"error\": {\"class\": \"X\", \"desc\": \"no\"}"

static void changes_a_slot_by_commands(void)
{
	struct vm_disk disk = { .fd = STDIN_FILENO };
	struct change c = { .err = ERROR_INIT };
	struct error err = ERROR_INIT;
	_cleanup_(bed_done) struct bed b;
	static struct slots s;

	if (!bed_ready(&b))
		return;
	slots_init(&s, NULL, 2, 2);
	s.qmp = b.qmp;
	if (slots_change(&s, 0, &disk, change_on_done, &c, NULL) < 0) {
		CHECK(false);
		return;
	}
	CHECK(slots_change(&s, 0, &disk, change_on_done, &c, &err) < 0);
	CHECK(err.kind == ERROR_ABORTED);
	bed_answers(&b, 2, "add-fd", FINE);
	bed_answers(&b, 3, "blockdev-add", FINE);
	bed_answers(&b, 4, "blockdev-reopen", FINE);
	LOOP_WAIT(b.loop, c.n || b.ended);
	CHECK(c.n == 1 && (c.err.code == 0 || b.ended));
	s.qmp = b.qmp;
	CHECK(slots_change(&s, 0, NULL, change_on_done, &c, NULL) == 0 || b.ended);
	bed_answers(&b, 5, "\"file\":\"none0\"", FINE);
	bed_answers(&b, 6, "blockdev-del", FINE);
	CHECK_INT(c.n, 1);
	bed_answers(&b, 7, "remove-fd", WRONG);
	LOOP_WAIT(b.loop, c.n == 2 || b.ended);
	CHECK_INT(c.err.code, 0);
	slots_done(&s);
}

static void takes_back_what_fails(void)
{
	struct vm_disk disk = { .fd = STDIN_FILENO, .format = VM_DISK_QCOW2, .writable = true };
	struct change c = { .err = ERROR_INIT };
	_cleanup_(bed_done) struct bed b;
	static struct slots s;

	if (!bed_ready(&b))
		return;
	slots_init(&s, NULL, 2, 2);
	s.qmp = b.qmp;
	if (slots_change(&s, 1, &disk, change_on_done, &c, NULL) < 0) {
		CHECK(false);
		return;
	}
	bed_answers(&b, 2, "add-fd", FINE);
	bed_answers(&b, 3, "\"driver\":\"file\"", FINE);
	bed_answers(&b, 4, "\"driver\":\"qcow2\"", WRONG);
	bed_answers(&b, 5, "\"node-name\":\"image", WRONG);
	bed_answers(&b, 6, "\"node-name\":\"file", FINE);
	bed_answers(&b, 7, "remove-fd", FINE);
	LOOP_WAIT(b.loop, c.n || b.ended);
	CHECK_STR(c.err.text, "change slot 1: the machine's monitor refused: no");
	CHECK(!s.slot[1].filled && !s.slot[1].busy);
	slots_done(&s);
}

static nsec_t new_clock(int clock_id)
{
	return 0;
}

static void learns_what_is_in_slots(void)
{
	static const char text[] =
		"[{\"inserted\":{\"node-name\":\"image0\",\"file\":\"/dev/fdset/0\"}},"
		"{\"inserted\":{\"node-name\":\"slot0\",\"file\":\"null-co://\",\"ro\":true}},"
		"{\"inserted\":{\"node-name\":\"slot99\",\"file\":\"null-co://\",\"ro\":true}},"
		"{\"inserted\":{\"node-name\":\"slot2\",\"file\":\"/dev/fdset/66\",\"ro\":false}}]";
	static const char names[] =
		"[7,{\"fdset-id\":\"66\",\"fds\":[]},{\"fdset-id\":66,\"fds\":{}},"
		"{\"fdset-id\":66,\"fds\":[{\"fd\":9,\"opaque\":\"sha256:12\"}]},"
		"{\"fdset-id\":160000,\"fds\":[]},"
		"{\"fdset-id\":0,\"fds\":[{\"fd\":9,\"opaque\":\"x\"}]}]";
	_cleanup_(arena_done) struct arena arena = ARENA_INIT;
	struct json_value *v = NULL;
	static struct slots s;

	clock_set_source(new_clock);
	slots_init(&s, NULL, 0, 0);
	clock_set_source(NULL);
	CHECK(slots_learn(&s, NULL, NULL) < 0);
	if (json_parse(&v, &arena, text, strlen(text), NULL) < 0) {
		CHECK(false);
		return;
	}
	CHECK(slots_learn(&s, v, NULL) == 0);
	CHECK(s.n == 3 && s.writable == 4);
	CHECK(!s.slot[0].filled && s.slot[2].filled && s.slot[2].set == 66);
	CHECK(slots_learn_names(&s, NULL, NULL) < 0);
	v = NULL;
	if (json_parse(&v, &arena, names, strlen(names), NULL) < 0) {
		CHECK(false);
		return;
	}
	CHECK(slots_learn_names(&s, v, NULL) == 0);
	CHECK_STR(s.slot[2].name, "sha256:12");
	CHECK_STR(s.slot[0].name, "");
	CHECK_INT(s.generation, 5001);
}

static nsec_t old_clock(int clock_id)
{
	return 400 * (nsec_t)86400 * NSEC_PER_SEC;
}

/* However long a host runs, QEMU can read the numbers of sets: as an int. */
static void numbers_sets_on_an_old_host(void)
{
	static struct slots s;

	clock_set_source(old_clock);
	slots_init(&s, NULL, 1, 0);
	clock_set_source(NULL);
	CHECK(s.generation >= 1);
	CHECK((s.generation + (1 << 20)) * SLOTS_PER_SET + SLOTS_PER_SET - 1 <= INT32_MAX);
}

UNIT_MAIN({ "asks one after the other", asks_one_after_the_other },
	  { "tells events", tells_events },
	  { "sends a descriptor along", sends_a_descriptor_along },
	  { "fails what waits at the end", fails_what_waits_at_the_end },
	  { "takes so many", takes_so_many }, { "ends with a liar", ends_with_a_liar },
	  { "ends with who is mistaken", ends_with_who_is_mistaken },
	  { "bounds a line", bounds_a_line },
	  { "changes a slot by commands", changes_a_slot_by_commands },
	  { "takes back what fails", takes_back_what_fails },
	  { "learns what is in slots", learns_what_is_in_slots },
	  { "numbers sets on an old host", numbers_sets_on_an_old_host })
