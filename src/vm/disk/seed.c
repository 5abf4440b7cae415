/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/seed.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/*
 * FAT12 with clusters of one sector: a boot sector, two copies of the table, the root directory,
 * data. A long name is a run of entries before the short one, last part first, each with 13
 * characters of two bytes and a checksum of the short name.
 */

#define SEED_SECTOR 512U
#define SEED_SECTORS (SEED_BYTES / SEED_SECTOR)
#define SEED_FAT_SECTORS 6U
#define SEED_ROOT_ENTRIES 64U
#define SEED_ENTRY 32U
#define SEED_ROOT_AT ((1 + 2 * SEED_FAT_SECTORS) * SEED_SECTOR)
#define SEED_DATA_AT (SEED_ROOT_AT + SEED_ROOT_ENTRIES * SEED_ENTRY)
#define SEED_MEDIA 0xf8U
#define SEED_CLUSTER_FIRST 2U
#define SEED_CLUSTER_LAST 0xfffU /* ends a chain */
#define SEED_LONG_PART 13U
#define SEED_LONG_LAST 0x40U
#define SEED_ATTR_LABEL 0x08U
#define SEED_ATTR_LONG 0x0fU
#define SEED_ATTR_ARCHIVE 0x20U
#define SEED_DATE 0x21U /* 1980-01-01: there is no day before it */
#define SEED_SHORT 11U

struct seed {
	uint8_t *image;
	unsigned entry;   /* the next of the root directory */
	unsigned cluster; /* the next free one */
};

static void seed_put16(uint8_t *at, unsigned value)
{
	at[0] = (uint8_t)value;
	at[1] = (uint8_t)(value >> 8);
}

static void seed_boot(uint8_t *s)
{
	static const uint8_t jump[] = { 0xeb, 0x3c, 0x90 };

	memcpy(s, jump, sizeof(jump));
	memcpy(s + 3, "NACRE   ", 8);
	seed_put16(s + 11, SEED_SECTOR);
	s[13] = 1; /* sectors of a cluster */
	seed_put16(s + 14, 1);
	s[16] = 2; /* tables */
	seed_put16(s + 17, SEED_ROOT_ENTRIES);
	seed_put16(s + 19, SEED_SECTORS);
	s[21] = SEED_MEDIA;
	seed_put16(s + 22, SEED_FAT_SECTORS);
	seed_put16(s + 24, 32); /* a geometry, which nobody uses */
	seed_put16(s + 26, 2);
	s[36] = 0x80;
	s[38] = 0x29; /* the three members below are there */
	memcpy(s + 39, "NACR", 4);
	memcpy(s + 43, SEED_LABEL "     ", SEED_SHORT);
	memcpy(s + 54, "FAT12   ", 8);
	seed_put16(s + 510, 0xaa55);
}

/* In both copies. Two numbers share three bytes. */
static void seed_link(const struct seed *s, unsigned cluster, unsigned next)
{
	for (unsigned i = 0; i < 2; i++) {
		uint8_t *at = s->image + SEED_SECTOR * (1 + i * SEED_FAT_SECTORS) + cluster * 3 / 2;

		if (cluster & 1) {
			at[0] = (uint8_t)((at[0] & 0x0f) | next << 4);
			at[1] = (uint8_t)(next >> 4);
		} else {
			at[0] = (uint8_t)next;
			at[1] = (uint8_t)((at[1] & 0xf0) | next >> 8);
		}
	}
}

/* The first cluster of what was put there; 0 for nothing. */
static unsigned seed_put_data(struct seed *s, const void *data, size_t len)
{
	unsigned n = (unsigned)((len + SEED_SECTOR - 1) / SEED_SECTOR), first = s->cluster;

	if (!n)
		return 0;
	memcpy(s->image + SEED_DATA_AT + (size_t)(first - SEED_CLUSTER_FIRST) * SEED_SECTOR, data,
	       len);
	for (unsigned i = 0; i < n; i++)
		seed_link(s, first + i, i + 1 < n ? first + i + 1 : SEED_CLUSTER_LAST);
	s->cluster += n;
	return first;
}

static uint8_t *seed_next_entry(struct seed *s)
{
	return s->image + SEED_ROOT_AT + (size_t)s->entry++ * SEED_ENTRY;
}

static uint8_t seed_sum(const char name[SEED_SHORT])
{
	unsigned sum = 0;

	for (unsigned i = 0; i < SEED_SHORT; i++)
		sum = ((sum & 1) << 7) + (sum >> 1 & 0x7f) + (uint8_t)name[i];
	return (uint8_t)sum;
}

