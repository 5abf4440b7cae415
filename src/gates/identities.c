/* SPDX-License-Identifier: Apache-2.0 */
#include "gates/identities.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "gates/issuer.h"
#include "store/root.h"
#include "wire/name/spiffe.h"

#define DAY_SECONDS UINT64_C(86400)

struct identities {
	struct identities_config config;
	struct list list;
	size_t n;
	struct list asking;   /* struct asking */
	size_t n_asking;      /* of these: each may become a record */
	struct list revoking; /* struct revoking */
	uint8_t revoked[IDENTITIES_MAX * GATE_SERIAL_SIZE];
};

/* Somebody who waits for a certificate: for the authority first, then for the disk. */
struct asking {
	struct list link;
	struct identities *all;
	struct identity identity;
	identity_issued_fn done; /* NULL: nobody waits any more */
	void *userdata;
	uint8_t chain[GATE_CHAIN_MAX];
	size_t chain_len;
};

struct revoking {
	struct list link;
	struct identities *all;
	identity_revoked_fn done; /* NULL: nobody waits any more */
	void *userdata;
	size_t n, n_left;
	struct error err;
};

/* ---- numbers ---- */

void identity_serial_text(const uint8_t serial[GATE_SERIAL_SIZE], char ret[IDENTITY_SERIAL_LEN + 1])
{
	static const char digits[] = "0123456789abcdef";

	for (size_t i = 0; i < GATE_SERIAL_SIZE; i++) {
		ret[2 * i] = digits[serial[i] >> 4];
		ret[2 * i + 1] = digits[serial[i] & 15];
	}
	ret[IDENTITY_SERIAL_LEN] = '\0';
}

