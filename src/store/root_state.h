/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_STORE_ROOT_STATE_H
#define NACRE_STORE_ROOT_STATE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/memory/arena.h"
#include "base/memory/list.h"
#include "loop/pool.h"
#include "store/room.h"
#include "store/root.h"
#include "store/sql.h"

/*
 * The inside of root.db, for root_write.c, which writes, and root_read.c, which reads.
 */

struct sqlite3;
struct sqlite3_stmt;

enum root_statement {
	ROOT_BEGIN,
	ROOT_COMMIT,
	ROOT_ROLLBACK,
	ROOT_MARK,
	ROOT_MARK_DONE,
	ROOT_MARK_UNDO,
	ROOT_DROP_IMAGE,
	ROOT_DROP_LAYERS,
	ROOT_ADD_LAYER,
	ROOT_ADD_NAME,
	ROOT_ADD_WORD,
	ROOT_ADD_IMAGE_LAYER,
	ROOT_DROP_NETWORK,
	ROOT_DROP_IDENTITY,
	ROOT_DROP_VOLUME,
	ROOT_DROP_CLOUD_VM,
	ROOT_DROP_KEPT,
	ROOT_DROP_AURAE_VM,
	ROOT_STATEMENT_COUNT
};

struct root_store {
	struct sqlite3 *db;
	struct store_room room; /* images are removed when a disk is full: a write too */
	struct sqlite3_stmt *put_image, *put_network, *put_identity, *put_volume, *put_cloud_vm,
		*put_kept, *put_aurae_vm;
	struct sqlite3_stmt *statements[ROOT_STATEMENT_COUNT];
	struct pool *pool;
	struct pool_work work;
	struct list waiting;
	struct list batch;
	bool held; /* changes wait: root_store_hold() */
};

extern const struct sql_table root_image_table, root_layer_table, root_network_table,
	root_identity_table, root_volume_table, root_cloud_vm_table, root_kept_table,
	root_aurae_vm_table;

/* The lists of an image that are stored word by word. */
struct root_list {
	const char *name;
	size_t offset; /* of a char *const *, in struct root_image */
};
#define ROOT_LISTS 8
extern const struct root_list root_lists[ROOT_LISTS];

static inline char *const **root_list_at(struct root_image *image, size_t i)
{
	return (char *const **)(void *)((char *)image + root_lists[i].offset);
}

/* Moves what waits to the batch. */
void root_take_batch(struct root_store *s);
/* Gives what waits to the pool, unless a batch is written or reported, or the store is held. */
void root_flush(struct root_store *s);

/* Copies the list into the arena: 0 or -ENOMEM. NULL becomes an empty one. */
int root_copy_list(struct arena *a, char *const **list);

#endif
