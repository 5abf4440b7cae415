/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/signal_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <linux/btf.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "isolate/spawn/btf.h"

/*
 * Theory of operation. The program runs where a signal is generated, in whatever process sends it.
 * It follows pointers of the kernel from the receiver to its group, by offsets that the kernel's
 * own types tell (nothing is guessed): task_struct.cgroups, css_set.dfl_cgrp, cgroup.kn, then the
 * number of that kernfs_node and of those above it. Pointers are followed by typed loads, which the
 * kernel checks, and the program is attached without perf_event_open(2), which our filter refuses.
 *
 * The kernel lets only programs under the GPL read its structures. The few instructions of this one
 * are ours, and may be used under the GPL, version 2, as well as under the licence of this file.
 */

#define SIGNAL_BTF "/sys/kernel/btf/vmlinux"
#define SIGNAL_BTF_MAX ((size_t)64 << 20)
#define SIGNAL_RING ((size_t)256 * 1024)
#define SIGNAL_INSNS 96
#define SIGNAL_STACK (-(int)sizeof(struct signal_event))
#define SIGNAL_RECORD_HEAD 8

struct signal_watch {
	int ring_fd, lost_fd, program_fd, link_fd;
	volatile unsigned long *consumed; /* our page */
	const volatile unsigned long *produced;
	const uint8_t *records;
	const volatile uint64_t *lost;
	size_t page;
};

/* Where what is of interest lies. */
struct signal_offsets {
	int pid, groups, group, node, number, above;
	uint32_t tracepoint;
};

struct signal_code {
	struct bpf_insn insns[SIGNAL_INSNS];
	unsigned n, n_exits;
	unsigned exits[8]; /* jumps to the end */
};

static int signal_bpf(enum bpf_cmd cmd, union bpf_attr *attr)
{
	long r = syscall(SYS_bpf, cmd, attr, sizeof(*attr));

	return r < 0 ? -errno : (int)r;
}

/* Whole: an initializer leaves what is behind its member of a union as it was, and the kernel wants
 * that to be 0. */
static void signal_clear(union bpf_attr *attr)
{
	memset(attr, 0, sizeof(*attr));
}

/* ---- the program ---- */

static void signal_add(struct signal_code *c, uint8_t code, unsigned dst, unsigned src, int off,
		       int32_t imm)
{
	c->insns[c->n++] = (struct bpf_insn){ .code = code,
					      .dst_reg = dst & 15U,
					      .src_reg = src & 15U,
					      .off = (int16_t)off,
					      .imm = imm };
}

static void signal_load(struct signal_code *c, unsigned dst, unsigned src, int off)
{
	signal_add(c, BPF_LDX | BPF_DW | BPF_MEM, dst, src, off, 0);
}

static void signal_store(struct signal_code *c, uint8_t size, int off, unsigned src)
{
	signal_add(c, BPF_STX | size | BPF_MEM, BPF_REG_10, src, SIGNAL_STACK + off, 0);
}

/* Out, with nothing told, where the pointer is none. */
static void signal_exit_if_none(struct signal_code *c, unsigned reg)
{
	c->exits[c->n_exits++] = c->n;
	signal_add(c, BPF_JMP | BPF_JEQ | BPF_K, reg, 0, 0, 0);
}

static void signal_load_pointer(struct signal_code *c, unsigned dst, unsigned src, int off)
{
	signal_load(c, dst, src, off);
	signal_exit_if_none(c, dst);
}

static void signal_load_map(struct signal_code *c, unsigned dst, unsigned kind, int fd)
{
	signal_add(c, BPF_LD | BPF_DW, dst, kind, 0, fd);
	signal_add(c, 0, 0, 0, 0, 0);
}

