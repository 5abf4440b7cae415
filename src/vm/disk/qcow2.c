/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/qcow2.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"

#define QCOW2_MAGIC 0x514649fbU /* "QFI" and 0xfb */
#define QCOW2_HEAD_2 72
#define QCOW2_HEAD_3 104

/* Features that a reader has to know. */
#define QCOW2_DIRTY (1ULL << 0) /* its reference counts are repaired by QEMU */
#define QCOW2_CORRUPT (1ULL << 1)
#define QCOW2_DATA_FILE (1ULL << 2)
#define QCOW2_COMPRESSION (1ULL << 3)
#define QCOW2_SUBCLUSTERS (1ULL << 4)
#define QCOW2_KNOWN                                                                                \
	(QCOW2_DIRTY | QCOW2_CORRUPT | QCOW2_DATA_FILE | QCOW2_COMPRESSION | QCOW2_SUBCLUSTERS)

/* What we make: clusters of 64 KiB; the head, the table of reference counts, one block of them, and
 * the first table. */
#define QCOW2_CLUSTER_BITS 16
#define QCOW2_CLUSTER (1U << QCOW2_CLUSTER_BITS)
#define QCOW2_CLUSTERS 3
#define QCOW2_REFCOUNT_ORDER 4 /* 16 bits each */
/* One entry of the first table is a cluster of entries of 8 bytes, each for a cluster. */
#define QCOW2_PER_ENTRY ((uint64_t)QCOW2_CLUSTER * (QCOW2_CLUSTER / 8))
#define QCOW2_BACKING_FORMAT 0xe2792acaU
#define QCOW2_SECTOR 512

static uint64_t qcow2_get(const uint8_t *at, size_t n)
{
	uint64_t v = 0;

	for (size_t i = 0; i < n; i++)
		v = v << 8 | at[i];
	return v;
}

static void qcow2_put(uint8_t *at, size_t n, uint64_t v)
{
	for (size_t i = n; i > 0; i--, v >>= 8)
		at[i - 1] = (uint8_t)v;
}

bool qcow2_is(const uint8_t *head, size_t len)
{
	return len >= 4 && qcow2_get(head, 4) == QCOW2_MAGIC;
}

static int qcow2_look_features(const uint8_t *head, size_t len, struct error *err)
{
	uint64_t features;

	if (len < QCOW2_HEAD_3 || qcow2_get(head + 100, 4) < QCOW2_HEAD_3)
		return error_refuse(err, ERROR_INVALID, "the head of the qcow2 is cut off");
	features = qcow2_get(head + 72, 8);
	if (features & QCOW2_DATA_FILE)
		return error_refuse(
			err, ERROR_INVALID,
			"the qcow2 has its data in another file, which is not followed");
	if (features & QCOW2_CORRUPT)
		return error_refuse(err, ERROR_INVALID, "the qcow2 is marked as corrupt");
	if (features & ~QCOW2_KNOWN)
		return error_refuse(err, ERROR_INVALID,
				    "the qcow2 has features that are not known here");
	return 0;
}

/* A table begins with a cluster of the file. */
static bool qcow2_has_table(const uint8_t *at, uint64_t cluster, uint64_t file)
{
	uint64_t table = qcow2_get(at, 8);

	return table >= cluster && table % cluster == 0 && table < file;
}

/* As much as QEMU asks for before it opens one. */
static int qcow2_look_tables(const uint8_t *head, uint64_t cluster, uint64_t bytes, uint64_t file,
			     struct error *err)
{
	uint64_t per_entry = cluster * (cluster / 8);

	if (qcow2_get(head + 36, 4) < (bytes + per_entry - 1) / per_entry)
		return error_refuse(err, ERROR_INVALID,
				    "the qcow2 is damaged: its first table is shorter than its "
				    "disk needs");
	if (!qcow2_has_table(head + 40, cluster, file) ||
	    !qcow2_has_table(head + 48, cluster, file) || !qcow2_get(head + 56, 4))
		return error_refuse(err, ERROR_INVALID,
				    "the qcow2 is damaged or cut off: its tables are not where its "
				    "head says");
	return 0;
}

