/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_IMAGE_H
#define NACRE_OCI_IMAGE_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/text/args.h"
#include "wire/message/criu_rpc.h"

/*
 * The two directories that criu works in, and the options that `checkpoint` and `restore` share.
 * The contents of an image become a process with all privilege: a directory that anybody else than
 * its owner, who is the caller, can write to is refused, and what is made has mode 0700.
 */

struct image {
	int images_fd, work_fd;
	const char *images; /* the path, as it was given */
	char *log;          /* path of criu's log */
};

#define IMAGE_INIT                                                                                 \
	{                                                                                          \
		.images_fd = -1, .work_fd = -1                                                     \
	}

#define IMAGE_PATH_DEFAULT "checkpoint"

void image_done(struct image *i);
/* Opens --image-path and --work-path; makes the former with `make`, and the latter in any case. */
int image_open(struct image *i, const struct args *args, const char *log_name, bool make,
	       struct error *err);

/* Whether there is a directory of that kind at the path. */
int image_check_dir(const char *option, const char *path, struct error *err);

/* Sets the directories, the log and what the shared options say. ERROR_INVALID; ERROR_UNSUPPORTED
 * for what is not done here. */
int image_options(struct criu_options *o, const struct image *i, const struct args *args,
		  struct error *err);

#endif
