/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_EXPORT_H
#define NACRE_FETCH_EXPORT_H

#include "base/log/error.h"
#include "wire/message/fetchmsg.h"

/*
 * Writes images of the store as one archive: an OCI layout, and for Docker the same with a
 * manifest.json. Blobs go in as they are, each once, and every byte is hashed while it is read: one
 * that is not what its name says ends the job. A manifest in Docker's form is written in OCI's,
 * which not every reader of layouts would take otherwise: configuration and layers stay the same,
 * its digest does not. The same images give the same bytes.
 */
int export_run(int sock_fd, const struct fetchmsg *request, int blobs_fd, int out_fd,
	       struct error *err);

#endif
