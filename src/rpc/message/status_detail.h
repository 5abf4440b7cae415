/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RPC_STATUS_DETAIL_H
#define NACRE_RPC_STATUS_DETAIL_H

#include <stddef.h>

#include "rpc/message/status.h"

/*
 * The value of grpc-status-details-bin, which goes beside grpc-status and grpc-message: a
 * google.rpc.Status with
 *   google.rpc.ErrorInfo   for every error: domain "nacre", a reason (a word for the kind of the
 *                          error, or the name of the errno of a fault), and metadata "field" where
 *                          a field of the request is to blame
 *   google.rpc.BadRequest  for an INVALID_ARGUMENT that names a field: that field, and what is
 *                          wrong with it
 * in base64 without padding, as binary metadata is sent.
 */
#define STATUS_DETAIL_FIELD "grpc-status-details-bin"
#define STATUS_DETAIL_SIZE 2560

/* 0, -ENOMEM, or -ENOBUFS where it does not fit. */
int status_detail_encode(char *to, size_t size, enum rpc_code code, const struct error *err);
/* Sets err->field where the details name one; what is no such details changes nothing. */
void status_detail_decode(struct error *err, const char *value);

#endif
