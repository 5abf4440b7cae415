/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_REQUEST_H
#define NACRE_RUNTIME_REQUEST_H

#include <protobuf-c/protobuf-c.h>

#include "base/log/error.h"
#include "base/text/request.h"
#include "runtime/core/target.h"

/* Calls that are made again: the object that was made for the first is that of all. */

struct runtime_service;

/*
 * The key of a request (""  where it has no id), and what was made for it: 1 with *ret, 0 where
 * there is none. ERROR_INVALID for what is no id, ERROR_EXISTS where the id was used for another
 * request; both name request_id.
 */
int request_find(const struct runtime_service *s, const ProtobufCMessage *request, const char *id,
		 char ret_key[REQUEST_KEY_SIZE], struct target *ret, struct error *err);

#endif
