/* SPDX-License-Identifier: Apache-2.0 */
#include "oci/checkpoint/image.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/text/str.h"
#include "oci/config/given.h"

/* Warnings and what it does: an error alone seldom says why. */
#define IMAGE_LOG_LEVEL 4

void image_done(struct image *i)
{
	i->images_fd = fd_close(i->images_fd);
	i->work_fd = fd_close(i->work_fd);
	free(i->log);
	i->log = NULL;
}

static int image_dir(const char *option, const char *path, bool make, struct error *err)
{
	_cleanup_fd_ int fd = given_open(path, O_RDONLY | O_DIRECTORY, 0);
	struct stat st;

	if (fd == -ENOENT && make)
		fd = given_make_dir(path);
	if (fd < 0)
		return error_set(err, fd, "%s: open %s", option, path);
	if (fstat(fd, &st) < 0)
		return error_set(err, -errno, "%s: look at %s", option, path);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)))
		return error_refuse(err, ERROR_DENIED, "%s: others can write to %s", option, path);
	return TAKE_FD(fd);
}

int image_check_dir(const char *option, const char *path, struct error *err)
{
	_cleanup_fd_ int fd = image_dir(option, path, false, err);

	return fd < 0 ? fd : 0;
}

int image_open(struct image *i, const struct args *args, const char *log_name, bool make,
	       struct error *err)
{
	const char *work = args_value(args, "work-path");

	i->images = args_value(args, "image-path") ?: IMAGE_PATH_DEFAULT;
	i->images_fd = image_dir("--image-path", i->images, make, err);
	if (i->images_fd < 0)
		return i->images_fd;
	i->work_fd = work ? image_dir("--work-path", work, true, err) : fd_copy(i->images_fd);
	if (i->work_fd < 0)
		return work ? i->work_fd : error_set(err, i->work_fd, "open %s", i->images);
	i->log = str_format("%s/%s", work ?: i->images, log_name);
	return i->log ? 0 : error_set(err, -ENOMEM, "name the log of criu");
}

static const struct {
	const char *word;
	enum criu_groups groups;
} image_groups[] = {
	{ "soft", CRIU_GROUPS_SOFT },
	{ "full", CRIU_GROUPS_FULL },
	{ "strict", CRIU_GROUPS_STRICT },
	{ "ignore", CRIU_GROUPS_IGNORE },
};

static int image_set_groups(struct criu_options *o, const char *word, struct error *err)
{
	o->manage_groups = true;
	o->groups = CRIU_GROUPS_SOFT;
	if (!word)
		return 0;
	for (size_t i = 0; i < ARRAY_SIZE(image_groups); i++)
		if (str_eq(image_groups[i].word, word)) {
			o->groups = image_groups[i].groups;
			return 0;
		}
	return error_refuse(err, ERROR_INVALID,
			    "--manage-cgroups-mode is soft, full, strict or ignore, not %.40s",
			    word);
}

static int image_set_empty(struct criu_options *o, const struct args *args, struct error *err)
{
	const char *word;
	size_t pos = 0;

	for (;;) {
		word = args_next(args, "empty-ns", &pos);
		if (!word)
			return 0;
		if (!str_eq(word, "network"))
			return error_refuse(err, ERROR_UNSUPPORTED,
					    "--empty-ns: only network can be left empty, not %.40s",
					    word);
		o->empty_ns = CLONE_NEWNET;
	}
}

int image_options(struct criu_options *o, const struct image *i, const struct args *args,
		  struct error *err)
{
	int r;

	if (args_flag(args, "lazy-pages"))
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "--lazy-pages: memory cannot be left behind");
	o->images_fd = i->images_fd;
	o->work_fd = i->work_fd;
	o->log_file = strrchr(i->log, '/') + 1;
	o->log_level = IMAGE_LOG_LEVEL;
	o->notify_scripts = true;
	o->orphan_terminal = true;
	o->tcp_established = args_flag(args, "tcp-established");
	o->ext_unix_sk = args_flag(args, "ext-unix-sk");
	o->shell_job = args_flag(args, "shell-job");
	o->file_locks = args_flag(args, "file-locks");
	o->auto_dedup = args_flag(args, "auto-dedup");
	r = image_set_groups(o, args_value(args, "manage-cgroups-mode"), err);
	return r < 0 ? r : image_set_empty(o, args, err);
}
