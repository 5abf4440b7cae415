/* SPDX-License-Identifier: Apache-2.0 */
#include "init/guest_vmware.h"

#include <errno.h>
#include <stdbool.h>
#include <string.h>
#include <sys/io.h>

#include "base/macros.h"

#define VMWARE_PORT 0x5658U
#define VMWARE_MESSAGE 30U
#define VMWARE_RPCI 0x49435052U
#define VMWARE_COOKIE 0x80000000U /* the channel has a secret of its own */
#define VMWARE_TRIES 4

enum vmware_step {
	VMWARE_OPEN,
	VMWARE_SEND_SIZE,
	VMWARE_SEND,
	VMWARE_RECEIVE_SIZE,
	VMWARE_RECEIVE,
	VMWARE_RECEIVED,
	VMWARE_CLOSE,
};

enum vmware_status {
	VMWARE_SUCCESS = 0x1,
	VMWARE_HAS_ANSWER = 0x2,
	VMWARE_MOVED = 0x10, /* the machine is another one since: all begins anew */
};

struct vmware_channel {
	uint32_t id, cookie_high, cookie_low;
};

struct vmware_registers {
	uint32_t ebx, ecx, edx, esi, edi;
};

/* Once in the program: the tests stop a machine in front of it (tests/lib/fake_guest.py). */
__attribute__((noinline)) static void vmware_in(struct vmware_registers *r)
{
	uint32_t eax;

	__asm__ volatile("movl $0x564d5868, %%eax\n\t"
			 "inl %%dx, %%eax"
			 : "=&a"(eax), "+b"(r->ebx), "+c"(r->ecx), "+d"(r->edx), "+S"(r->esi),
			   "+D"(r->edi)
			 :
			 : "memory", "cc");
	(void)eax;
}

/* 0, -EAGAIN where the machine was moved meanwhile, or -EREMOTEIO. */
static int vmware_step(const struct vmware_channel *c, enum vmware_step step, uint32_t value,
		       struct vmware_registers *ret)
{
	struct vmware_registers r = {
		.ebx = value,
		.ecx = (uint32_t)step << 16 | VMWARE_MESSAGE,
		.edx = c->id << 16 | VMWARE_PORT,
		.esi = c->cookie_high,
		.edi = c->cookie_low,
	};

	vmware_in(&r);
	*ret = r;
	if (r.ecx >> 16 & VMWARE_SUCCESS)
		return 0;
	return r.ecx >> 16 & VMWARE_MOVED ? -EAGAIN : -EREMOTEIO;
}

static int vmware_open(struct vmware_channel *ret)
{
	struct vmware_registers r;
	int k = vmware_step(&(struct vmware_channel){ .id = 0 }, VMWARE_OPEN,
			    VMWARE_RPCI | VMWARE_COOKIE, &r);

	*ret = (struct vmware_channel){ .id = r.edx >> 16,
					.cookie_high = r.esi,
					.cookie_low = r.edi };
	/* Where no host answers, the registers stay as they were or are all ones. */
	return k < 0 || r.ecx == UINT32_MAX ? -EREMOTEIO : 0;
}

static int vmware_send(const struct vmware_channel *c, const char *text)
{
	size_t len = strlen(text), at = 0;
	struct vmware_registers r;
	int k = vmware_step(c, VMWARE_SEND_SIZE, (uint32_t)len, &r);

	while (k == 0 && at < len) {
		uint32_t word = 0;

		memcpy(&word, text + at, MIN(len - at, sizeof(word)));
		k = vmware_step(c, VMWARE_SEND, word, &r);
		at += sizeof(word);
	}
	return k;
}

static int vmware_receive(const struct vmware_channel *c, struct buf *ret)
{
	struct vmware_registers r;
	int k = vmware_step(c, VMWARE_RECEIVE_SIZE, 0, &r);
	size_t len = r.ebx;

	if (k < 0)
		return k;
	if (!(r.ecx >> 16 & VMWARE_HAS_ANSWER) || len > VMWARE_ANSWER_MAX)
		return -EBADMSG;
	while (k == 0 && len > 0) {
		size_t n = MIN(len, sizeof(r.ebx));

		k = vmware_step(c, VMWARE_RECEIVE, VMWARE_SUCCESS, &r);
		if (k == 0)
			k = buf_add(ret, &r.ebx, n);
		len -= n;
	}
	return k < 0 ? k : vmware_step(c, VMWARE_RECEIVED, VMWARE_SUCCESS, &r);
}

static int vmware_once(const char *question, struct buf *answer)
{
	struct vmware_registers r;
	struct vmware_channel c;
	int k = vmware_open(&c);

	if (k < 0)
		return k;
	k = vmware_send(&c, question);
	if (k == 0)
		k = vmware_receive(&c, answer);
	(void)vmware_step(&c, VMWARE_CLOSE, 0, &r);
	return k;
}

/* "1 ANSWER", or "0 REASON". */
static int vmware_read(const struct buf *answer, struct buf *ret, struct error *err)
{
	const char *text = answer->len ? (const char *)buf_data(answer) : "";
	int r;

	if (answer->len >= 2 && text[0] == '0' && text[1] == ' ')
		return error_refuse(err, ERROR_NOT_FOUND, "the host of this machine says: %.*s",
				    (int)MIN(answer->len - 2, (size_t)128), text + 2);
	if (answer->len < 1 || text[0] != '1' || (answer->len >= 2 && text[1] != ' '))
		return error_set(err, -EBADMSG, "read what the host of this machine says");
	r = answer->len > 2 ? buf_add(ret, text + 2, answer->len - 2) : 0;
	return r < 0 ? error_set(err, r, "keep what the host of this machine says") : 0;
}

int guest_vmware_exchange(const char *question, struct buf *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf answer = BUF_INIT_LIMIT(VMWARE_ANSWER_MAX);
	int r = -EAGAIN;

	for (int i = 0; i < VMWARE_TRIES && r == -EAGAIN; i++) {
		buf_clear(&answer);
		r = vmware_once(question, &answer);
	}
	if (r == -EREMOTEIO || r == -EAGAIN)
		r = error_refuse(err, ERROR_UNAVAILABLE,
				 "no host of VMware answers this machine at its port");
	else if (r < 0)
		r = error_set(err, r, "ask the host of this machine");
	else
		r = vmware_read(&answer, ret, err);
	if (answer.base)
		explicit_bzero(answer.base, answer.size);
	return r;
}

int guest_vmware_ask(const char *question, struct buf *ret, struct error *err)
{
	int r;

	/* VMware needs it only where the machine's settings say so. */
	if (iopl(3) < 0)
		return error_set(err, -errno, "get the right to the port of this machine's host");
	r = guest_vmware_exchange(question, ret, err);
	/* What is started from here would have it too. */
	if (iopl(0) < 0 && r == 0)
		r = error_set(err, -errno, "give the right to ports back");
	return r;
}
