/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_COPY_REFERRERS_H
#define NACRE_FETCH_COPY_REFERRERS_H

#include "base/log/error.h"
#include "fetch/transfer/network.h"

/*
 * The referrers of the manifests of a copy: signatures, SBOMs, provenance, and the referrers of
 * these in turn. Found as the source has it: by the API of distribution 1.1, by the tag that stands
 * in for that, and behind the tags that cosign gives ("sha256-HEX.sig").
 */

#define COPY_REFERRERS_DEPTH 3 /* of what refers to what refers to... */

struct descriptor;

/* A value, whose members are its own. */
struct copy_referrers {
	struct network *from;
	/* Puts one into the list, with all below it; comes back here for it. tag: that it shall
	 * have, or "". */
	int (*take)(void *userdata, const struct descriptor *d, const char *tag, struct error *err);
	void *userdata;
	int depth;
	const char *wanted, *subject; /* the digest being taken, its required subject; NULL: any */
};

void copy_referrers_init(struct copy_referrers *c, struct network *from,
			 int (*take)(void *userdata, const struct descriptor *d, const char *tag,
				     struct error *err),
			 void *userdata);
/*
 * Takes all that refers to `digest`, a manifest that was read, of which `subject` is what it says
 * that it refers to, or "". ERROR_INVALID where it was taken as a referrer, and refers to something
 * else.
 */
int copy_referrers_of(struct copy_referrers *c, const char *digest, const char *subject,
		      struct error *err);

/* Adds those that the destination does not list by itself (network_blob.unlisted) to the list
 * behind the tag of their subject. dir_fd: where their documents are. */
int copy_referrers_list(struct network *to, int dir_fd, struct error *err);

#endif
