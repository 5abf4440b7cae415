/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_UNTAR_H
#define NACRE_CLI_UNTAR_H

#include <stddef.h>
#include <stdint.h>

#include "base/file/tree.h"
#include "base/log/error.h"

/*
 * A tar archive from standard input, read by a process of its own that can do nothing but read and
 * write (isolate/seccomp/strict.h): the author of the archive gains no more, should the reader be
 * exploited. Its output is checked for its form here, and for its sense by the code that takes the
 * entries.
 */

struct untar;

enum untar_event {
	UNTAR_END,
	UNTAR_ENTRY, /* *ret_entry */
	UNTAR_DATA,  /* of the file that was told of last: *ret_data, *ret_len */
};

/* Starts this very program once more. */
int untar_new(struct untar **ret, struct error *err);
/* Ends the process, where it has not ended. */
struct untar *untar_free(struct untar *u);
static inline void untar_freep(struct untar **u)
{
	*u = untar_free(*u);
}

/* Readable where untar_next() need not wait. */
int untar_fd(const struct untar *u);
/* Waits for what comes next: an untar_event, whose strings and bytes are valid until the next call.
 * Or a negative errno. */
int untar_next(struct untar *u, struct tree_entry *ret_entry, const uint8_t **ret_data,
	       size_t *ret_len, struct error *err);

/* `nacre untar`: that process. */
int untar_main(void);

#endif
