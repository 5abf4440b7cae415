/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/message/convert_tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/tree_list.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "cell/start/disk.h"

_Static_assert(sizeof(struct tree_extent) == 2 * sizeof(uint64_t), "pairs, as messages have them");
_Static_assert(CONVERT_PATH_MAX == TREE_PATH_MAX - 1, "as the API says it");

/* ---- entries ---- */

static ProtobufCBinaryData convert_bytes(const char *s)
{
	return (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)s, .len = s ? strlen(s) : 0 };
}

void convert_entry(Nacre__V1__CopyEntry *to, const struct tree_entry *from)
{
	static const Nacre__V1__CopyEntry__Type types[] = {
		[TREE_FILE] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_FILE,
		[TREE_DIRECTORY] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_DIRECTORY,
		[TREE_LINK] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_LINK,
		[TREE_HARD_LINK] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_HARD_LINK,
		[TREE_FIFO] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_FIFO,
		[TREE_OTHER] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_OTHER,
	};

	nacre__v1__copy_entry__init(to);
	to->type = types[from->type];
	if (from->map) {
		to->type = NACRE__V1__COPY_ENTRY__TYPE__TYPE_SPARSE;
		to->extents = (uint64_t *)(uintptr_t)from->map;
		to->n_extents = 2 * from->n_map;
	}
	to->path = convert_bytes(from->path);
	to->mode = from->mode;
	to->uid = from->uid;
	to->gid = from->gid;
	to->mtime = from->mtime;
	to->size = from->size;
	to->link_target = convert_bytes(from->target);
	if (from->reason)
		to->reason = (char *)(uintptr_t)from->reason;
}

/* A copy of bytes that are a path. */
static int convert_path(const char *field, const ProtobufCBinaryData *from, char **ret,
			struct error *err)
{
	char *copy;

	if (from->len > CONVERT_PATH_MAX)
		return error_field(err, ERROR_INVALID, field, "more than %u bytes",
				   CONVERT_PATH_MAX);
	copy = calloc(1, from->len + 1);
	if (!copy)
		return error_set(err, -ENOMEM, "copy");
	if (from->len > 0)
		memcpy(copy, from->data, from->len);
	free(*ret);
	*ret = copy;
	return strlen(copy) == from->len ? 0
					 : error_field(err, ERROR_INVALID, field, "a NUL in it");
}

/* Where its data belong, in the message; never NULL. */
static const struct tree_extent *convert_map(const Nacre__V1__CopyEntry *from)
{
	static const struct tree_extent none[1];

	return from->n_extents ? (const struct tree_extent *)(const void *)from->extents : none;
}

int convert_entry_back(struct tree_entry *ret, const Nacre__V1__CopyEntry *from, char **path,
		       char **target, struct error *err)
{
	static const enum tree_type types[] = {
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_UNSPECIFIED] = TREE_OTHER,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_FILE] = TREE_FILE,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_DIRECTORY] = TREE_DIRECTORY,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_LINK] = TREE_LINK,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_OTHER] = TREE_OTHER,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_HARD_LINK] = TREE_HARD_LINK,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_SPARSE] = TREE_FILE,
		[NACRE__V1__COPY_ENTRY__TYPE__TYPE_FIFO] = TREE_FIFO,
	};
	bool sparse = from->type == NACRE__V1__COPY_ENTRY__TYPE__TYPE_SPARSE;
	int r;

	r = convert_path("entry.path", &from->path, path, err);
	if (r == 0)
		r = convert_path("entry.link_target", &from->link_target, target, err);
	if (r == 0 && from->mode > 07777)
		r = error_field(err, ERROR_INVALID, "entry.mode", "%o is not at most 7777",
				from->mode);
	/* To the kernel it means "leave it as it is". */
	if (r == 0 && (from->uid == UINT32_MAX || from->gid == UINT32_MAX))
		r = error_field(err, ERROR_INVALID,
				from->uid == UINT32_MAX ? "entry.uid" : "entry.gid", "%u is no id",
				UINT32_MAX);
	if (r == 0 && (!sparse ? from->n_extents > 0
			       : from->n_extents % 2 || from->n_extents > 2 * TREE_EXTENTS_MAX))
		r = error_field(err, ERROR_INVALID, "entry.extents",
				"pairs of numbers of a sparse file, at most %d pairs",
				TREE_EXTENTS_MAX);
	if (r < 0)
		return r;
	*ret = (struct tree_entry){
		.type = (size_t)from->type < ARRAY_SIZE(types) ? types[from->type] : TREE_OTHER,
		.path = *path,
		.mode = (mode_t)from->mode,
		.uid = from->uid,
		.gid = from->gid,
		.mtime = from->mtime,
		.size = from->size,
		.target = *target,
		.map = sparse ? convert_map(from) : NULL,
		.n_map = from->n_extents / 2,
	};
	return 0;
}

