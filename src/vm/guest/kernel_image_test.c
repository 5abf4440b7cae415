/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/kernel_image.h"

#include <endian.h>
#include <errno.h>

#include "base/text/str.h"
#include "unit.h"
#include "vm/guest/elf64_test.h"

#define PVH_NOTE "\4\0\0\0\4\0\0\0\x12\0\0\0Xen\0\0\0\0\1"
/* One block: "abc", then it again and again, then a last word. */
#define PACKED                                                                                     \
	"\x02\x21\x4c\x18"                                                                         \
	"\x0c\0\0\0"                                                                               \
	"\x3f"                                                                                     \
	"abc\x03\0\x02"                                                                            \
	"\x40"                                                                                     \
	"end!"
#define PLAIN "abcabcabcabcabcabcabcabcend!"

static int unpack(const char *data, size_t len, size_t max, struct buf *out)
{
	return kernel_image_unlz4((const uint8_t *)data, len, max, out);
}

static void unpacks(void)
{
	_cleanup_(buf_done) struct buf out = BUF_INIT;

	CHECK_INT(unpack(PACKED, sizeof(PACKED) - 1, KERNEL_IMAGE_MAX, &out), 0);
	CHECK_INT(out.len, 3 + 21 + 4);
	CHECK(out.len == 28 && memcmp(buf_data(&out), PLAIN, 28) == 0);
	buf_clear(&out);
	/* As in a bzImage: the length of it all follows. */
	CHECK_INT(unpack(PACKED "\x1c\0\0\0", sizeof(PACKED) + 3, KERNEL_IMAGE_MAX, &out), 0);
	CHECK_INT(out.len, 28);
}

static void refuses_what_is_packed_badly(void)
{
	static const struct {
		const char *data;
		size_t len;
		size_t max;
		int want;
	} bad[] = {
		{ "\x02\x21\x4c\x19", 4, 100, -EBADMSG },
		{ "\x02\x21", 2, 100, -EBADMSG },
		{ PACKED, sizeof(PACKED) - 2, 100, -EBADMSG },
		{ PACKED "\x1b\0\0\0", sizeof(PACKED) + 3, 100, -EBADMSG },
		{ PACKED "\x1c\0\0", sizeof(PACKED) + 2, 100, -EBADMSG },
		{ PACKED, sizeof(PACKED) - 1, 27, -EFBIG },
		/* Back before the beginning, by nothing, and no last word. */
		{ "\x02\x21\x4c\x18\x07\0\0\0\x10"
		  "a\x02\0\x10"
		  "bc",
		  15, 100, -EBADMSG },
		{ "\x02\x21\x4c\x18\x06\0\0\0\x10"
		  "a\0\0\x10"
		  "b",
		  14, 100, -EBADMSG },
		{ "\x02\x21\x4c\x18\x04\0\0\0\x10"
		  "a\x01\0",
		  12, 100, -EBADMSG },
		/* A length without its end. */
		{ "\x02\x21\x4c\x18\x03\0\0\0\xf0\xff\xff", 11, 100, -EBADMSG },
	};

	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		_cleanup_(buf_done) struct buf out = BUF_INIT;
		int r = unpack(bad[i].data, bad[i].len, bad[i].max, &out);

		if (r == -ENOMEM)
			continue;
		CHECK(r < 0);
		/* With little room, too much and wrong look alike. */
		CHECK(r == bad[i].want || r == -EFBIG);
	}
}

static int take(struct kernel_image *k, const void *data, size_t len, const char **why,
		struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = buf_add(&b, data, len);

	return r < 0 ? r : kernel_image_take(k, &b, why, err);
}

static void takes_a_vmlinux(void)
{
	static const char banner[] =
		"Linux version %s (%s)\0Linux version 6.1.7-small (me@here) #1\0virtio_mmio.device";
	struct kernel_image k = KERNEL_IMAGE_INIT;
	struct error err = ERROR_INIT;
	const char *why = "";
	struct elf_made e;

	elf_made_segment(&e, PT_NOTE, PVH_NOTE, sizeof(PVH_NOTE) - 1);
	CHECK(take(&k, e.data, e.len, &why, &err) < 0);
	kernel_image_done(&k);
	elf_made_put(&e, 1024, banner, sizeof(banner));
	CHECK_INT(take(&k, e.data, e.len, &why, &err), 0);
	CHECK(why == NULL);
	CHECK(k.is_vmlinux);
	CHECK_STR(k.release, "6.1.7-small");
	CHECK(kernel_image_finds_mmio(&k));
	kernel_image_done(&k);
	elf_made_put(&e, 1024 + sizeof(banner) - 3, "X", 1);
	CHECK_INT(take(&k, e.data, e.len, &why, &err), 0);
	CHECK(!kernel_image_finds_mmio(&k));
	kernel_image_done(&k);
	elf_made_put(&e, 512 + 8, "\0", 1);
	CHECK_INT(take(&k, e.data, e.len, &why, &err), -EINVAL);
	CHECK(strstr(err.text, "CONFIG_PVH"));
	kernel_image_done(&k);
	CHECK_INT(take(&k, "#!/bin/sh\n", 10, &why, &err), -EINVAL);
	kernel_image_done(&k);
}

