/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_PROVIDER_H
#define NACRE_CLOUD_PROVIDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "wire/message/cloudmsg.h"

/*
 * The operations of a cloud for the daemon, in the words of wire/message/cloudmsg.h: one table for
 * each cloud. All block, until the cloud has answered or the patience with it is over.
 */

#define CLOUD_ANSWER_MEMORY (64 << 20)

/* Texts live as long as the arena; "" where the cloud said nothing. */
struct cloud_machine {
	/* state: "pending", "running", "stopping", "stopped", "shutting-down", "terminated" */
	const char *id, *token, *state, *type, *address, *zone, *launched, *reason;
	const char **tags; /* "KEY=VALUE", n_tags of them */
	size_t n_tags;
};

/* How a call has ended, beside the error. */
struct cloud_fault {
	char code[64]; /* of the cloud, "InsufficientInstanceCapacity"; or "" */
	bool unknown;  /* the cloud may have done it */
	bool doubt;    /* of a create call, refused: one with its token may be there all the same,
			* which only a list can tell */
	bool stale;    /* the key has ended, and only a new process finds another one */
	int64_t date;  /* of the last answer, in seconds since 1970; 0: none was told */
};

typedef int (*cloud_machine_fn)(void *userdata, const struct cloud_machine *m);

struct cloud_provider {
	const char *name;
	/* Keys, certificates and the endpoint, read once, before the sandbox closes. Where it fails
	 * what was made is closed too. */
	int (*open)(void **ret, const struct cloudmsg *begin, struct error *err);
	void (*close)(void *account);
	/* Makes the state of one thread that makes calls; never freed. */
	int (*attach)(void **ret, void *account, struct error *err);
	/* *ret is cleared for dry-run=yes. ERROR_INVALID, ERROR_EXHAUSTED, ERROR_PRECONDITION,
	 * ERROR_UNAVAILABLE with what the cloud says. */
	int (*create)(void *self, const struct cloudmsg *q, struct arena *arena,
		      struct cloud_machine *ret, struct cloud_fault *f, struct error *err);
	/* All pages; ends where fn says no. */
	int (*list)(void *self, const struct cloudmsg *q, cloud_machine_fn fn, void *userdata,
		    struct cloud_fault *f, struct error *err);
	/* ERROR_NOT_FOUND. */
	int (*terminate)(void *self, const char *id, struct arena *arena, const char **ret_state,
			 struct cloud_fault *f, struct error *err);
	/* One tag for all the ids. ERROR_NOT_FOUND where one of them is gone. */
	int (*tag)(void *self, const struct cloudmsg *q, struct arena *arena, struct cloud_fault *f,
		   struct error *err);
	/* Base64 of its last bytes, and when the cloud has read them. */
	int (*console)(void *self, const char *id, struct arena *arena, const char **ret_base64,
		       const char **ret_time, struct cloud_fault *f, struct error *err);
};

extern const struct cloud_provider ec2_provider, gce_provider, vsphere_provider;

#endif
