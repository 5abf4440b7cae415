/* SPDX-License-Identifier: Apache-2.0 */

/* Files of a kernel that somebody gives: an image, packed or not, and a module. */

#include "fuzz.h"
#include "vm/guest/elf64.h"
#include "vm/guest/kernel_image.h"
#include "vm/guest/kmod.h"

static int on_needed(void *userdata, const char *name, struct error *err)
{
	fuzz_need(*name != '\0');
	return 0;
}

static void fuzz_image(const uint8_t *data, size_t size)
{
	struct kernel_image k = KERNEL_IMAGE_INIT;
	struct buf b = BUF_INIT;
	const char *why = NULL;

	fuzz_need(buf_add(&b, data, size) == 0);
	if (kernel_image_take(&k, &b, &why, NULL) == 0) {
		fuzz_need(*k.release != '\0');
		fuzz_need(k.is_vmlinux == !why);
		(void)kernel_image_finds_mmio(&k);
		(void)kernel_image_memory(&k);
	}
	kernel_image_done(&k);
	buf_done(&b);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf out = BUF_INIT;
	uint8_t *copy = malloc(size + 1);

	fuzz_need(copy != NULL);
	if (size > 0)
		memcpy(copy, data, size);
	fuzz_image(data, size);
	(void)kmod_each_needed(data, size, on_needed, NULL, NULL);
	if (kernel_image_unlz4(data, size, 1 << 20, &out) == 0)
		fuzz_need(out.len <= 1 << 20);
	fuzz_need(elf_trim(copy, size) <= size);
	buf_done(&out);
	free(copy);
	return 0;
}