/* A bzImage with that behind its head. */
static size_t make_bzimage(uint8_t *data, const void *payload, size_t len)
{
	uint16_t version = htole16(0x20f), release = htole16(0x300);
	uint32_t at = htole32(0x100), size = htole32((uint32_t)len);

	data[0x1f1] = 3;
	memcpy(data + 0x202, "HdrS", 4);
	memcpy(data + 0x206, &version, sizeof(version));
	memcpy(data + 0x20e, &release, sizeof(release));
	memcpy(data + 0x248, &at, sizeof(at));
	memcpy(data + 0x24c, &size, sizeof(size));
	memcpy(data + 0x500, "6.1.0-9-cloud (x@y) #1 SMP", 27);
	memcpy(data + 0x900, payload, len);
	return 0x900 + len;
}

/* The same bytes as one block of literals. */
static size_t pack(uint8_t *to, const uint8_t *data, size_t len)
{
	size_t n = 8, rest = len - 15;
	uint32_t size;

	memcpy(to, "\x02\x21\x4c\x18", 4);
	to[n++] = 0xf0;
	for (; rest >= 255; rest -= 255)
		to[n++] = 255;
	to[n++] = (uint8_t)rest;
	memcpy(to + n, data, len);
	size = htole32((uint32_t)(n - 8 + len));
	memcpy(to + 4, &size, sizeof(size));
	return n + len;
}

static void takes_a_bzimage(void)
{
	static uint8_t file[16384], payload[8192];
	struct kernel_image k = KERNEL_IMAGE_INIT;
	struct error err = ERROR_INIT;
	const char *why = "";
	struct elf_made e;
	size_t len;

	elf_made_segment(&e, PT_NOTE, PVH_NOTE, sizeof(PVH_NOTE) - 1);
	len = make_bzimage(file, payload, pack(payload, e.data, e.len));
	CHECK_INT(take(&k, file, len, &why, &err), 0);
	CHECK(why == NULL);
	CHECK(k.is_vmlinux);
	CHECK_STR(k.release, "6.1.0-9-cloud");
	CHECK_INT(k.data.len, e.len);
	kernel_image_done(&k);
	len = make_bzimage(file,
			   "\xfd"
			   "7zXZ",
			   6);
	CHECK_INT(take(&k, file, len, &why, &err), 0);
	CHECK(why && strstr(why, "LZ4"));
	CHECK(!k.is_vmlinux);
	CHECK_INT(k.data.len, len);
	kernel_image_done(&k);
	CHECK_INT(take(&k, file, len - 1, &why, &err), 0);
	CHECK(why && strstr(why, "head says"));
	kernel_image_done(&k);
	elf_made_segment(&e, PT_NOTE, "", 1);
	len = make_bzimage(file, payload, pack(payload, e.data, e.len));
	CHECK_INT(take(&k, file, len, &why, &err), 0);
	CHECK(why && strstr(why, "CONFIG_PVH"));
	kernel_image_done(&k);
}

static void knows_how_one_begins(void)
{
	struct error err = ERROR_INIT;
	uint8_t head[KERNEL_IMAGE_HEAD] = { 0 };

	CHECK(kernel_image_check_head(head, sizeof(head), &err) < 0);
	CHECK_INT(err.kind, ERROR_INVALID);
	memcpy(head + 0x202, "HdrS", 4);
	CHECK_INT(kernel_image_check_head(head, sizeof(head), &err), 0);
	CHECK(kernel_image_check_head(head, sizeof(head) - 1, &err) < 0);
	memset(head, 0, sizeof(head));
	memcpy(head,
	       "\x7f"
	       "ELF\2\1\1",
	       7);
	head[16] = 2;  /* ET_EXEC */
	head[18] = 62; /* EM_X86_64 */
	CHECK_INT(kernel_image_check_head(head, sizeof(head), &err), 0);
	CHECK(kernel_image_check_head(head, 63, &err) < 0);
	/* Any program of today, and one of 32 bits. */
	head[16] = 3;
	CHECK(kernel_image_check_head(head, sizeof(head), &err) < 0);
	head[16] = 2;
	head[4] = 1;
	CHECK(kernel_image_check_head(head, sizeof(head), &err) < 0);
}

UNIT_MAIN({ "unpacks", unpacks }, { "refuses_what_is_packed_badly", refuses_what_is_packed_badly },
	  { "takes_a_vmlinux", takes_a_vmlinux }, { "takes_a_bzimage", takes_a_bzimage },
	  { "knows_how_one_begins", knows_how_one_begins })
