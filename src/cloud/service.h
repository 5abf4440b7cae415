/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_SERVICE_H
#define NACRE_CLOUD_SERVICE_H

#include <stdbool.h>

#include "base/memory/buf.h"
#include "cloud/ec2.h"
#include "wire/message/cloudmsg.h"

/*
 * The requests of the daemon to nacre-cloud (wire/message/cloudmsg.h): each request is one call of
 * the cloud.
 */

/* Sends one packet to the daemon; false where it could not. */
typedef bool (*service_send_fn)(const struct buf *packet);

/* Answers q, by any number of packets. false: the key has ended, and this process cannot find
 * another one, or nothing could be answered; it is to end. */
bool service_serve(const struct cloud_provider *provider, void *self, const struct cloudmsg *q,
		   service_send_fn send);
/* The answer to a request that nobody can serve. */
void service_refuse(const struct cloudmsg *q, const struct error *err, service_send_fn send);

#endif
