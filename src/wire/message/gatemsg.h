/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_GATEMSG_H
#define NACRE_WIRE_GATEMSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "wire/message/bootmsg.h"
#include "wire/name/spiffe.h"

/*
 * Messages to nacre-gate and from it: messages of a fixed layout of at most GATEMSG_SIZE_MAX bytes,
 * each a packet of a SOCK_SEQPACKET socket; on an enrolment connection the same messages follow
 * each other in the stream. Both ends check every length, text and number.
 *
 * The daemon and `nacre-gate ca`: CA, answered by CA_READY with all roots, the oldest first; then
 * ISSUE as often as wanted, each answered by ISSUED or DENIED with its request number. DENIED with
 * number 0 is the answer to CA and the last word.
 *
 * SIGN is answered likewise, by SIGNED or DENIED: for users, and for the listener that they meet.
 *
 * The daemon and `nacre-gate front`: FRONT comes first, and again where the bundle has changed, and
 * REVOKED, the whole list, each time that it changes; WANT is answered by SIGNED or DENIED; VISITOR
 * says who is at the other end of the socket that comes with it.
 *
 * `nacre-gate metrics` says SCRAPE, with a socket through which the page is to come.
 *
 * The daemon and `nacre-svid`: FRONT comes first, and again where what it says has changed; CALLER
 * says who is at the other end of the socket that comes with it; WISH is answered by SIGNED or
 * DENIED; PART says, either way, that a caller is gone.
 *
 * The daemon and `nacre-gate metadata`: FRONT comes first, and again where what it says has
 * changed; METADATA has the page of a pod, which is a caller, and comes again where it has changed;
 * LISTEN brings a socket that listens for it. WISH and PART are as those of nacre-svid.
 *
 * The daemon and a gate: the gate begins with STATE, and then tells
 * again what it has told a daemon before and what it waits for. SETUP comes once, and again
 * where the bundle has changed, of which alone it tells then; FRAME and CONSOLE as often as wanted;
 * NEED is answered by ISSUED or DENIED; END ends the gate. A gate in a guest is told by the frame
 * BOOT, and nothing of this.
 *
 * On an enrolment connection: the guest says KEY, the node answers with LIFE, the guest KEPT, and
 * the connection ends. Behind the certificate in LIFE stands the bundle where it is another one
 * than the guest has booted with. The token in LIFE is for the next enrolment, should the
 * certificate expire before it was renewed.
 */

#define GATEMSG_SIZE_MAX (72U * 1024)
#define GATEMSG_HEADER_SIZE 16

#define GATE_KEY_SIZE 32 /* an Ed25519 public key, raw */
#define GATE_TOKEN_SIZE BOOTMSG_TOKEN_SIZE
/* Certificates in DER, one behind the other. */
#define GATE_CHAIN_MAX 8192
#define GATE_BUNDLE_MAX (BOOTMSG_BUNDLE_MAX * BOOTMSG_CERT_MAX)
#define GATE_SPKI_MAX 128
#define GATE_SERIAL_SIZE 16
#define GATE_NAMES_MAX 8192
#define GATE_ADDRESS_MAX 64
/* Certificates that are revoked and not over. */
#define GATE_REVOKED_MAX 4096
#define GATE_PAGE_MAX 65536
#define GATE_CONSOLE_MAX 65536 /* bytes of a console that are kept */

enum gatemsg_type {
	GATEMSG_CA,
	GATEMSG_CA_READY,
	GATEMSG_ISSUE,
	GATEMSG_ISSUED,
	GATEMSG_DENIED,
	GATEMSG_SETUP,
	GATEMSG_STATE,
	GATEMSG_NEED,
	GATEMSG_FRAME,
	GATEMSG_CONSOLE,
	GATEMSG_CONSOLE_PART,
	GATEMSG_NOTICE,
	GATEMSG_END,
	GATEMSG_KEY,
	GATEMSG_LIFE,
	GATEMSG_KEPT,
	GATEMSG_SIGN,
	GATEMSG_SIGNED,
	GATEMSG_FRONT,
	GATEMSG_WANT,
	GATEMSG_REVOKED,
	GATEMSG_VISITOR,
	GATEMSG_SCRAPE,
	GATEMSG_CALLER,
	GATEMSG_WISH,
	GATEMSG_PART,
	GATEMSG_METADATA,
	GATEMSG_LISTEN,
	GATEMSG_TYPE_COUNT
};

enum gate_state {
	GATE_NEW,       /* waits for SETUP */
	GATE_WAITING,   /* the node's: for its certificate and the guest's first frame, or for a
			   certificate that is valid still */
	GATE_ENROLLING, /* a certificate of the guest is on its way */
	GATE_UP,        /* serves streams */
	GATE_FAILED,    /* cannot be: the text says why. The last but GATE_GONE */
	GATE_GONE,      /* the node's: the machine monitor has closed its ports */
	GATE_STATE_COUNT
};

