/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_SECRET_WORDS_H
#define NACRE_CLI_SECRET_WORDS_H

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/text/args.h"

/*
 * The secrets of the node that a container gets, by --secret as podman writes it. Files without a
 * path are one directory, /run/secrets; one with a path is a mount of its own.
 */
struct secret_words {
	Aurae__Runtime__V0__Mount *mounts;
	Aurae__Runtime__V0__MountedSecret *files, **file_list;
	Aurae__Runtime__V0__SecretVariable *variables, **variable_list;
	char **words; /* texts that the messages point to */
	size_t n_mounts, n_files, n_variables, n_words;
};

#define SECRET_WORDS_INIT                                                                          \
	{                                                                                          \
		.mounts = NULL                                                                     \
	}

/* ERROR_INVALID names the option. Its mounts are for whoever puts together all of a container. */
int secret_words_take(struct secret_words *w, const struct args *a, struct error *err);
void secret_words_done(struct secret_words *w);

#endif
