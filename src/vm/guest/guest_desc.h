/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_GUEST_DESC_H
#define NACRE_VM_GUEST_DESC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/process/build_id.h"
#include "vm/guest/kernel_image.h"

/*
 * The description of a guest set, in its file "set": lines "KEY VALUE", all of these keys, in this
 * order, each once.
 *
 *   format 1
 *   release RELEASE      of the kernel, as uname(2) there tells it
 *   version VERSION      of the nacre in it
 *   build ID             of the nacre in it
 *   gate ID              of the nacre-gate in it; "-": there is none, or it has no id
 *   kernel FORM BYTES    vmlinux or bzimage
 *   initrd BYTES
 *   devices HOW          acpi: the machine needs it to find virtio-mmio; mmio: it needs not
 *   memory MIB           the least that it starts with
 *   words WORD…          for the kernel's command line, beside those of the machine
 */

#define GUEST_DESC_BYTES_MAX 4096
#define GUEST_DESC_WORDS_MAX 512
#define GUEST_DESC_VERSION_MAX 63

struct guest_desc {
	char release[KERNEL_RELEASE_MAX + 1];
	char version[GUEST_DESC_VERSION_MAX + 1];
	char build[BUILD_ID_MAX + 1]; /* "-": it had none */
	char gate[BUILD_ID_MAX + 1];  /* "-": none */
	bool is_vmlinux;
	bool needs_acpi;
	unsigned memory_mib;
	uint64_t kernel_bytes;
	uint64_t initrd_bytes;
	char words[GUEST_DESC_WORDS_MAX + 1];
};

/* The file's text, which the caller frees; NULL without memory. */
char *guest_desc_write(const struct guest_desc *d);
/* -EBADMSG with the line that is wrong. */
int guest_desc_read(struct guest_desc *ret, const char *text, size_t len, struct error *err);
/* Its words, parted in place: at most n, with a NULL behind. */
void guest_desc_words(struct guest_desc *d, const char **ret, size_t n);

#endif
