/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_PROBE_RECORD_H
#define NACRE_VM_PROBE_RECORD_H

#include "base/log/error.h"

/*
 * The verdict on hardware virtualization on this host, as it was tried once (vm/probe/probe.h) and
 * written to the root directory. It holds for one release of the host's kernel, one QEMU and one
 * guest: with another of either it has not been tried.
 */

enum probe_verdict {
	PROBE_UNTRIED,
	PROBE_WORKS,     /* a guest came up */
	PROBE_NO_DEVICE, /* there is no KVM to try */
	PROBE_NO_GUEST,  /* KVM opens, but no guest comes up */
	PROBE_VERDICT_COUNT
};

#define PROBE_TEXT_MAX 255
#define PROBE_OF_MAX 191 /* bytes of the name of a guest, printable */

struct probe_record {
	enum probe_verdict verdict;
	char text[PROBE_TEXT_MAX + 1]; /* a sentence, printable */
};

/* Says no, without trying, where /dev/kvm is missing or cannot be opened: PROBE_NO_DEVICE, else
 * PROBE_UNTRIED. Never written down: a device may come. */
void probe_look(struct probe_record *ret);

/* The verdict about this host: that of probe_look(), or else the record in root_fd. Never fails: a
 * record that cannot be read, or is of another kernel, QEMU or guest, is PROBE_UNTRIED. of: the
 * guest, by a name; NULL: the guest that was tried last. */
void probe_read(struct probe_record *ret, int root_fd, const char *of);
/* Writes it down for this kernel, this QEMU and this guest. */
int probe_write(const struct probe_record *record, int root_fd, const char *of, struct error *err);

#endif
