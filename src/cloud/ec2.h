/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_EC2_H
#define NACRE_CLOUD_EC2_H

#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "cloud/ec2_call.h"
#include "wire/message/cloudmsg.h"

/*
 * EC2's query API: requests as the daemon's words have them (wire/message/cloudmsg.h), answers out
 * of XML (ec2_call.h).
 */

#define EC2_PAGES_MAX 1000

/* Texts live as long as the arena; "" where the cloud said nothing. */
struct ec2_machine {
	const char *id, *token, *state, *type, *address, *zone, *launched, *reason;
	const char **tags; /* "KEY=VALUE", n_tags of them */
	size_t n_tags;
};

/* RunInstances. *ret is cleared for dry-run=yes. ERROR_INVALID, ERROR_EXHAUSTED,
 * ERROR_PRECONDITION, ERROR_UNAVAILABLE with what the cloud says. */
int ec2_create(struct ec2 *e, const struct cloudmsg *q, struct arena *arena,
	       struct ec2_machine *ret, struct ec2_fault *f, struct error *err);
typedef int (*ec2_machine_fn)(void *userdata, const struct ec2_machine *m);
/* DescribeInstances, all pages; ends where fn says no. */
int ec2_list(struct ec2 *e, const struct cloudmsg *q, ec2_machine_fn fn, void *userdata,
	     struct ec2_fault *f, struct error *err);
/* TerminateInstances. ERROR_NOT_FOUND. */
int ec2_terminate(struct ec2 *e, const char *id, struct arena *arena, const char **ret_state,
		  struct ec2_fault *f, struct error *err);
/* CreateTags: one tag for all the ids. ERROR_NOT_FOUND where one of them is gone. */
int ec2_tag(struct ec2 *e, const struct cloudmsg *q, struct arena *arena, struct ec2_fault *f,
	    struct error *err);
/* GetConsoleOutput: base64 of its last bytes, and when the cloud has read them. */
int ec2_console(struct ec2 *e, const char *id, struct arena *arena, const char **ret_base64,
		const char **ret_time, struct ec2_fault *f, struct error *err);

/* ---- pure, for tests ---- */

/* The form of RunInstances. -ENOMEM. */
int ec2_create_form(struct buf *b, const struct cloudmsg *q);
/* One item of instancesSet. ERROR_INVALID where it has no id that is one, or a text is too long. */
int ec2_read_machine(struct ec2_machine *ret, const struct xml_node *item, struct arena *arena,
		     struct error *err);

#endif
