/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/format/tar_write.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "base/time/clock.h"

#define TAR_BLOCK_SIZE 512
#define TAR_NAME_LEN 100
#define TAR_ID_MAX 07777777U
#define TAR_NUMBER_MAX UINT64_C(077777777777)

struct tar_head {
	char name[TAR_NAME_LEN];
	char mode[8], uid[8], gid[8];
	char size[12], mtime[12];
	char checksum[8];
	char kind;
	char link[TAR_NAME_LEN];
	char magic[8];
	char users[64];
	char devices[16];
	char prefix[155];
	char rest[12];
};
_Static_assert(sizeof(struct tar_head) == TAR_BLOCK_SIZE, "a block");

static int tar_add_zeroes(struct buf *b, size_t n)
{
	static const uint8_t zeroes[TAR_BLOCK_SIZE];
	int r = 0;

	for (; r == 0 && n > 0; n -= MIN(n, sizeof(zeroes)))
		r = buf_add(b, zeroes, MIN(n, sizeof(zeroes)));
	return r;
}

/* Digits behind zeroes, and a NUL; what does not fit stands in a pax header, and is 0 here. */
static void tar_octal(char *to, size_t size, uint64_t v)
{
	to[size - 1] = '\0';
	for (size_t i = size - 1; i > 0; i--, v >>= 3)
		to[i - 1] = (char)('0' + (v & 7));
}

static int tar_add_block(struct buf *b, struct tar_head *h)
{
	uint64_t sum = 0;

	memcpy(h->magic, "ustar\00000", sizeof(h->magic));
	memset(h->checksum, ' ', sizeof(h->checksum));
	for (size_t i = 0; i < sizeof(*h); i++)
		sum += ((const uint8_t *)h)[i];
	tar_octal(h->checksum, sizeof(h->checksum) - 1, sum);
	return buf_add(b, h, sizeof(*h));
}

/* ---- pax headers ---- */

static int tar_add_record(struct buf *b, const char *key, const char *value)
{
	size_t n = strlen(key) + strlen(value) + 3, len = n + 1;
	char head[32];
	int r;

	/* The length counts its own digits. */
	for (size_t digits = 1;; digits++) {
		len = n + digits;
		r = str_printf(head, sizeof(head), "%zu ", len);
		if (r == (int)digits + 1)
			break;
	}
	r = buf_add(b, head, strlen(head));
	if (r == 0)
		r = buf_add(b, key, strlen(key));
	if (r == 0)
		r = buf_add(b, "=", 1);
	if (r == 0)
		r = buf_add(b, value, strlen(value));
	return r == 0 ? buf_add(b, "\n", 1) : r;
}

static int tar_add_number(struct buf *b, const char *key, uint64_t value)
{
	char text[24];

	(void)str_printf(text, sizeof(text), "%" PRIu64, value);
	return tar_add_record(b, key, text);
}

static int tar_add_time(struct buf *b, uint64_t mtime)
{
	char text[40];

	(void)str_printf(text, sizeof(text), "%" PRIu64 ".%09" PRIu64, mtime / NSEC_PER_SEC,
			 mtime % NSEC_PER_SEC);
	return tar_add_record(b, "mtime", text);
}

static int tar_add_sparse(struct buf *b, const struct tree_entry *e)
{
	int r = tar_add_number(b, "GNU.sparse.major", 1);

	if (r == 0)
		r = tar_add_number(b, "GNU.sparse.minor", 0);
	if (r == 0)
		r = tar_add_record(b, "GNU.sparse.name", e->path);
	return r == 0 ? tar_add_number(b, "GNU.sparse.realsize", e->size) : r;
}

/* Whatever of the entry does not fit into its head; size: of what follows that. */
static int tar_fill_pax(struct buf *b, const struct tree_entry *e, const char *name, uint64_t size)
{
	int r = 0;

	if (strlen(name) > TAR_NAME_LEN)
		r = tar_add_record(b, "path", name);
	if (r == 0 && e->target && strlen(e->target) > TAR_NAME_LEN)
		r = tar_add_record(b, "linkpath", e->target);
	if (r == 0 && size > TAR_NUMBER_MAX)
		r = tar_add_number(b, "size", size);
	if (r == 0 && e->uid > TAR_ID_MAX)
		r = tar_add_number(b, "uid", e->uid);
	if (r == 0 && e->gid > TAR_ID_MAX)
		r = tar_add_number(b, "gid", e->gid);
	if (r == 0 && (e->mtime % NSEC_PER_SEC || e->mtime / NSEC_PER_SEC > TAR_NUMBER_MAX))
		r = tar_add_time(b, e->mtime);
	return r == 0 && e->map ? tar_add_sparse(b, e) : r;
}