/* Thirteen characters: behind the end one 0, then all bits set. */
static void seed_put_long(uint8_t *e, const char *name, unsigned part, bool is_last, uint8_t sum)
{
	static const uint8_t places[SEED_LONG_PART] = { 1,  3,  5,  7,  9,  14, 16,
							18, 20, 22, 24, 28, 30 };
	size_t len = strlen(name);

	e[0] = (uint8_t)((part + 1) | (is_last ? SEED_LONG_LAST : 0));
	e[11] = SEED_ATTR_LONG;
	e[13] = sum;
	for (unsigned i = 0; i < SEED_LONG_PART; i++) {
		size_t at = (size_t)part * SEED_LONG_PART + i;

		seed_put16(e + places[i], at < len ? (uint8_t)name[at] : at == len ? 0 : 0xffffU);
	}
}

static void seed_put_file(struct seed *s, const struct seed_file *file, unsigned number)
{
	unsigned parts = (unsigned)((strlen(file->name) + SEED_LONG_PART - 1) / SEED_LONG_PART);
	char name[SEED_SHORT + 1];
	uint8_t *e;

	(void)snprintf(name, sizeof(name), "SEED%04u   ", number % 10000);
	for (unsigned part = parts; part-- > 0;)
		seed_put_long(seed_next_entry(s), file->name, part, part == parts - 1,
			      seed_sum(name));
	e = seed_next_entry(s);
	memcpy(e, name, SEED_SHORT);
	e[11] = SEED_ATTR_ARCHIVE;
	seed_put16(e + 16, SEED_DATE);
	seed_put16(e + 18, SEED_DATE);
	seed_put16(e + 24, SEED_DATE);
	seed_put16(e + 26, seed_put_data(s, file->data, file->len));
	seed_put16(e + 28, (unsigned)file->len & 0xffffU);
	seed_put16(e + 30, (unsigned)(file->len >> 16));
}

static void seed_put_label(struct seed *s)
{
	uint8_t *e = seed_next_entry(s);

	memcpy(e, SEED_LABEL "     ", SEED_SHORT);
	e[11] = SEED_ATTR_LABEL;
	seed_put16(e + 24, SEED_DATE);
}

static bool seed_is_name(const char *name)
{
	size_t n = strlen(name);

	if (!n || n > SEED_NAME_MAX || name[n - 1] == '.' || name[n - 1] == ' ')
		return false;
	for (const char *c = name; *c; c++)
		if (*c < ' ' || *c > '~' || strchr("\"*/:<>?\\|", *c))
			return false;
	return true;
}

static char seed_fold(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

/* FAT keeps the case of letters and does not tell names apart by it. */
static bool seed_is_same(const char *a, const char *b)
{
	while (*a && seed_fold(*a) == seed_fold(*b)) {
		a++;
		b++;
	}
	return !*a && !*b;
}

static int seed_check(const struct seed_file *files, size_t n, struct error *err)
{
	size_t all = 0;

	if (n > SEED_FILES_MAX)
		return error_refuse(err, ERROR_INVALID, "a seed disk has at most %d files",
				    SEED_FILES_MAX);
	for (size_t i = 0; i < n; i++) {
		if (!seed_is_name(files[i].name))
			return error_refuse(err, ERROR_INVALID,
					    "\"%.60s\" is no name for a file of a seed disk",
					    files[i].name);
		for (size_t j = 0; j < i; j++)
			if (seed_is_same(files[i].name, files[j].name))
				return error_refuse(err, ERROR_INVALID,
						    "a seed disk has \"%s\" once", files[i].name);
		if (files[i].len > SEED_DATA_MAX)
			return error_refuse(err, ERROR_INVALID, "\"%s\" is larger than a seed disk",
					    files[i].name);
		all += (files[i].len + SEED_SECTOR - 1) / SEED_SECTOR * SEED_SECTOR;
	}
	if (all > SEED_DATA_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "the files of a seed disk are larger than %u bytes",
				    SEED_DATA_MAX);
	return 0;
}

int seed_make(uint8_t **ret, const struct seed_file *files, size_t n, struct error *err)
{
	struct seed s = { .cluster = SEED_CLUSTER_FIRST };
	int r = seed_check(files, n, err);

	if (r < 0)
		return r;
	s.image = calloc(1, SEED_BYTES);
	if (!s.image)
		return error_set(err, -ENOMEM, "make a seed disk");
	seed_boot(s.image);
	seed_link(&s, 0, 0xf00U | SEED_MEDIA);
	seed_link(&s, 1, SEED_CLUSTER_LAST);
	seed_put_label(&s);
	for (size_t i = 0; i < n; i++)
		seed_put_file(&s, &files[i], (unsigned)i);
	*ret = s.image;
	return 0;
}
