/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_IDENTITIES_H
#define NACRE_GATES_IDENTITIES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "wire/message/gatemsg.h"

/*
 * The certificates that this node has issued for users, each with its number: its user, its role,
 * its end, and whether it is revoked. The records lie in root.db; a certificate is handed out once
 * its record lies on the disk, and a revocation holds at once. Records of certificates that are
 * over go when room is needed, those of revoked ones last.
 */

struct identities;
struct issuer;
struct root_store;

/* Records at most; one more is ERROR_EXHAUSTED where none of them is over. */
#define IDENTITIES_MAX GATE_REVOKED_MAX
#define IDENTITY_SERIAL_LEN (2 * GATE_SERIAL_SIZE)
#define IDENTITY_ROLE_MAX 32
#define IDENTITY_DAYS_MAX 365

struct identity {
	struct list link;
	char serial[IDENTITY_SERIAL_LEN + 1]; /* hexadecimal digits, small */
	char name[SPIFFE_USER_MAX + 1];
	char role[IDENTITY_ROLE_MAX + 1];
	uint64_t issued_at, not_before, not_after; /* seconds since 1970 */
	uint64_t revoked_at;                       /* 0: it is not */
};

struct identities_config {
	struct root_store *store; /* both must outlive the identities */
	struct issuer *issuer;
	/* The list of identities_revoked() has changed. */
	void (*on_revoked)(void *userdata);
	void *userdata;
};

/* Reads all records: while the store is idle. */
int identities_new(struct identities **ret, const struct identities_config *config,
		   struct error *err);
/* When nothing comes from the store any more. Waiters are told that the daemon ends. */
struct identities *identities_free(struct identities *all);

struct identity_wish {
	const char *name, *role;
	struct gate_bytes spki; /* the public key: P-256 or Ed25519 */
	unsigned days;          /* 1 to IDENTITY_DAYS_MAX */
};

/* chain: the certificate in DER, valid during the call. NULL where err says why not. */
typedef void (*identity_issued_fn)(void *userdata, const struct identity *i,
				   const struct gate_bytes *chain, const struct error *err);
/* 0 promises an answer. Errors name the field of the request: name, role, public_key, days. */
int identities_issue(struct identities *all, const struct identity_wish *wish,
		     identity_issued_fn done, void *userdata, struct error *err);

typedef void (*identity_revoked_fn)(void *userdata, size_t n, const struct error *err);
/* All certificates of that name that are not over, or the one of that number. They count no more
 * when this returns; done comes once that lies on the disk. ERROR_NOT_FOUND. */
int identities_revoke(struct identities *all, const char *name_or_serial, identity_revoked_fn done,
		      void *userdata, struct error *err);
/* Of struct identity, in order of issue. */
const struct list *identities_list(const struct identities *all);
const struct identity *identities_find(const struct identities *all,
				       const uint8_t serial[GATE_SERIAL_SIZE]);
/* The numbers of all that are revoked, GATE_SERIAL_SIZE bytes each; valid until the next call. */
struct gate_bytes identities_revoked(const struct identities *all);

void identity_serial_text(const uint8_t serial[GATE_SERIAL_SIZE],
			  char ret[IDENTITY_SERIAL_LEN + 1]);

#endif
