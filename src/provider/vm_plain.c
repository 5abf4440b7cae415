/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <string.h>

#include "vm/guest/guest_set.h"

size_t vms_plain_spec(const struct vms *v, struct guest_set *set,
		      const char *words[VM_WORDS_MAX + 1], struct vm_spec *ret)
{
	const struct vms_config *c = &v->config;
	char why[MACHINE_TEXT_MAX];
	size_t n;

	guest_desc_words(&set->info.desc, words, VM_WORDS_MAX);
	for (n = 0; words[n];)
		n++;
	if (c->emulated && n < VM_WORDS_MAX) {
		words[n++] = GUESTGATE_PATIENCE_WORD "=" GUESTGATE_PATIENCE_TWICE;
		words[n] = NULL;
	}
	vm_spec_init(ret);
	ret->accel = c->is_fast(c->userdata, why, sizeof(why)) ? VM_ACCEL_HARDWARE
		     : c->emulated                             ? VM_ACCEL_EMULATED_TWICE
							       : VM_ACCEL_EMULATED;
	ret->memory_mib = MAX((unsigned)(c->memory >> 20), set->info.desc.memory_mib);
	ret->cpus = c->cpus;
	ret->nested = c->nested;
	ret->kernel_fd = set->kernel_fd;
	ret->initrd_fd = set->initrd_fd;
	ret->words = words;
	ret->n_slots = MACHINE_SLOTS;
	return n;
}

void vms_plain_nics(const struct segment *net, struct vm_nic ret[MACHINE_NICS])
{
	const struct segment_plan plan = segment_plan_usual();

	ret[0].tap_fd = net ? net->tap_fd : -1;
	memcpy(ret[0].mac, plan.guest_mac, sizeof(ret[0].mac));
	for (unsigned n = 0; n < SEGMENT_POD_TAPS; n++) {
		ret[1 + n].tap_fd = net ? net->pod_fds[n] : -1;
		segment_pod_mac(n, ret[1 + n].mac);
	}
}
