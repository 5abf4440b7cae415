/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/guest/kernel_image.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "vm/guest/elf64.h"

/* The setup header of a bzImage (Documentation/arch/x86/boot.rst of the kernel). */
#define SETUP_MAGIC "HdrS"
#define SETUP_MAGIC_AT 0x202
#define SETUP_VERSION_AT 0x206
#define SETUP_SECTORS_AT 0x1f1
#define SETUP_RELEASE_AT 0x20e
#define SETUP_PAYLOAD_AT 0x248
#define SETUP_PAYLOAD_LEN_AT 0x24c
#define SETUP_END KERNEL_IMAGE_HEAD
#define SETUP_SECTOR 512U
#define SETUP_VERSION_PAYLOAD 0x0208

#define LZ4_LEGACY_MAGIC 0x184c2102U
#define LZ4_LEGACY_BLOCK ((size_t)8 << 20) /* bytes that a block unpacks to, at most */
#define LZ4_MATCH_MIN 4
#define LZ4_LONG 15 /* a length of four bits that goes on in bytes */

#define IMAGE_BANNER "Linux version "
#define IMAGE_MMIO_PARAMETER "virtio_mmio.device"

static uint16_t image_u16(const uint8_t *p)
{
	uint16_t n;

	memcpy(&n, p, sizeof(n));
	return le16toh(n);
}

static uint32_t image_u32(const uint8_t *p)
{
	uint32_t n;

	memcpy(&n, p, sizeof(n));
	return le32toh(n);
}

/* ---- LZ4 ---- */

struct lz4 {
	const uint8_t *p, *end;
	uint8_t *out;
	size_t len, room;
};

/* The rest of a length that did not fit into its four bits. */
static bool lz4_length(struct lz4 *z, size_t *length)
{
	uint8_t more = LZ4_LONG;

	if (*length < LZ4_LONG)
		return true;
	do {
		if (z->p == z->end || *length > LZ4_LEGACY_BLOCK)
			return false;
		more = *z->p++;
		*length += more;
	} while (more == UINT8_MAX);
	return true;
}

static bool lz4_literals(struct lz4 *z, size_t n)
{
	if (!lz4_length(z, &n) || n > (size_t)(z->end - z->p) || n > z->room - z->len)
		return false;
	memcpy(z->out + z->len, z->p, n);
	z->p += n;
	z->len += n;
	return true;
}

/* Byte by byte where it overlaps what it makes: that is how a run is written. */
static bool lz4_match(struct lz4 *z, size_t n)
{
	const uint8_t *from;
	size_t offset;

	if (z->end - z->p < 2)
		return false;
	offset = image_u16(z->p);
	z->p += 2;
	if (!lz4_length(z, &n))
		return false;
	n += LZ4_MATCH_MIN;
	if (offset == 0 || offset > z->len || n > z->room - z->len)
		return false;
	from = z->out + z->len - offset;
	if (offset >= n)
		memcpy(z->out + z->len, from, n);
	else
		for (size_t i = 0; i < n; i++)
			z->out[z->len + i] = from[i];
	z->len += n;
	return true;
}

/* One block, which ends with literals. */
static bool lz4_block(struct lz4 *z)
{
	while (z->p < z->end) {
		uint8_t token = *z->p++;

		if (!lz4_literals(z, token >> 4))
			return false;
		if (z->p == z->end)
			return true;
		if (!lz4_match(z, token & 15))
			return false;
	}
	return false;
}

int kernel_image_unlz4(const uint8_t *data, size_t len, size_t max, struct buf *out)
{
	const uint8_t *p = data, *end = data + len;

	if (len < sizeof(uint32_t) || image_u32(p) != LZ4_LEGACY_MAGIC)
		return -EBADMSG;
	p += sizeof(uint32_t);
	while ((size_t)(end - p) >= sizeof(uint32_t)) {
		struct lz4 z = { .room = LZ4_LEGACY_BLOCK };
		uint32_t size = image_u32(p);
		int r;

		p += sizeof(size);
		/* What follows the last block in a bzImage is the length of it all. */
		if (p == end && size == (uint32_t)out->len)
			return 0;
		if (size > (size_t)(end - p))
			return -EBADMSG;
		if (out->len + z.room > max)
			z.room = max - out->len;
		r = buf_reserve(out, z.room, &z.out);
		if (r < 0)
			return r;
		z.p = p;
		z.end = p + size;
		if (!lz4_block(&z))
			return z.room < LZ4_LEGACY_BLOCK ? -EFBIG : -EBADMSG;
		buf_added(out, z.len);
		p += size;
	}
	return p == end ? 0 : -EBADMSG;
}

/* ---- the file ---- */

static bool image_is_bzimage(const struct buf *data)
{
	const uint8_t *p = buf_data(data);

	return data->len > SETUP_END && memcmp(p + SETUP_MAGIC_AT, SETUP_MAGIC, 4) == 0 &&
	       image_u16(p + SETUP_VERSION_AT) >= SETUP_VERSION_PAYLOAD;
}

