/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_EC2_H
#define NACRE_CLOUD_EC2_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "cloud/ec2_call.h"
#include "cloud/provider.h"
#include "wire/message/cloudmsg.h"

/*
 * EC2's query API: requests as the daemon's words have them (wire/message/cloudmsg.h), answers out
 * of XML (ec2_call.h).
 */

#define EC2_PAGES_MAX 1000

/* ---- pure, for tests ---- */

/* The form of RunInstances. -ENOMEM. */
int ec2_create_form(struct buf *b, const struct cloudmsg *q);
/* One item of instancesSet. ERROR_INVALID where it has no id that is one, or a text is too long. */
int ec2_read_machine(struct cloud_machine *ret, const struct xml_node *item, struct arena *arena,
		     struct error *err);

#endif