static int tar_add_pax(struct buf *b, const struct buf *pax)
{
	struct tar_head h = { .kind = 'x', .name = "PaxHeader" };
	int r;

	tar_octal(h.mode, sizeof(h.mode), 0644);
	tar_octal(h.uid, sizeof(h.uid), 0);
	tar_octal(h.gid, sizeof(h.gid), 0);
	tar_octal(h.size, sizeof(h.size), pax->len);
	tar_octal(h.mtime, sizeof(h.mtime), 0);
	r = tar_add_block(b, &h);
	if (r == 0)
		r = buf_add(b, buf_data(pax), pax->len);
	return r == 0 ? tar_write_pad(b, pax->len) : r;
}

/* ---- entries ---- */

/* Its extents, one number a line, to the end of a block. An empty one at the end of the file is
 * what other programs know the size by. */
static int tar_fill_map(struct buf *b, const struct tree_entry *e)
{
	uint64_t end = e->n_map ? e->map[e->n_map - 1].at + e->map[e->n_map - 1].len : 0;
	bool more = end < e->size;
	char text[64];
	int r;

	(void)str_printf(text, sizeof(text), "%zu\n", e->n_map + more);
	r = buf_add(b, text, strlen(text));
	for (size_t i = 0; r == 0 && i < e->n_map + more; i++) {
		const struct tree_extent last = { .at = e->size };
		const struct tree_extent *x = i < e->n_map ? &e->map[i] : &last;

		(void)str_printf(text, sizeof(text), "%" PRIu64 "\n%" PRIu64 "\n", x->at, x->len);
		r = buf_add(b, text, strlen(text));
	}
	return r == 0 ? tar_write_pad(b, b->len) : r;
}

uint64_t tar_write_due(const struct tree_entry *e)
{
	uint64_t sum = 0;

	if (e->type != TREE_FILE)
		return 0;
	if (!e->map)
		return e->size;
	for (size_t i = 0; i < e->n_map; i++)
		sum += e->map[i].len;
	return sum;
}

static int tar_add_head(struct buf *b, const struct tree_entry *e, const char *name, uint64_t size)
{
	static const char kinds[] = {
		[TREE_FILE] = '0',      [TREE_DIRECTORY] = '5', [TREE_LINK] = '2',
		[TREE_HARD_LINK] = '1', [TREE_FIFO] = '6',
	};
	struct tar_head h = { .kind = kinds[e->type] };

	/* A name that fills its field has no NUL behind it. */
	memcpy(h.name, name, MIN(strlen(name), sizeof(h.name)));
	if (e->target)
		memcpy(h.link, e->target, MIN(strlen(e->target), sizeof(h.link)));
	tar_octal(h.mode, sizeof(h.mode), e->mode & 07777);
	tar_octal(h.uid, sizeof(h.uid), e->uid > TAR_ID_MAX ? 0 : e->uid);
	tar_octal(h.gid, sizeof(h.gid), e->gid > TAR_ID_MAX ? 0 : e->gid);
	tar_octal(h.size, sizeof(h.size), size > TAR_NUMBER_MAX ? 0 : size);
	tar_octal(h.mtime, sizeof(h.mtime), MIN(e->mtime / NSEC_PER_SEC, TAR_NUMBER_MAX));
	return tar_add_block(b, &h);
}

int tar_write_head(struct buf *b, const struct tree_entry *e)
{
	_cleanup_(buf_done) struct buf pax = BUF_INIT, map = BUF_INIT;
	char name[TREE_PATH_MAX + 1];
	uint64_t size = tar_write_due(e);
	int r = 0;

	if (e->type == TREE_OTHER)
		return -EINVAL;
	(void)str_printf(name, sizeof(name), "%s%s", e->path, e->type == TREE_DIRECTORY ? "/" : "");
	if (e->map)
		r = tar_fill_map(&map, e);
	size += map.len;
	if (r == 0)
		r = tar_fill_pax(&pax, e, name, size);
	if (r == 0 && pax.len > 0)
		r = tar_add_pax(b, &pax);
	if (r == 0)
		r = tar_add_head(b, e, name, size);
	return r == 0 && map.len > 0 ? buf_add(b, buf_data(&map), map.len) : r;
}

int tar_write_pad(struct buf *b, uint64_t n_data)
{
	return tar_add_zeroes(b, (TAR_BLOCK_SIZE - n_data % TAR_BLOCK_SIZE) % TAR_BLOCK_SIZE);
}

int tar_write_end(struct buf *b)
{
	return tar_add_zeroes(b, 2 * (size_t)TAR_BLOCK_SIZE);
}
