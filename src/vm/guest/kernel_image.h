/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_KERNEL_IMAGE_H
#define NACRE_VM_KERNEL_IMAGE_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * A kernel as a file: a bzImage, which unpacks itself when it starts, or the vmlinux within, which
 * a VMM can enter at once (PVH) and which is up a quarter of a second earlier where the processor
 * is emulated.
 */

#define KERNEL_IMAGE_MAX (UINT64_C(256) << 20) /* bytes, also of what is unpacked */
#define KERNEL_IMAGE_HEAD 0x250
#define KERNEL_RELEASE_MAX 64 /* the limit of uname(2) */

struct kernel_image {
	struct buf data;
	bool is_vmlinux; /* else a bzImage */
	char release[KERNEL_RELEASE_MAX + 1];
};

#define KERNEL_IMAGE_INIT                                                                          \
	{                                                                                          \
		.data = BUF_INIT                                                                   \
	}

/*
 * Takes the file over (*data is empty afterwards). A bzImage becomes the vmlinux within where that
 * is packed in a way that this program reads (LZ4, as Debian 12 does) and can be entered; else it
 * stays what it is, and *ret_why says why, for a person: NULL where it is a vmlinux now.
 * ERROR_INVALID for what is no kernel of x86-64.
 */
int kernel_image_take(struct kernel_image *k, struct buf *data, const char **ret_why,
		      struct error *err);
void kernel_image_done(struct kernel_image *k);
/* Whether a file that begins so may be one, of any age; KERNEL_IMAGE_HEAD bytes are enough. Whether
 * there is a way in is seen by whoever goes in. ERROR_INVALID. */
int kernel_image_check_head(const uint8_t *head, size_t len, struct error *err);

/* Its virtio-mmio devices can be named on its command line; else it needs ACPI to find them. Known
 * of a vmlinux only. */
bool kernel_image_finds_mmio(const struct kernel_image *k);
/* Bytes of memory that it takes before it does anything, roughly. */
uint64_t kernel_image_memory(const struct kernel_image *k);

/* Frames as `lz4 -l` makes them, appended to out: -EBADMSG for other bytes, -EFBIG past max. */
int kernel_image_unlz4(const uint8_t *data, size_t len, size_t max, struct buf *out);

#endif
