/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_ISSUER_H
#define NACRE_GATES_ISSUER_H

#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/time/clock.h"
#include "wire/message/gatemsg.h"

/*
 * The node's certificate authority as the daemon uses it: a process of nacre-gate that holds the
 * key, started when it is first asked for something, and again where it has ended. It is asked one
 * thing after the other; what it says is checked (wire/message/gatemsg.h), and no key passes
 * through here.
 */

struct issuer;
struct loop;

struct issuer_config {
	struct loop *loop;
	const char *program; /* path of nacre-gate */
	int dir_fd; /* the directory of the key, of this user and mode 0700; not taken over */
	const char *domain; /* trust domain */
	const char *node;   /* a segment of a SPIFFE id: this node's */
	uid_t uid;          /* as whom it runs once it has read its key; not 0 */
	gid_t gid;
	unsigned backdate; /* seconds that a peer's clock may be behind; 0: the usual */
	/* Files of an authority that is given, in PEM; NULL: the node makes its own. They are
	 * opened each time that the process starts. */
	const char *key_path, *cert_path;
	unsigned prepare; /* seconds from a rotation until the new one signs for instances */
};

/* bytes: a chain or a bundle in DER, valid during the call; NULL where err says why not. Comes
 * exactly once for each question, never before that has returned. */
typedef void (*issuer_done_fn)(void *userdata, const struct gate_bytes *bytes,
			       const struct error *err);

/* All is copied. Starts nothing yet. */
int issuer_new(struct issuer **ret, const struct issuer_config *config, struct error *err);
/* Ends the process. No question is answered any more. */
struct issuer *issuer_free(struct issuer *i);

/* Told whenever the bundle has become another one, until it is taken out by issuer_unwatch(). A
 * value of its owner's. */
struct issuer_watch {
	struct list siblings;
	void (*on_bundle)(struct issuer_watch *w, const struct gate_bytes *bundle);
};
void issuer_watch(struct issuer *i, struct issuer_watch *w,
		  void (*on_bundle)(struct issuer_watch *w, const struct gate_bytes *bundle));
/* Also where it was never in. */
void issuer_unwatch(struct issuer_watch *w);

/* What of the authority is known: nothing before the first answer. Seconds since 1970; 0: there is
 * no rotation in progress. */
struct issuer_rotation {
	uint64_t rotated_at, active_at;
};
struct issuer_rotation issuer_rotation(const struct issuer *i);

/* Makes a new authority (or takes the one that is given now), or forgets the older of two. The
 * process is started anew for it, between two questions, and the watches are told before `done`,
 * whose bytes are the bundle. 0 promises an answer; -EBUSY while another change is made. */
int issuer_rotate(struct issuer *i, issuer_done_fn done, void *userdata);
int issuer_retire(struct issuer *i, issuer_done_fn done, void *userdata);

/* Until all questions of userdata are answered it may not go; or it takes them back. */
void issuer_forget(struct issuer *i, const void *userdata);
/* Asks for the bundle that peers of this node trust. 0, or -ENOMEM. */
int issuer_bundle(struct issuer *i, issuer_done_fn done, void *userdata);
/* The same for the certificate of a user or of a listener, whose number comes with it. */
typedef void (*issuer_signed_fn)(void *userdata, const struct gate_bytes *chain,
				 const uint8_t serial[GATE_SERIAL_SIZE], const struct error *err);
struct issuer_wish {
	struct gate_bytes spki; /* the public key */
	const char *id;
	const char *names; /* or "" */
	uint64_t not_before, not_after;
};
/* All is copied. 0, ERROR_INVALID or -ENOMEM: 0 promises an answer. */
int issuer_sign_wish(struct issuer *i, const struct issuer_wish *wish, issuer_signed_fn done,
		     void *userdata);
/* The seconds that the clock of a peer may be behind. */
#define ISSUER_BACKDATE_SECONDS 60

/* A certificate from now on for `life`, at most a day. id: this node's, or below. */
int issuer_sign(struct issuer *i, const uint8_t key[GATE_KEY_SIZE], const char *id, nsec_t life,
		issuer_done_fn done, void *userdata);

/* The id of this node, and of an instance in it. */
int issuer_node_id(const struct issuer *i, char ret[SPIFFE_SIZE], struct error *err);
const char *issuer_domain(const struct issuer *i);
int issuer_instance_id(const struct issuer *i, const char *instance, char ret[SPIFFE_SIZE],
		       struct error *err);

#endif
