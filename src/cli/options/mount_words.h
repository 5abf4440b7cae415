/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_MOUNT_WORDS_H
#define NACRE_CLI_MOUNT_WORDS_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/text/args.h"

/*
 * The mounts of a container, by --volume, --mount, --tmpfs, --shm-size, --tz and --read-only-tmpfs,
 * as docker and podman write it, and --identity. A source with a '/' in it is a path here, "." and
 * ".." as well; any other is the name of a volume of the node.
 */
struct mount_words {
	Aurae__Runtime__V0__Mount *mounts, **list;
	Aurae__Runtime__V0__Tmpfs *tmpfs;
	char **words; /* texts that the messages point to */
	size_t n, n_words;
};

#define MOUNT_WORDS_INIT                                                                           \
	{                                                                                          \
		.mounts = NULL                                                                     \
	}

/* ERROR_INVALID names the option. */
int mount_words_take(struct mount_words *w, const struct args *a, struct error *err);
void mount_words_done(struct mount_words *w);
/* "64m", "1G", "4096", "16MiB": 0 or a negative errno. */
int mount_words_size(const char *text, uint64_t *ret);

#endif
