/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_PULL_H
#define NACRE_CLI_PULL_H

#include <stdbool.h>

#include "base/log/error.h"

/* Images for who runs something: pulled first, where they shall be. */

struct client;

/* PULL_NEWER: as always, but the image that is there will do where its registry cannot be reached.
 */
enum pull_when { PULL_MISSING, PULL_ALWAYS, PULL_NEWER, PULL_NEVER, PULL_WHEN_COUNT };

/* The value of --pull; NULL: missing. */
int pull_when_read(enum pull_when *ret, const char *word, struct error *err);

/*
 * Pulls the image, with its progress on standard error, where `when` says so: 1. 0: it was not to
 * be pulled, since it is there, or no registry can have it (a digest or an id alone), or never. A
 * negative exit status where that failed, which has been told.
 */
int pull_image(struct client *client, enum pull_when when, const char *image);
/* The same, without a word about its progress where quiet. */
int pull_image_quietly(struct client *client, enum pull_when when, const char *image, bool quiet);
/* Whether it is pulled before anything else is asked. */
static inline bool pull_is_first(enum pull_when when)
{
	return when == PULL_ALWAYS || when == PULL_NEWER;
}

/* Where the node has not the image that a call was asked for: says behind that how to get it, if a
 * registry can have it. Any other error stays as it is. */
void pull_hint(struct error *err, const char *image);

#endif