/* r8: a node whose number goes there, and then the one above it, or 0. */
static void signal_add_group(struct signal_code *c, const struct signal_offsets *o, unsigned i)
{
	size_t at = offsetof(struct signal_event, groups) + i * sizeof(uint64_t);

	if (i > 0) {
		signal_load(c, BPF_REG_8, BPF_REG_8, o->above);
		/* At the top the rest is 0. */
		signal_add(c, BPF_JMP | BPF_JEQ | BPF_K, BPF_REG_8, 0, 0, 0);
	}
	signal_load(c, BPF_REG_2, BPF_REG_8, o->number);
	signal_store(c, BPF_DW, (int)at, BPF_REG_2);
}

static void signal_add_groups(struct signal_code *c, const struct signal_offsets *o)
{
	unsigned tops[SIGNAL_GROUPS];

	signal_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 0);
	for (int i = 0; i < SIGNAL_GROUPS; i++)
		signal_store(c, BPF_DW,
			     (int)offsetof(struct signal_event, groups) + i * (int)sizeof(uint64_t),
			     BPF_REG_2);
	for (unsigned i = 0; i < SIGNAL_GROUPS; i++) {
		tops[i] = c->n + 1;
		signal_add_group(c, o, i);
	}
	for (unsigned i = 1; i < SIGNAL_GROUPS; i++)
		c->insns[tops[i]].off = (int16_t)(c->n - tops[i] - 1);
}

static void signal_compile(struct signal_code *c, const struct signal_offsets *o, int ring_fd,
			   int lost_fd)
{
	*c = (struct signal_code){ .n = 0 };
	/* Of the tracepoint: signal, its details, the task that it is for. */
	signal_load(c, BPF_REG_6, BPF_REG_1, 0);
	signal_load(c, BPF_REG_7, BPF_REG_1, 2 * (int)sizeof(uint64_t));
	signal_store(c, BPF_W, offsetof(struct signal_event, signal), BPF_REG_6);
	signal_add(c, BPF_LDX | BPF_W | BPF_MEM, BPF_REG_2, BPF_REG_7, o->pid, 0);
	signal_store(c, BPF_W, offsetof(struct signal_event, pid), BPF_REG_2);
	signal_load_pointer(c, BPF_REG_8, BPF_REG_7, o->groups);
	signal_load_pointer(c, BPF_REG_8, BPF_REG_8, o->group);
	signal_load_pointer(c, BPF_REG_8, BPF_REG_8, o->node);
	signal_add_groups(c, o);
	signal_load_map(c, BPF_REG_1, BPF_PSEUDO_MAP_FD, ring_fd);
	signal_add(c, BPF_ALU64 | BPF_MOV | BPF_X, BPF_REG_2, BPF_REG_10, 0, 0);
	signal_add(c, BPF_ALU64 | BPF_ADD, BPF_REG_2, 0, 0, SIGNAL_STACK);
	signal_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_3, 0, 0, sizeof(struct signal_event));
	signal_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_4, 0, 0, 0);
	signal_add(c, BPF_JMP | BPF_CALL, 0, 0, 0, BPF_FUNC_ringbuf_output);
	signal_exit_if_none(c, BPF_REG_0);
	signal_load_map(c, BPF_REG_1, BPF_PSEUDO_MAP_VALUE, lost_fd);
	signal_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_2, 0, 0, 1);
	signal_add(c, BPF_STX | BPF_DW | BPF_ATOMIC, BPF_REG_1, BPF_REG_2, 0, BPF_ADD);
	for (unsigned i = 0; i < c->n_exits; i++)
		c->insns[c->exits[i]].off = (int16_t)(c->n - c->exits[i] - 1);
	signal_add(c, BPF_ALU64 | BPF_MOV | BPF_K, BPF_REG_0, 0, 0, 0);
	signal_add(c, BPF_JMP | BPF_EXIT, 0, 0, 0, 0);
}

/* ---- what the kernel has ---- */