/* What becomes of the authority before it signs (identity/ca.h). */
enum gate_ca_change { GATE_CA_KEEP, GATE_CA_ROTATE, GATE_CA_RETIRE, GATE_CA_CHANGE_COUNT };

/* The owner of a certificate. */
enum gate_whose { GATE_NODE, GATE_GUEST, GATE_WHOSE_COUNT };

/* Which of the ids of a caller. */
enum gate_svid { GATE_SVID_STABLE, GATE_SVID_INSTANCE, GATE_SVID_COUNT };

struct gate_bytes {
	const uint8_t *data;
	size_t len;
};

/* Texts and bytes of a decoded message lie in its packet. */
struct gatemsg {
	enum gatemsg_type type;
	union {
		struct {
			const char *domain; /* the trust domain */
			const char *node;   /* it signs for the instances of this node */
			uint32_t change;    /* enum gate_ca_change */
			uint32_t given;     /* 1: its files are at the next descriptors */
			uint64_t prepare;   /* seconds until a new authority signs for instances */
		} ca;
		struct {
			struct gate_bytes bundle;
			/* Seconds since 1970; 0: there is one authority. */
			uint64_t rotated_at, active_at;
		} ca_ready;
		struct {
			uint32_t request; /* not 0 */
			uint8_t key[GATE_KEY_SIZE];
			const char *id;
			uint64_t not_before, not_after; /* seconds since 1970 */
		} issue;
		struct {
			uint32_t request;
			struct gate_bytes chain;
		} issued;
		struct {
			uint32_t request;
			const char *text;
		} denied;
		struct gatemsg_setup {
			const char *own_id, *peer_id; /* of one trust domain */
			uint8_t address[4];           /* of the guest */
			uint32_t port;                /* of the guest's gate */
			uint8_t token[GATE_TOKEN_SIZE];
			struct gate_bytes bundle;
		} setup;
		struct {
			uint32_t state;   /* enum gate_state */
			uint32_t streams; /* that are open */
			const char *text; /* a sentence, or "" */
		} state;
		struct {
			uint32_t request;
			uint32_t whose;
			uint8_t key[GATE_KEY_SIZE];
		} need;
		struct {
			struct gate_bytes
				bytes; /* of the boot port (wire/message/bootmsg.h), whole */
		} frame;
		struct {
			uint64_t total; /* bytes that ever came */
			struct gate_bytes last;
		} console_part;
		struct {
			const char *text; /* why a connection was refused */
		} notice;
		struct {
			uint8_t key[GATE_KEY_SIZE];
		} key;
		struct {
			struct gate_bytes chain;
			uint8_t token[GATE_TOKEN_SIZE];
		} life;
		struct {
			uint32_t request;       /* not 0 */
			struct gate_bytes spki; /* a public key of P-256 or Ed25519 */
			const char *id;
			const char *names; /* beside the id, parted by commas; or "" */
			uint64_t not_before, not_after;
		} sign;
		struct {
			uint32_t request;
			uint8_t serial[GATE_SERIAL_SIZE];
			struct gate_bytes chain;
		} signed_;
		struct {
			const char *domain;
			struct gate_bytes bundle;
		} front;
		struct {
			uint32_t request; /* not 0 */
			struct gate_bytes spki;
		} want;
		struct {
			struct gate_bytes serials; /* GATE_SERIAL_SIZE bytes each */
		} revoked;
		struct {
			const char *id;
			const char *address; /* from where, for people */
			uint8_t serial[GATE_SERIAL_SIZE];
			uint64_t not_after;
		} visitor;
		struct {
			uint32_t caller; /* a number, not 0 */
			const char *id, *instance_id;
			const char *refusal; /* why it has no identity: no id counts; or "" */
		} caller;
		struct {
			uint32_t request; /* not 0 */
			uint32_t caller;
			uint32_t whose; /* enum gate_svid */
			struct gate_bytes spki;
		} wish;
		struct {
			uint32_t caller;
		} part;
		struct {
			uint32_t caller;
			struct gate_bytes page; /* wire/document/imds.h */
		} metadata;
		struct {
			uint32_t caller;
		} listen;
	};
};

/* Writes the packet: its length, or ERROR_INVALID where a member breaks its rule. packet has room
 * for GATEMSG_SIZE_MAX bytes. */
int gatemsg_encode(const struct gatemsg *m, uint8_t *packet, struct error *err);
/* 0, or -EBADMSG with what is wrong. packet must live as long as *ret. */
int gatemsg_decode(struct gatemsg *ret, const uint8_t *packet, size_t len, struct error *err);
/* The length of the message at the front of a stream, as soon as its header is there; 0 before,
 * -EBADMSG for what is none. */
int gatemsg_length(const uint8_t *data, size_t len);

#endif
