/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/start/disk.h"

#include <string.h>

#include "base/text/str.h"

#define DISK_LETTERS "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-"

static bool disk_word_fits(const char *word, size_t max)
{
	size_t len = word ? strlen(word) : 0;

	return len > 0 && len <= max && strspn(word, DISK_LETTERS) == len;
}

static int disk_check_file(const struct container_file *file, struct error *err)
{
	if (str_empty(file->path) || file->path[0] != '/' || strlen(file->path) > SPEC_PATH_MAX)
		return error_field(err, ERROR_INVALID, "files", "\"%.80s\" is not an absolute path",
				   file->path ?: "");
	if (file->mode & ~07777U)
		return error_field(err, ERROR_INVALID, "files", "mode %o is more than 7777",
				   file->mode);
	if (file->len > CONTAINER_FILE_MAX)
		return error_field(err, ERROR_INVALID, "files", "%zu bytes are more than %zu",
				   file->len, CONTAINER_FILE_MAX);
	return 0;
}

int disk_check(const struct container_spec *spec, struct error *err)
{
	const struct container_disk *disk = spec->root_disk;

	if (spec->n_files > CONTAINER_FILES_MAX)
		return error_field(err, ERROR_INVALID, "files", "%zu are more than the limit of %d",
				   spec->n_files, CONTAINER_FILES_MAX);
	for (size_t i = 0; i < spec->n_files; i++) {
		int r = disk_check_file(&spec->files[i], err);

		if (r < 0)
			return r;
	}
	if (!disk)
		return 0;
	if (!disk_word_fits(disk->serial, CONTAINER_SERIAL_MAX))
		return error_field(err, ERROR_INVALID, "root_disk",
				   "\"%.32s\" is no serial of 1 to %d characters",
				   disk->serial ?: "", CONTAINER_SERIAL_MAX);
	if (!disk->fs || !str_eq(disk->fs, CONTAINER_DISK_FS))
		return error_field(err, ERROR_INVALID, "root_disk",
				   "\"%.32s\" is not " CONTAINER_DISK_FS, disk->fs ?: "");
	return 0;
}

int disk_check_share(const char *name, struct error *err)
{
	if (str_empty(name) ||
	    (disk_word_fits(name, CONTAINER_SHARE_MAX) && !strchr("._-", name[0])))
		return 0;
	return error_field(err, ERROR_INVALID, "mounts",
			   "\"%.40s\" is no name of a volume, of at most %d characters", name,
			   CONTAINER_SHARE_MAX);
}