static int signal_look(struct signal_offsets *ret, struct error *err)
{
	_cleanup_(buf_done) struct buf data = BUF_INIT;
	struct btf b;
	int r = fd_read_file(AT_FDCWD, SIGNAL_BTF, SIGNAL_BTF_MAX, &data);

	if (r == -ENOENT)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "this kernel does not tell its types (" SIGNAL_BTF
				    ", CONFIG_DEBUG_INFO_BTF)");
	if (r == 0)
		r = btf_take(&b, &data);
	if (r < 0)
		return error_set(err, r, "read " SIGNAL_BTF);
	*ret = (struct signal_offsets){
		.pid = btf_offset(&b, "task_struct", "tgid"),
		.groups = btf_offset(&b, "task_struct", "cgroups"),
		.group = btf_offset(&b, "css_set", "dfl_cgrp"),
		.node = btf_offset(&b, "cgroup", "kn"),
		.number = btf_offset(&b, "kernfs_node", "id"),
		.above = btf_offset(&b, "kernfs_node", "__parent"),
		.tracepoint = btf_find(&b, BTF_KIND_TYPEDEF, "btf_trace_signal_generate"),
	};
	/* Before 6.15. */
	if (ret->above < 0)
		ret->above = btf_offset(&b, "kernfs_node", "parent");
	btf_done(&b);
	if (ret->pid < 0 || ret->groups < 0 || ret->group < 0 || ret->node < 0 || ret->number < 0 ||
	    ret->above < 0 || !ret->tracepoint)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "this kernel has no signals or groups as we know them "
				    "(CONFIG_CGROUPS, CONFIG_BPF_EVENTS)");
	return 0;
}

static int signal_refused(struct error *err, int r, const char *what)
{
	if (r == -EPERM || r == -ENOSYS || r == -EACCES || r == -EINVAL)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "%s: this kernel does not let us: %s (it needs CAP_SYS_ADMIN, "
				    "Linux 5.12 and CONFIG_BPF_SYSCALL)",
				    what, strerror(-r));
	return error_set(err, r, "%s", what);
}

/* ---- the parts ---- */

static int signal_make_maps(struct signal_watch *w, struct error *err)
{
	union bpf_attr ring, lost;
	void *p;

	signal_clear(&ring);
	ring.map_type = BPF_MAP_TYPE_RINGBUF;
	ring.max_entries = SIGNAL_RING;
	signal_clear(&lost);
	lost.map_type = BPF_MAP_TYPE_ARRAY;
	lost.key_size = sizeof(uint32_t);
	lost.value_size = sizeof(uint64_t);
	lost.max_entries = 1;
	lost.map_flags = BPF_F_MMAPABLE;
	w->ring_fd = signal_bpf(BPF_MAP_CREATE, &ring);
	w->lost_fd = w->ring_fd < 0 ? w->ring_fd : signal_bpf(BPF_MAP_CREATE, &lost);
	if (w->lost_fd < 0)
		return signal_refused(err, w->lost_fd, "make a ring for signals");
	p = mmap(NULL, w->page, PROT_READ | PROT_WRITE, MAP_SHARED, w->ring_fd, 0);
	if (p == MAP_FAILED)
		return error_set(err, -errno, "map the ring for signals");
	w->consumed = p;
	/* The records are there twice, one behind the other, so that none is cut. */
	p = mmap(NULL, w->page + 2 * SIGNAL_RING, PROT_READ, MAP_SHARED, w->ring_fd,
		 (off_t)w->page);
	if (p == MAP_FAILED)
		return error_set(err, -errno, "map the ring for signals");
	w->produced = p;
	w->records = (const uint8_t *)p + w->page;
	p = mmap(NULL, w->page, PROT_READ, MAP_SHARED, w->lost_fd, 0);
	if (p == MAP_FAILED)
		return error_set(err, -errno, "map the count of lost signals");
	w->lost = p;
	return 0;
}

static int signal_load_program(struct signal_watch *w, const struct signal_offsets *o,
			       struct error *err)
{
	struct signal_code code;
	union bpf_attr attr;

