/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_POLICY_H
#define NACRE_FETCH_POLICY_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/memory/list.h"
#include "wire/name/digest.h"
#include "wire/name/reference.h"

/*
 * Which images may be pulled: a file of the node's administrator, in the form of
 * containers-policy.json(5), of which this is understood:
 *
 *   {"default": [RULE...], "transports": {"docker": {"SCOPE": [RULE...]}}}
 *
 * SCOPE is a full reference ("host/a/b:tag", "host/a/b@sha256:..."), a repository, any part of its
 * path from the left, a host, "*.example.com" for the hosts below that, or "" for all; the longest
 * that fits counts, alone. All of its rules must be kept:
 *
 *   {"type": "insecureAcceptAnything"}
 *   {"type": "reject"}
 *   {"type": "sigstoreSigned", "keyPath" | "keyPaths" | "keyData" | "keyDatas": ...,
 *    "signedIdentity": {"type": ...}}
 *
 * Read strictly: a member that is not known here or comes twice, another type of rule (GPG's
 * "signedBy", keyless "fulcio"), a key that cannot be read: each refuses the whole file, and no
 * image is pulled. Other transports are read and count for nothing: a file of the node is imported
 * by its administrator.
 */

#define POLICY_BYTES_MAX (1U << 20)
#define POLICY_KEY_BYTES_MAX (64U << 10)
#define POLICY_SCOPES_MAX 4096
#define POLICY_RULES_MAX 16 /* of a scope */
#define POLICY_KEYS_MAX 16  /* of a rule */

enum policy_kind { POLICY_ACCEPT, POLICY_REJECT, POLICY_SIGNED };

/* The identity that a signature must name, "signedIdentity". */
enum policy_identity {
	POLICY_REPOSITORY_OR_EXACT, /* matchRepoDigestOrExact, the default: the same reference;
				     * where a digest is asked for, the same repository */
	POLICY_EXACT,               /* matchExact: the same reference */
	POLICY_REPOSITORY,          /* matchRepository */
	POLICY_EXACT_REFERENCE,     /* exactReference: `named` */
	POLICY_EXACT_REPOSITORY,    /* exactRepository: `named` */
	POLICY_REMAP /* remapIdentity: `from` in front is `to`, then as the default */
};

struct policy_key {
	const char *name;              /* its path, or "keyData" */
	void *key;                     /* EVP_PKEY */
	char fingerprint[DIGEST_SIZE]; /* key_fingerprint() */
};

struct policy_rule {
	struct list link;
	enum policy_kind kind;
	struct policy_key keys[POLICY_KEYS_MAX];
	size_t n_keys;
	enum policy_identity identity;
	const char *named, *from, *to;
};

struct policy_scope {
	struct list link;
	const char *name; /* "default" for what no scope fits; "" too where `of_key` */
	bool of_key;      /* of policy_read_key() */
	struct list rules;
};

struct policy;

/* Reads the file and the keys that it names, with the rights of the caller: before the sandbox
 * closes. *ret is NULL where there is no such file. */
int policy_open(struct policy **ret, const char *path, struct error *err);
/* Reads the text, and the keys that it names. ERROR_INVALID, in front of which stands `what`. */
int policy_read(struct policy **ret, const struct buf *text, const char *what, struct error *err);
/* In the place of a policy: all that is wanted is a signature by this key in PEM, for the
 * repository, as POLICY_REPOSITORY. ERROR_INVALID. */
int policy_read_key(struct policy **ret, const char *pem, struct error *err);
struct policy *policy_free(struct policy *p);
static inline void policy_freep(struct policy **p)
{
	*p = policy_free(*p);
}
#define _cleanup_policy_ _cleanup_(policy_freep)

/* The scope that applies to an image; never NULL. */
const struct policy_scope *policy_find(const struct policy *p, const struct reference *ref);

/* ERROR_PRECONDITION where a rule refuses it whatever is signed. */
int policy_refuses(const struct policy_scope *scope, const struct reference *ref,
		   struct error *err);
bool policy_wants_signatures(const struct policy_scope *scope);

#endif