/* ---- volumes ---- */

int convert_files(struct convert_files *ret, Nacre__Instance__V1__PutFilesRequest *to,
		  const struct tree_list *from)
{
	struct convert_files f = {
		.messages = calloc(from->n + 1, sizeof(*f.messages)),
		.list = calloc(from->n + 1, sizeof(struct Nacre__Instance__V1__VolumeFile *)),
		.entries = calloc(from->n + 1, sizeof(*f.entries)),
	};

	if (!f.messages || !f.list || !f.entries) {
		convert_files_done(&f);
		return -ENOMEM;
	}
	for (size_t i = 0; i < from->n; i++) {
		nacre__instance__v1__volume_file__init(&f.messages[i]);
		convert_entry(&f.entries[i], &from->items[i].entry);
		f.messages[i].entry = &f.entries[i];
		f.messages[i].data.data = from->items[i].data;
		f.messages[i].data.len = from->items[i].data ? from->items[i].entry.size : 0;
		f.list[i] = &f.messages[i];
	}
	to->files = f.list;
	to->n_files = from->n;
	*ret = f;
	return 0;
}

void convert_files_done(struct convert_files *f)
{
	free(f->messages);
	free(f->list);
	free(f->entries);
}

static int convert_file_back(struct tree_list *l, const Nacre__Instance__V1__VolumeFile *from,
			     struct error *err)
{
	struct tree_item *item = &l->items[l->n];
	char *path = NULL, *target = NULL;
	int r;

	if (!from->entry)
		return error_field(err, ERROR_INVALID, "files", "one without an entry");
	r = convert_entry_back(&item->entry, from->entry, &path, &target, err);
	item->entry.path = path;
	item->entry.target = target;
	item->entry.size = 0;
	l->n++;
	if (r < 0)
		return error_wrap_field(err, r, "files");
	if (item->entry.type == TREE_OTHER || item->entry.type == TREE_FIFO ||
	    item->entry.type == TREE_HARD_LINK || TAKE_PTR(item->entry.map) ||
	    (item->entry.type != TREE_FILE && from->data.len > 0) ||
	    from->data.len > VOLUME_BYTES_MAX - l->bytes)
		return error_field(err, ERROR_INVALID, "files",
				   "%.200s is of no type that it can be, or has more data than it "
				   "can have",
				   path);
	if (from->data.len == 0)
		return 0;
	item->data = malloc(from->data.len);
	if (!item->data)
		return error_set(err, -ENOMEM, "copy %.200s", path);
	memcpy(item->data, from->data.data, from->data.len);
	item->entry.size = from->data.len;
	l->bytes += from->data.len;
	return 0;
}

int convert_files_back(struct tree_list *ret, const Nacre__Instance__V1__PutFilesRequest *from,
		       struct error *err)
{
	struct tree_list l = TREE_LIST_INIT;
	int r = 0;

	if (str_empty(from->volume) || disk_check_share(from->volume, NULL) < 0)
		return error_field(err, ERROR_INVALID, "volume",
				   "\"%.40s\" is no name of a volume, of at most %d characters",
				   from->volume ?: "", CONTAINER_SHARE_MAX);
	if (from->n_files == 0 || from->n_files > VOLUME_FILES_MAX + 1)
		return error_field(err, ERROR_INVALID, "files",
				   "%zu, which is not its directory and at most %zu in that",
				   from->n_files, VOLUME_FILES_MAX);
	l.items = calloc(from->n_files, sizeof(*l.items));
	if (!l.items)
		return error_set(err, -ENOMEM, "copy a volume");
	for (size_t i = 0; i < from->n_files && r == 0; i++)
		r = convert_file_back(&l, from->files[i], err);
	if (r < 0)
		tree_list_done(&l);
	else
		*ret = l;
	return r;
}
