/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_CREDENTIAL_HELPER_H
#define NACRE_CLI_CREDENTIAL_HELPER_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"

/*
 * Programs that keep the user's credentials: `docker-credential-NAME get` (store, erase), found in
 * the user's PATH and run as the user's process. It is told the server on its standard input and
 * answers on its standard output; its standard error and terminal are the user's. Its answer
 * appears in no error and no argument. Where the wait for it is over, or we are told to end, its
 * children end with it, except those that have left its process group.
 */

/* Of one run: for how long it is waited, as somebody may have to be asked, and how much is read. */
#define CREDENTIAL_HELPER_SECONDS 60
#define CREDENTIAL_HELPER_MAX ((size_t)64 << 10)
/* For tests: fewer seconds than those. */
#define CREDENTIAL_HELPER_ENV "NACRE_CREDENTIAL_HELPER_SECONDS"

/* Whether a configuration may name it: letters, digits, '.', '_', '-'. */
bool credential_helper_is_name(const char *name);

/* 1: texts in the arena; 0: it has none. ERROR_PRECONDITION: it is not there, takes too long, or
 * ends with an error; ERROR_INVALID: its answer is none. */
int credential_helper_get(const char *name, const char *server, struct arena *arena,
			  const char **ret_user, const char **ret_secret, struct error *err);
/* Hands it a name and password to keep, or tells it to forget them: 1, or 0 where it had none. */
int credential_helper_store(const char *name, const char *server, const char *user,
			    const char *secret, struct error *err);
int credential_helper_erase(const char *name, const char *server, struct error *err);

#endif
