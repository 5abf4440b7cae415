/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_REQUEST_H
#define NACRE_PLUGIN_REQUEST_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "wire/message/cnimsg.h"

/*
 * The request of the daemon for a pod, in the terms of CNI.
 */

/* The arguments of the capabilities, as a JSON object of those that were asked for. ERROR_INVALID.
 */
int request_capabilities(const struct cnimsg *m, struct buf *ret, struct error *err);
/* CNI_ARGS. ERROR_INVALID. */
int request_args(const struct cnimsg *m, struct buf *ret, struct error *err);

#endif
