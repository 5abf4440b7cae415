/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/tarball.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"

#define TARBALL_BLOCK 512
#define TARBALL_OCTAL_MAX (UINT64_C(077777777777)) /* of a size: eleven digits */

/* POSIX.1-1988, "ustar". */
struct tarball_header {
	char name[100];
	char mode[8], uid[8], gid[8];
	unsigned char size[12];
	char mtime[12];
	char sum[8];
	char type;
	char link[100];
	char magic[8];
	char user[32], group[32];
	char device[16];
	char prefix[155];
	char rest[12];
};
static_assert(sizeof(struct tarball_header) == TARBALL_BLOCK, "a header is a block");

static const unsigned char tarball_zeroes[2 * TARBALL_BLOCK];

static int tarball_write(const struct tarball *t, const void *data, size_t len, struct error *err)
{
	int r = fd_write_full(t->fd, data, len);

	return r < 0 ? error_set(err, r, "write the archive") : 0;
}

/* What eleven octal digits cannot say stands there as a number of 95 bits, marked by the first one,
 * as GNU tar began it. */
static void tarball_set_size(struct tarball_header *h, uint64_t size)
{
	char text[sizeof(h->size) + 1];

	if (size <= TARBALL_OCTAL_MAX) {
		(void)str_printf(text, sizeof(text), "%011llo", (unsigned long long)size);
		memcpy(h->size, text, sizeof(h->size));
		return;
	}
	h->size[0] = 0x80;
	for (size_t i = 0; i < sizeof(size); i++)
		h->size[sizeof(h->size) - 1 - i] = (unsigned char)(size >> (8 * i));
}

static void tarball_set_sum(struct tarball_header *h)
{
	const unsigned char *p = (const unsigned char *)h;
	unsigned sum = 0;

	memset(h->sum, ' ', sizeof(h->sum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += p[i];
	(void)str_printf(h->sum, sizeof(h->sum), "%06o", sum);
}

static int tarball_header(const struct tarball *t, const char *name, char type, const char *mode,
			  uint64_t size, struct error *err)
{
	struct tarball_header h = { .uid = "0000000",
				    .gid = "0000000",
				    .mtime = "00000000000",
				    .type = type,
				    .magic = { 'u', 's', 't', 'a', 'r', '\0', '0', '0' } };
	int r;

	assert(t->n_left == 0);
	r = str_copy(h.name, sizeof(h.name), name);
	if (r < 0)
		return error_set(err, r, "name \"%.120s\" in the archive", name);
	(void)str_copy(h.mode, sizeof(h.mode), mode);
	tarball_set_size(&h, size);
	tarball_set_sum(&h);
	return tarball_write(t, &h, sizeof(h), err);
}

int tarball_dir(struct tarball *t, const char *name, struct error *err)
{
	return tarball_header(t, name, '5', "0000755", 0, err);
}

int tarball_file(struct tarball *t, const char *name, uint64_t size, struct error *err)
{
	int r = tarball_header(t, name, '0', "0000644", size, err);

	if (r < 0)
		return r;
	t->n_left = size;
	t->n_pad = (TARBALL_BLOCK - size % TARBALL_BLOCK) % TARBALL_BLOCK;
	return 0;
}

int tarball_add(struct tarball *t, const void *data, size_t len, struct error *err)
{
	int r;

	assert(len <= t->n_left);
	r = tarball_write(t, data, len, err);
	t->n_left -= len;
	if (r == 0 && len && t->n_left == 0)
		r = tarball_write(t, tarball_zeroes, t->n_pad, err);
	return r;
}

int tarball_text(struct tarball *t, const char *name, const void *data, size_t len,
		 struct error *err)
{
	int r = tarball_file(t, name, len, err);

	return r == 0 ? tarball_add(t, data, len, err) : r;
}

int tarball_end(struct tarball *t, struct error *err)
{
	assert(t->n_left == 0);
	return tarball_write(t, tarball_zeroes, sizeof(tarball_zeroes), err);
}