	signal_clear(&attr);
	attr.prog_type = BPF_PROG_TYPE_TRACING;
	attr.expected_attach_type = BPF_TRACE_RAW_TP;
	attr.attach_btf_id = o->tracepoint;
	signal_compile(&code, o, w->ring_fd, w->lost_fd);
	attr.insns = (uintptr_t)code.insns;
	attr.insn_cnt = code.n;
	attr.license = (uintptr_t) "GPL v2";
	(void)str_copy(attr.prog_name, sizeof(attr.prog_name), "nacre_signals");
	/* EAGAIN: a signal came while the kernel checked the program. */
	do
		w->program_fd = signal_bpf(BPF_PROG_LOAD, &attr);
	while (w->program_fd == -EAGAIN);
	if (w->program_fd < 0)
		return signal_refused(err, w->program_fd, "load a program for signals");
	signal_clear(&attr);
	attr.raw_tracepoint.prog_fd = (uint32_t)w->program_fd;
	w->link_fd = signal_bpf(BPF_RAW_TRACEPOINT_OPEN, &attr);
	return w->link_fd < 0 ? signal_refused(err, w->link_fd, "watch signals") : 0;
}

int signal_watch_open(struct signal_watch **ret, struct error *err)
{
	struct signal_watch *w = calloc(1, sizeof(*w));
	struct signal_offsets o;
	int r;

	if (!w)
		return error_set(err, -ENOMEM, "watch signals");
	*w = (struct signal_watch){ .ring_fd = -1,
				    .lost_fd = -1,
				    .program_fd = -1,
				    .link_fd = -1,
				    .page = (size_t)sysconf(_SC_PAGESIZE) };
	r = signal_look(&o, err);
	if (r == 0)
		r = signal_make_maps(w, err);
	if (r == 0)
		r = signal_load_program(w, &o, err);
	if (r < 0) {
		(void)signal_watch_close(w);
		return r;
	}
	*ret = w;
	return 0;
}

struct signal_watch *signal_watch_close(struct signal_watch *w)
{
	if (!w)
		return NULL;
	(void)fd_close(w->link_fd);
	(void)fd_close(w->program_fd);
	if (w->consumed)
		(void)munmap((void *)(uintptr_t)w->consumed, w->page);
	if (w->produced)
		(void)munmap((void *)(uintptr_t)w->produced, w->page + 2 * SIGNAL_RING);
	if (w->lost)
		(void)munmap((void *)(uintptr_t)w->lost, w->page);
	(void)fd_close(w->ring_fd);
	(void)fd_close(w->lost_fd);
	free(w);
	return NULL;
}

/* ---- reading ---- */

int signal_watch_fd(const struct signal_watch *w)
{
	return w->ring_fd;
}

uint64_t signal_watch_lost(const struct signal_watch *w)
{
	return *w->lost;
}

/* The other side writes the length of a record last, with a bit set until then. */
int signal_watch_next(struct signal_watch *w, struct signal_event *ret)
{
	unsigned long at = *w->consumed;
	uint32_t len;
	bool found;

	do {
		const uint8_t *record = w->records + (at & (SIGNAL_RING - 1));

		if (at == __atomic_load_n(w->produced, __ATOMIC_ACQUIRE))
			return 0;
		len = __atomic_load_n((const uint32_t *)(const void *)record, __ATOMIC_ACQUIRE);
		if (len & BPF_RINGBUF_BUSY_BIT)
			return 0;
		found = !(len & BPF_RINGBUF_DISCARD_BIT);
		len &= ~BPF_RINGBUF_DISCARD_BIT;
		if (found)
			memcpy(ret, record + SIGNAL_RECORD_HEAD, sizeof(*ret));
		at += (len + SIGNAL_RECORD_HEAD + 7) / 8 * 8;
		__atomic_store_n(w->consumed, at, __ATOMIC_RELEASE);
	} while (!found);
	return 1;
}
