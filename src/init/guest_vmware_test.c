/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_vmware.h"

#include <signal.h>
#include <string.h>
#include <ucontext.h>

#include "unit.h"

/* The host of the machine is a handler: an IN by a process without the right to ports faults. */

#define PORT 0x5658
#define ID 3
#define HIGH 0x11223344
#define LOW 0x55667788

static struct {
	const char *answer;
	char heard[256];
	size_t size, at, said;
	int opened, closed, moves;
	bool absent, silent, wrong;
} host;

static void host_answer(greg_t *g, uint32_t step)
{
	uint32_t status = 1, ebx = (uint32_t)g[REG_RBX], word = 0;
	size_t len = strlen(host.answer);

	if (step != 0 && ((uint32_t)g[REG_RSI] != HIGH || (uint32_t)g[REG_RDI] != LOW ||
			  ((uint32_t)g[REG_RDX] >> 16) != ID))
		host.wrong = true;
	switch (step) {
	case 0:
		host.wrong = host.wrong || ebx != (0x49435052U | 0x80000000U);
		host.opened++;
		host.at = host.said = 0;
		memset(host.heard, 0, sizeof(host.heard));
		g[REG_RDX] = ID << 16 | PORT;
		g[REG_RSI] = HIGH;
		g[REG_RDI] = LOW;
		break;
	case 1:
		host.size = ebx;
		break;
	case 2:
		if (host.at + 4 < sizeof(host.heard))
			memcpy(host.heard + host.at, &ebx, 4);
		host.at += 4;
		break;
	case 3:
		if (host.moves > 0) {
			host.moves--;
			status = 0x10;
			break;
		}
		status = host.silent ? 1 : 3;
		g[REG_RBX] = (greg_t)len;
		break;
	case 4:
		memcpy(&word, host.answer + host.said, len - host.said < 4 ? len - host.said : 4);
		host.said += 4;
		g[REG_RBX] = word;
		break;
	case 5:
		host.wrong = host.wrong || host.said < len;
		break;
	case 6:
		host.closed++;
		break;
	default:
		host.wrong = true;
	}
	g[REG_RCX] = (greg_t)(status << 16 | 30);
}

static void on_fault(int sig, siginfo_t *info, void *context)
{
	greg_t *g = ((ucontext_t *)context)->uc_mcontext.gregs;

	(void)info;
	if (*(const uint8_t *)g[REG_RIP] != 0xed || (uint32_t)g[REG_RAX] != 0x564d5868 ||
	    (g[REG_RDX] & 0xffff) != PORT || (g[REG_RCX] & 0xffff) != 30) {
		(void)signal(sig, SIG_DFL);
		return;
	}
	g[REG_RIP]++;
	if (host.absent)
		g[REG_RAX] = 0xffffffff;
	else
		host_answer(g, (uint32_t)g[REG_RCX] >> 16);
}

static int ask(const char *question, struct buf *ret, struct error *err)
{
	host.opened = host.closed = 0;
	host.wrong = false;
	return guest_vmware_exchange(question, ret, err);
}

static void a_host(void)
{
	const struct sigaction on = { .sa_sigaction = on_fault, .sa_flags = SA_SIGINFO };

	CHECK_INT(sigaction(SIGSEGV, &on, NULL), 0);
}

static void answers(void)
{
	static const char *const all[] = { "", "a", "ab", "abc", "a text of more than a word" };
	char said[64];

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT;
		struct error err = ERROR_INIT;

		(void)snprintf(said, sizeof(said), "1 %s", all[i]);
		host.answer = said;
		CHECK_INT(ask("info-get guestinfo.userdata", &b, &err), 0);
		CHECK_STR(host.heard, "info-get guestinfo.userdata");
		CHECK_INT(host.size, strlen(host.heard));
		CHECK_INT(buf_add(&b, "", 1), 0);
		CHECK_STR((const char *)buf_data(&b), all[i]);
		CHECK(!host.wrong);
		CHECK_INT(host.opened, 1);
		CHECK_INT(host.closed, 1);
	}
}

static void refusals(void)
{
	static const struct {
		const char *answer;
		bool absent, silent;
		int moves;
		enum error_kind kind;
		const char *text;
	} all[] = {
		{ "0 No value found", false, false, 0, ERROR_NOT_FOUND, "No value found" },
		{ "1 x", true, false, 0, ERROR_UNAVAILABLE, "no host" },
		{ "1 x", false, false, 9, ERROR_UNAVAILABLE, "no host" },
		{ "1 x", false, true, 0, ERROR_FAULT, "ask the host" },
		{ "", false, false, 0, ERROR_FAULT, "read what" },
		{ "2 x", false, false, 0, ERROR_FAULT, "read what" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(all); i++) {
		_cleanup_(buf_done) struct buf b = BUF_INIT;
		struct error err = ERROR_INIT;

		host.answer = all[i].answer;
		host.absent = all[i].absent;
		host.silent = all[i].silent;
		host.moves = all[i].moves;
		CHECK(ask("x", &b, &err) < 0);
		CHECK(strstr(error_text(&err), all[i].text) != NULL);
		if (all[i].kind != ERROR_FAULT)
			CHECK_INT(err.kind, all[i].kind);
		CHECK_INT(b.len, 0);
		CHECK_INT(host.closed, host.opened);
	}
	host.absent = host.silent = false;
	host.moves = 0;
}

static void a_machine_that_moves(void)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct error err = ERROR_INIT;

	host.answer = "1 ab";
	host.moves = 2;
	CHECK_INT(ask("x", &b, &err), 0);
	CHECK_INT(b.len, 2);
	CHECK_INT(host.opened, 3);
	CHECK_INT(host.closed, 3);
}

UNIT_MAIN({ "a host", a_host, true }, { "answers", answers }, { "refusals", refusals },
	  { "a machine that moves", a_machine_that_moves })
