/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_DESCRIPTORS_H
#define NACRE_RPC_DESCRIPTORS_H

#include "rpc/message/pb.h"

/*
 * Looks things up in a serialised google.protobuf.FileDescriptorSet, in place: nothing is decoded
 * ahead or kept, since nobody asks often.
 */

/* The serialised FileDescriptorProto by its name: 1, 0 (none), or -EBADMSG (the set is broken). */
int descriptors_find_file(const void *set, size_t len, const char *name, struct pb_field *ret);
/* The one that defines `symbol`, a full name without a leading dot. */
int descriptors_find_symbol(const void *set, size_t len, const char *symbol, struct pb_field *ret);

#endif