int qcow2_look(struct qcow2 *ret, const uint8_t *head, size_t len, uint64_t file, struct error *err)
{
	struct qcow2 q;
	uint64_t bits;
	int r;

	len = MIN(len, QCOW2_HEAD_MAX);
	if (!qcow2_is(head, len) || len < QCOW2_HEAD_2)
		return error_refuse(err, ERROR_INVALID, "it does not begin as a qcow2 does");
	q.version = (unsigned)qcow2_get(head + 4, 4);
	q.bytes = qcow2_get(head + 24, 8);
	bits = qcow2_get(head + 20, 4);
	if (q.version != 2 && q.version != 3)
		return error_refuse(err, ERROR_INVALID, "version %u of qcow2 is not known here",
				    q.version);
	if (qcow2_get(head + 8, 8) || qcow2_get(head + 16, 4))
		return error_refuse(err, ERROR_INVALID,
				    "the qcow2 has a backing file, which is not followed: make it "
				    "whole with \"qemu-img convert\"");
	if (qcow2_get(head + 32, 4))
		return error_refuse(err, ERROR_INVALID, "the qcow2 is encrypted");
	if (bits < 9 || bits > 21)
		return error_refuse(err, ERROR_INVALID, "the qcow2 has clusters of no size");
	if (!q.bytes || q.bytes > QCOW2_BYTES_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "the qcow2 is of no size, or larger than %u TiB",
				    (unsigned)(QCOW2_BYTES_MAX >> 40));
	r = q.version == 3 ? qcow2_look_features(head, len, err) : 0;
	if (r == 0)
		r = qcow2_look_tables(head, UINT64_C(1) << bits, q.bytes, file, err);
	if (r == 0)
		*ret = q;
	return r;
}

/* The head with its one extension, and the name behind that. */
static void qcow2_put_head(uint8_t *head, uint64_t bytes, uint64_t n_first, const char *backing,
			   const char *format)
{
	uint8_t *at = head + QCOW2_HEAD_3;

	qcow2_put(head, 4, QCOW2_MAGIC);
	qcow2_put(head + 4, 4, 3);
	qcow2_put(head + 20, 4, QCOW2_CLUSTER_BITS);
	qcow2_put(head + 24, 8, bytes);
	qcow2_put(head + 36, 4, n_first);
	qcow2_put(head + 40, 8, (uint64_t)QCOW2_CLUSTERS * QCOW2_CLUSTER);
	qcow2_put(head + 48, 8, QCOW2_CLUSTER);
	qcow2_put(head + 56, 4, 1);
	qcow2_put(head + 96, 4, QCOW2_REFCOUNT_ORDER);
	qcow2_put(head + 100, 4, QCOW2_HEAD_3);
	if (!*backing)
		return;
	qcow2_put(at, 4, QCOW2_BACKING_FORMAT);
	qcow2_put(at + 4, 4, strlen(format));
	memcpy(at + 8, format, strlen(format));
	/* In steps of 8, and an extension of no kind and length is the last. */
	at += 8 + (strlen(format) + 7) / 8 * 8 + 8;
	qcow2_put(head + 8, 8, (uint64_t)(at - head));
	qcow2_put(head + 16, 4, strlen(backing));
	memcpy(at, backing, strlen(backing));
}

int qcow2_make(uint8_t **ret, size_t *ret_len, uint64_t *ret_file, uint64_t bytes,
	       const char *backing, const char *format, struct error *err)
{
	uint64_t n_first = (bytes + QCOW2_PER_ENTRY - 1) / QCOW2_PER_ENTRY;
	uint64_t n = QCOW2_CLUSTERS + (n_first * 8 + QCOW2_CLUSTER - 1) / QCOW2_CLUSTER;
	uint8_t *head;

	if (!bytes || bytes % QCOW2_SECTOR || bytes > QCOW2_BYTES_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "a disk is of whole sectors of %d bytes, and at most %u TiB",
				    QCOW2_SECTOR, (unsigned)(QCOW2_BYTES_MAX >> 40));
	if (strlen(backing) > QCOW2_NAME_MAX || strlen(format) > 8)
		return error_refuse(err, ERROR_INVALID, "the path of a disk is too long");
	head = calloc(QCOW2_CLUSTERS, QCOW2_CLUSTER);
	if (!head)
		return error_set(err, -ENOMEM, "make a disk");
	qcow2_put_head(head, bytes, n_first, backing, format);
	qcow2_put(head + QCOW2_CLUSTER, 8, (uint64_t)2 * QCOW2_CLUSTER);
	for (uint64_t i = 0; i < n; i++)
		qcow2_put(head + (size_t)2 * QCOW2_CLUSTER + 2 * i, 2, 1);
	*ret = head;
	*ret_len = (size_t)QCOW2_CLUSTERS * QCOW2_CLUSTER;
	*ret_file = n * QCOW2_CLUSTER;
	return 0;
}