/* What stands at `at` up to a blank is the release. */
static bool image_take_release(struct kernel_image *k, size_t at)
{
	const char *p = (const char *)buf_data(&k->data) + at;
	size_t max = MIN(k->data.len - at, sizeof(k->release)), n = 0;

	while (n < max && p[n] > ' ' && p[n] < 0x7f && p[n] != '/')
		n++;
	if (n == 0 || n == max || p[n] != ' ')
		return false;
	memcpy(k->release, p, n);
	k->release[n] = '\0';
	return true;
}

static bool image_release_of_bzimage(struct kernel_image *k)
{
	size_t at = image_u16(buf_data(&k->data) + SETUP_RELEASE_AT) + (size_t)SETUP_SECTOR;

	return at > SETUP_SECTOR && at < k->data.len && image_take_release(k, at);
}

static bool image_release_of_vmlinux(struct kernel_image *k)
{
	const uint8_t *begin = buf_data(&k->data), *p = begin;
	size_t banner = strlen(IMAGE_BANNER);

	for (;;) {
		p = memmem(p, k->data.len - (size_t)(p - begin), IMAGE_BANNER, banner);
		if (!p)
			return false;
		p += banner;
		/* The one that is a format has a % here. */
		if (*p >= '0' && *p <= '9' && image_take_release(k, (size_t)(p - begin)))
			return true;
	}
}

/* The vmlinux of a bzImage into out; NULL, or why not. */
static const char *image_unpack(const struct buf *data, struct buf *out)
{
	const uint8_t *p = buf_data(data);
	uint64_t sectors = p[SETUP_SECTORS_AT] ? p[SETUP_SECTORS_AT] : 4;
	uint64_t at = (sectors + 1) * SETUP_SECTOR + image_u32(p + SETUP_PAYLOAD_AT);
	uint64_t len = image_u32(p + SETUP_PAYLOAD_LEN_AT);

	if (at > data->len || len > data->len - at || len < sizeof(uint32_t))
		return "its contents are not where its head says";
	if (image_u32(p + at) != LZ4_LEGACY_MAGIC)
		return "it is not packed with LZ4";
	if (kernel_image_unlz4(p + at, len, KERNEL_IMAGE_MAX, out) < 0)
		return "it cannot be unpacked";
	if (!elf_is_valid(buf_data(out), out->len) || !elf_is_pvh(buf_data(out), out->len))
		return "what is packed in it has no entry for a virtual machine (CONFIG_PVH)";
	return NULL;
}

int kernel_image_take(struct kernel_image *k, struct buf *data, const char **ret_why,
		      struct error *err)
{
	_cleanup_(buf_done) struct buf unpacked = BUF_INIT;
	const char *why = NULL;

	*k = (struct kernel_image){ .data = *data, .is_vmlinux = true };
	*data = (struct buf)BUF_INIT;
	if (image_is_bzimage(&k->data)) {
		if (!image_release_of_bzimage(k))
			return error_refuse(err, ERROR_INVALID,
					    "the kernel does not say which release it is");
		why = image_unpack(&k->data, &unpacked);
		k->is_vmlinux = !why;
		if (why) {
			*ret_why = why;
			return 0;
		}
		buf_done(&k->data);
		k->data = unpacked;
		unpacked = (struct buf)BUF_INIT;
	} else if (!elf_is_valid(buf_data(&k->data), k->data.len)) {
		return error_refuse(err, ERROR_INVALID,
				    "this is neither a bzImage nor a vmlinux of x86-64");
	} else if (!elf_is_pvh(buf_data(&k->data), k->data.len)) {
		return error_refuse(err, ERROR_INVALID,
				    "this vmlinux has no entry for a virtual machine (CONFIG_PVH)");
	} else if (!image_release_of_vmlinux(k)) {
		return error_refuse(err, ERROR_INVALID,
				    "the kernel does not say which release it is");
	}
	*ret_why = NULL;
	return 0;
}

void kernel_image_done(struct kernel_image *k)
{
	buf_done(&k->data);
}

int kernel_image_check_head(const uint8_t *head, size_t len, struct error *err)
{
	if (len >= SETUP_END && memcmp(head + SETUP_MAGIC_AT, SETUP_MAGIC, 4) == 0)
		return 0;
	return elf_begins_kernel(head, len)
		       ? 0
		       : error_refuse(err, ERROR_INVALID,
				      "this is neither a bzImage nor a vmlinux of x86-64");
}

bool kernel_image_finds_mmio(const struct kernel_image *k)
{
	return k->is_vmlinux && memmem(buf_data(&k->data), k->data.len, IMAGE_MMIO_PARAMETER,
				       sizeof(IMAGE_MMIO_PARAMETER)) != NULL;
}

uint64_t kernel_image_memory(const struct kernel_image *k)
{
	/* Packed, and what it unpacks to beside it. */
	return k->is_vmlinux ? elf_memory(buf_data(&k->data), k->data.len) : k->data.len * 5;
}
