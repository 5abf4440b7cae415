/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_TAR_READ_H
#define NACRE_WIRE_TAR_READ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/file/tree.h"
#include "base/log/error.h"

/*
 * A tar archive, read from bytes as they come: ustar, pax, GNU (long names, numbers in base 256)
 * and the four forms of sparse files. It allocates nothing and makes no system call, so that a
 * process which can do nothing but read and write can run it (cli/copy/untar.c). A value of about 3
 * MiB.
 *
 * Paths come without '/' at the ends, "." and doubled '/'; one with ".." is refused. That of the
 * archive's own root is ".". Devices and unknown kinds are TREE_OTHER with a reason.
 */

#define TAR_BLOCK 512
#define TAR_META_MAX ((size_t)1 << 20) /* bytes of a pax header or of a long name */
#define TAR_EXTENTS_MAX TREE_EXTENTS_MAX

/* Both return 0, or a negative errno with err, which ends it. The entry is valid for the call. */
struct tar_read_ops {
	int (*entry)(void *userdata, const struct tree_entry *e, struct error *err);
	/* Of the file that was told of last: as many bytes as its size, or its map, has in all. */
	int (*data)(void *userdata, const uint8_t *data, size_t len, struct error *err);
};

enum tar_read_state {
	TAR_READ_HEADER,  /* a block that says what comes */
	TAR_READ_META,    /* a pax header or a long name */
	TAR_READ_EXTENTS, /* more blocks of the map of a GNU sparse file */
	TAR_READ_MAP,     /* the map in front of the data of a pax sparse file */
	TAR_READ_DATA,    /* of a file */
	TAR_READ_SKIP,    /* of what is no file */
	TAR_READ_PAD,     /* to the end of a block */
	TAR_READ_END,     /* behind the two empty blocks: anything */
};

/* The fields of pax headers; later ones win. */
struct tar_pax {
	bool has_path, has_target, has_size, has_uid, has_gid, has_mtime, has_real, has_name;
	uint64_t size, uid, gid, mtime, real;
	uint64_t major, minor;
	bool sparse; /* it has a map, or one follows */
};

struct tar_read {
	const struct tar_read_ops *ops;
	void *userdata;
	enum tar_read_state state;
	bool begun;        /* there was a header */
	unsigned n_zeroes; /* empty blocks in a row */
	uint8_t block[TAR_BLOCK];
	size_t n_block;
	uint64_t left, pad; /* of what the state reads */
	char kind;          /* of the META */
	uint8_t meta[TAR_META_MAX + 1];
	size_t n_meta;
	struct tar_pax pax;
	char path[TREE_PATH_MAX],
		target[TREE_PATH_MAX]; /* of the entry in hand, as it is written */
	char clean_path[TREE_PATH_MAX], clean_target[TREE_PATH_MAX];
	struct tree_entry entry;
	struct tree_extent map[TAR_EXTENTS_MAX];
	size_t n_map;
	uint64_t n_wanted; /* extents that a map still has, or UINT64_MAX: its count comes first */
	uint64_t number;   /* that is being read from a map */
	bool in_number, at_length;
};

void tar_read_init(struct tar_read *r, const struct tar_read_ops *ops, void *userdata);
/* 0; or a negative errno: ERROR_INVALID for what is no tar, or a broken one. */
int tar_read_feed(struct tar_read *r, const uint8_t *data, size_t len, struct error *err);
/* The bytes are over. ERROR_INVALID where that is within an entry; padding and the empty blocks at
 * the end may be missing. */
int tar_read_finish(struct tar_read *r, struct error *err);

#endif
