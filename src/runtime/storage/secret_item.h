/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SECRET_ITEM_H
#define NACRE_RUNTIME_SECRET_ITEM_H

#include <stddef.h>

#include "base/log/error.h"

/* The part of a call that opens mounts (runtime/storage/volumes_call.h) that is about secrets. */

struct pod_mount_spec;
struct secret_file;

/* The files of a mount, with their texts, in one piece. 0 or -ENOMEM. */
int secret_item_copy(const struct pod_mount_spec *m, struct secret_file **ret);
/* On a thread: where what the descriptor points at lies on the node. */
int secret_item_path(int fd, void **ret_text, size_t *ret_len, struct error *err);
/* On a thread: the variable with its value, "NAME=VALUE". Returns -1, which is no descriptor, also
 * where err says what went wrong. */
int secret_item_read(int secrets_fd, const char *secret, const char *variable, const char *field,
		     void **ret_text, size_t *ret_len, struct error *err);

#endif