static int serial_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int serial_bytes(const char *text, uint8_t ret[GATE_SERIAL_SIZE])
{
	if (strlen(text) != IDENTITY_SERIAL_LEN)
		return -EINVAL;
	for (size_t i = 0; i < GATE_SERIAL_SIZE; i++) {
		int high = serial_digit(text[2 * i]), low = serial_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -EINVAL;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return 0;
}

/* ---- records ---- */

static struct root_identity identity_record(const struct identity *i)
{
	return (struct root_identity){ .serial = i->serial,
				       .name = i->name,
				       .role = i->role,
				       .issued_at = i->issued_at,
				       .not_before = i->not_before,
				       .not_after = i->not_after,
				       .revoked_at = i->revoked_at };
}

static int identity_join(struct identities *all, const struct identity *from)
{
	struct identity *i = malloc(sizeof(*i));

	if (!i)
		return -ENOMEM;
	*i = *from;
	list_init(&i->link);
	list_add_tail(&all->list, &i->link);
	all->n++;
	return 0;
}

static int identity_read(void *data, const struct root_identity *record)
{
	struct identities *all = data;
	struct identity i = { .issued_at = record->issued_at,
			      .not_before = record->not_before,
			      .not_after = record->not_after,
			      .revoked_at = record->revoked_at };
	uint8_t serial[GATE_SERIAL_SIZE];

	/* However many there are: a node starts with what it has recorded. */
	if (serial_bytes(record->serial, serial) < 0 ||
	    str_copy(i.serial, sizeof(i.serial), record->serial) < 0 ||
	    str_copy(i.name, sizeof(i.name), record->name) < 0 ||
	    str_copy(i.role, sizeof(i.role), record->role) < 0)
		return -EBADMSG;
	return identity_join(all, &i);
}

static void identity_drop(struct identities *all, struct identity *i)
{
	(void)root_store_drop_identity(all->config.store, i->serial, NULL, NULL, NULL);
	list_remove(&i->link);
	all->n--;
	free(i);
}

/* One that is over makes room: of those that were not revoked first, so that a clock that was wrong
 * for a while brings no revoked one back. */
static bool identities_make_room(struct identities *all, uint64_t now)
{
	struct identity *i;

	for (int revoked = 0; revoked <= 1; revoked++)
		list_for_each (i, &all->list, struct identity, link)
			if (now >= i->not_after && !i->revoked_at == !revoked) {
				identity_drop(all, i);
				return true;
			}
	return false;
}

int identities_new(struct identities **ret, const struct identities_config *config,
		   struct error *err)
{
	struct identities *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return error_set(err, -ENOMEM, "read the records of certificates");
	all->config = *config;
	list_init(&all->list);
	list_init(&all->asking);
	list_init(&all->revoking);
	r = root_store_each_identity(config->store, identity_read, all, err);
	if (r < 0) {
		(void)identities_free(all);
		return err && err->code ? r : error_set(err, r, "read the records of certificates");
	}
	*ret = all;
	return 0;
}

/* What the store still has to tell finds nobody: it is closed behind. */
struct identities *identities_free(struct identities *all)
{
	struct error err = ERROR_INIT;
	struct revoking *q;
	struct identity *i;
	struct asking *a;

	if (!all)
		return NULL;
	(void)error_refuse(&err, ERROR_UNAVAILABLE, "the daemon ends (try again)");
	list_for_each (a, &all->asking, struct asking, link) {
		issuer_forget(all->config.issuer, a);
		if (a->done)
			a->done(a->userdata, NULL, NULL, &err);
		free(a);
	}
	list_for_each (q, &all->revoking, struct revoking, link) {
		if (q->done)
			q->done(q->userdata, q->n, &err);
		free(q);
	}
	list_for_each (i, &all->list, struct identity, link)
		free(i);
	free(all);
	return NULL;
}

/* ---- issue ---- */

static void asking_end(struct asking *a, const struct gate_bytes *chain, const struct error *err)
{
	const identity_issued_fn done = a->done;
	const struct identity i = a->identity;

	list_remove(&a->link);
	a->all->n_asking--;
	if (done)
		done(a->userdata, err ? NULL : &i, chain, err);
	free(a);
}

static void asking_recorded(void *userdata, const struct error *err)
{
	struct asking *a = userdata;
	const struct gate_bytes chain = { a->chain, a->chain_len };
	struct error why = ERROR_INIT;

	if (!err && identity_join(a->all, &a->identity) < 0) {
		(void)error_set(&why, -ENOMEM, "record a certificate");
		err = &why;
	}
	asking_end(a, err ? NULL : &chain, err);
}

static void asking_signed(void *userdata, const struct gate_bytes *chain,
			  const uint8_t serial[GATE_SERIAL_SIZE], const struct error *err)
{
	struct asking *a = userdata;
	struct root_identity record;
	struct error why = ERROR_INIT;

	if (!err) {
		identity_serial_text(serial, a->identity.serial);
		memcpy(a->chain, chain->data, chain->len);
		a->chain_len = chain->len;
		record = identity_record(&a->identity);
		if (root_store_put_identity(a->all->config.store, &record, asking_recorded, a,
					    &why) == 0)
			return;
		err = &why;
	}
	asking_end(a, NULL, err);
}

/* By the name of its kind alone; whether it is one, the authority says. */
static bool identity_key_is_known(const struct gate_bytes *spki)
{
	static const uint8_t p256[] = { 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48,
					0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a,
					0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07 };
	static const uint8_t ed25519[] = { 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70 };
	static const size_t head = 2; /* of the sequence, which is shorter than 128 bytes */

	return spki->len <= GATE_SPKI_MAX &&
	       ((spki->len > head + sizeof(p256) &&
		 memcmp(spki->data + head, p256, sizeof(p256)) == 0) ||
		(spki->len > head + sizeof(ed25519) &&
		 memcmp(spki->data + head, ed25519, sizeof(ed25519)) == 0));
}

static int wish_check(const struct identity_wish *w, struct error *err)
{
	if (!spiffe_user_is_valid(w->name))
		return error_field(err, ERROR_INVALID, "name",
				   "the name of a user is 1 to %d of [A-Za-z0-9._-], and begins "
				   "with a letter, a digit or '_'",
				   SPIFFE_USER_MAX);
	if (w->days < 1 || w->days > IDENTITY_DAYS_MAX)
		return error_field(err, ERROR_INVALID, "days", "a certificate lives 1 to %d days",
				   IDENTITY_DAYS_MAX);
	if (!identity_key_is_known(&w->spki))
		return error_field(
			err, ERROR_INVALID, "public_key",
			"a public key of P-256 or Ed25519 in DER (SubjectPublicKeyInfo), "
			"of at most %d bytes",
			GATE_SPKI_MAX);
	return 0;
}

int identities_issue(struct identities *all, const struct identity_wish *wish,
		     identity_issued_fn done, void *userdata, struct error *err)
{
	uint64_t now = clock_real() / NSEC_PER_SEC;
	struct issuer_wish w = { .spki = wish->spki,
				 .names = "",
				 .not_before = now - ISSUER_BACKDATE_SECONDS,
				 .not_after = now + wish->days * DAY_SECONDS };
	char id[SPIFFE_SIZE];
	struct asking *a;
	int r = wish_check(wish, err);

	if (r == 0)
		r = spiffe_format_user(id, issuer_domain(all->config.issuer), wish->name, err);
	if (r < 0)
		return r;
	while (all->n + all->n_asking >= IDENTITIES_MAX)
		if (!identities_make_room(all, now))
			return error_refuse(err, ERROR_EXHAUSTED,
					    "this node has issued %d certificates that are not "
					    "over, and keeps the record of no more",
					    IDENTITIES_MAX);
	a = calloc(1, sizeof(*a));
	if (!a)
		return error_set(err, -ENOMEM, "issue a certificate");
	list_init(&a->link);
	a->all = all;
	a->done = done;
	a->userdata = userdata;
	a->identity.issued_at = now;
	a->identity.not_before = w.not_before;
	a->identity.not_after = w.not_after;
	r = str_copy(a->identity.name, sizeof(a->identity.name), wish->name);
	if (r >= 0)
		r = str_copy(a->identity.role, sizeof(a->identity.role), wish->role);
	w.id = id;
	if (r >= 0)
		r = issuer_sign_wish(all->config.issuer, &w, asking_signed, a);
	if (r < 0) {
		free(a);
		return error_set(err, r, "issue a certificate");
	}
	list_add_tail(&all->asking, &a->link);
	all->n_asking++;
	return 0;
}

/* ---- revoke ---- */

static void revoking_end(struct revoking *q)
{
	const identity_revoked_fn done = q->done;

	list_remove(&q->link);
	if (done)
		done(q->userdata, q->n, q->err.code ? &q->err : NULL);
	free(q);
}

static void revoking_recorded(void *userdata, const struct error *err)
{
	struct revoking *q = userdata;

	if (err && !q->err.code) {
		(void)error_copy(&q->err, err);
		(void)error_wrap(&q->err, q->err.code,
				 "the certificate counts no more, until this daemon ends: its "
				 "revocation cannot be recorded");
	}
	if (--q->n_left == 0)
		revoking_end(q);
}

static bool identity_is_meant(const struct identity *i, const char *text, uint64_t now)
{
	return str_eq(i->serial, text) ||
	       (str_eq(i->name, text) && now < i->not_after && !i->revoked_at);
}

static int revoking_begin(struct revoking *q, struct identity *i, uint64_t now, struct error *err)
{
	struct root_identity record;
	int r;

	if (!i->revoked_at)
		i->revoked_at = now;
	record = identity_record(i);
	q->n++;
	r = root_store_put_identity(q->all->config.store, &record, revoking_recorded, q, err);
	q->n_left += r == 0;
	return r;
}

int identities_revoke(struct identities *all, const char *name_or_serial, identity_revoked_fn done,
		      void *userdata, struct error *err)
{
	struct revoking *q = calloc(1, sizeof(*q));
	uint64_t now = clock_real() / NSEC_PER_SEC;
	struct identity *i;
	int r = 0;

	if (!q)
		return error_set(err, -ENOMEM, "revoke a certificate");
	*q = (struct revoking){ .all = all, .done = done, .userdata = userdata };
	list_init(&q->link);
	list_for_each (i, &all->list, struct identity, link)
		if (r == 0 && identity_is_meant(i, name_or_serial, now))
			r = revoking_begin(q, i, now, err);
	if (q->n > 0)
		all->config.on_revoked(all->config.userdata);
	if (q->n == 0) {
		free(q);
		return error_refuse(err, ERROR_NOT_FOUND,
				    "no user has a certificate of that name or number that is not "
				    "over or revoked: %.64s",
				    name_or_serial);
	}
	if (q->n_left == 0) {
		free(q);
		return r;
	}
	if (r < 0)
		(void)error_copy(&q->err, err);
	list_add_tail(&all->revoking, &q->link);
	return 0;
}

/* ---- the interface ---- */

const struct list *identities_list(const struct identities *all)
{
	return &all->list;
}

const struct identity *identities_find(const struct identities *all,
				       const uint8_t serial[GATE_SERIAL_SIZE])
{
	char text[IDENTITY_SERIAL_LEN + 1];
	const struct identity *i;

	identity_serial_text(serial, text);
	list_for_each (i, (struct list *)(uintptr_t)&all->list, struct identity, link)
		if (str_eq(i->serial, text))
			return i;
	return NULL;
}

struct gate_bytes identities_revoked(const struct identities *all)
{
	struct identities *own = (struct identities *)(uintptr_t)all;
	const struct identity *i;
	size_t len = 0;

	list_for_each (i, &own->list, struct identity, link)
		if (i->revoked_at && len < sizeof(own->revoked) &&
		    serial_bytes(i->serial, own->revoked + len) == 0)
			len += GATE_SERIAL_SIZE;
	return (struct gate_bytes){ own->revoked, len };
}
