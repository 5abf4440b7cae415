/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_UNPACK_H
#define NACRE_FETCH_UNPACK_H

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"

/*
 * The unpacking of one layer: blob_fd is read from where it stands, as far as the numbers in
 * pipe_fd say (follow.h; -1: it is whole), the files are made below root_fd, both digests of the
 * request are verified over all bytes before the answer. Nothing is synced: the core does that once
 * for all layers. sock_fd: to the core, which is asked for memory; -1: nobody is (memory.h). What
 * was made stays after an error: the caller drops the directory.
 */
int unpack_run(const struct fetchmsg *request, int blob_fd, int pipe_fd, int root_fd, int sock_fd,
	       struct fetchmsg *ret, struct error *err);

#endif
