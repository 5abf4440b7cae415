/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Each call that waits (for the authority, for the disk) is a struct identity_call; a client that
 * goes away does not stop what was begun.
 */

#include <errno.h>
#include <stdlib.h>

#include "api/nacre.pb-c.h"
#include "base/text/str.h"
#include "gates/identities.h"
#include "gates/issuer.h"
#include "gates/rotation.h"
#include "runtime/services.h"
#include "wire/name/spiffe.h"

#define IDENTITY_DAYS_USUAL 90

struct identity_call {
	struct rpc_call *call;
	const struct identity_service *service;
	struct identity identity;
	uint8_t chain[GATE_CHAIN_MAX];
	size_t chain_len;
};

static struct identity_call *identity_call_new(struct rpc_call *call,
					       const struct identity_service *service)
{
	struct identity_call *c = arena_zalloc(rpc_call_arena(call), 1, sizeof(*c));
	struct error err = ERROR_INIT;

	if (!c) {
		(void)error_set(&err, -ENOMEM, "take a call");
		rpc_call_fail(call, &err);
		return NULL;
	}
	c->call = call;
	c->service = service;
	return c;
}

static ProtobufCBinaryData identity_bytes(const uint8_t *data, size_t len)
{
	return (ProtobufCBinaryData){ .data = (uint8_t *)(uintptr_t)data, .len = len };
}

/* id has room for SPIFFE_SIZE bytes, and lives as long as the message. */
static void identity_show(const struct identity_service *s, const struct identity *i, char *id,
			  Nacre__V1__Identity *ret)
{
	nacre__v1__identity__init(ret);
	ret->name = (char *)(uintptr_t)i->name;
	if (spiffe_format_user(id, issuer_domain(s->issuer), i->name, NULL) == 0)
		ret->id = id;
	ret->serial = (char *)(uintptr_t)i->serial;
	ret->role = (char *)(uintptr_t)i->role;
	ret->issued_at = i->issued_at;
	ret->not_before = i->not_before;
	ret->not_after = i->not_after;
	ret->revoked_at = i->revoked_at;
}

/* ---- Issue ---- */

static void issue_with_bundle(void *userdata, const struct gate_bytes *bundle,
			      const struct error *err)
{
	struct identity_call *c = userdata;
	Nacre__V1__IssueResponse m = NACRE__V1__ISSUE_RESPONSE__INIT;
	Nacre__V1__Identity shown;
	char id[SPIFFE_SIZE];

	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	identity_show(c->service, &c->identity, id, &shown);
	m.certificate = identity_bytes(c->chain, c->chain_len);
	m.authority = identity_bytes(bundle->data, bundle->len);
	m.identity = &shown;
	rpc_call_reply(c->call, &m.base);
}

static void issue_done(void *userdata, const struct identity *i, const struct gate_bytes *chain,
		       const struct error *err)
{
	struct identity_call *c = userdata;
	struct error why = ERROR_INIT;
	int r;

	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	c->identity = *i;
	memcpy(c->chain, chain->data, chain->len);
	c->chain_len = chain->len;
	r = issuer_bundle(c->service->issuer, issue_with_bundle, c);
	if (r < 0) {
		(void)error_set(&why, r, "ask the certificate authority");
		rpc_call_fail(c->call, &why);
	}
}

static void issue(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const Nacre__V1__IssueRequest *q = (const Nacre__V1__IssueRequest *)(const void *)request;
	const struct identity_service *s = userdata;
	const struct identity_wish wish = { .name = q->name,
					    .role = *q->role ? q->role : "reader",
					    .spki = { q->public_key.data, q->public_key.len },
					    .days = q->days ? q->days : IDENTITY_DAYS_USUAL };
	struct identity_call *c = identity_call_new(call, s);
	struct error err = ERROR_INIT;
	int r = 0;

	if (!c)
		return;
	if (!str_eq(wish.role, "reader") && !str_eq(wish.role, "admin"))
		r = error_field(&err, ERROR_INVALID, "role", "\"admin\" or \"reader\"");
	if (r == 0)
		r = identities_issue(s->identities, &wish, issue_done, c, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- ListIdentities ---- */

static void list_identities(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	const struct identity_service *s = userdata;
	Nacre__V1__ListIdentitiesResponse m = NACRE__V1__LIST_IDENTITIES_RESPONSE__INIT;
	struct arena *a = rpc_call_arena(call);
	const struct list *all = identities_list(s->identities);
	struct error err = ERROR_INIT;
	const struct identity *i;
	size_t n = 0;

	(void)request;
	list_for_each (i, (struct list *)(uintptr_t)all, struct identity, link)
		n++;
	m.identities = arena_zalloc(a, n + 1, sizeof(struct Nacre__V1__Identity *));
	list_for_each (i, (struct list *)(uintptr_t)all, struct identity, link) {
		Nacre__V1__Identity *shown = arena_alloc(a, sizeof(*shown));
		char id[SPIFFE_SIZE], *kept = NULL;

		if (shown && m.identities) {
			identity_show(s, i, id, shown);
			kept = arena_strdup(a, id);
		}
		if (!kept) {
			(void)error_set(&err, -ENOMEM, "list certificates");
			rpc_call_fail(call, &err);
			return;
		}
		shown->id = kept;
		m.identities[m.n_identities++] = shown;
	}
	rpc_call_reply(call, &m.base);
}

/* ---- Revoke ---- */

static void revoke_done(void *userdata, size_t n, const struct error *err)
{
	Nacre__V1__RevokeResponse m = NACRE__V1__REVOKE_RESPONSE__INIT;
	struct rpc_call *call = userdata;

	m.revoked = (uint32_t)n;
	if (err)
		rpc_call_fail(call, err);
	else
		rpc_call_reply(call, &m.base);
}

static void revoke_identities(struct rpc_call *call, const ProtobufCMessage *request,
			      void *userdata)
{
	const Nacre__V1__RevokeRequest *q = (const Nacre__V1__RevokeRequest *)(const void *)request;
	const struct identity_service *s = userdata;
	struct error err = ERROR_INIT;
	int r;

	if (*q->target)
		r = identities_revoke(s->identities, q->target, revoke_done, call, &err);
	else
		r = error_field(&err, ERROR_INVALID, "target", "required: a name or a serial");
	if (r < 0)
		rpc_call_fail(call, &err);
}

/* ---- Authority ---- */

static void authority_done(void *userdata, const struct gate_bytes *bundle, const struct error *err)
{
	Nacre__V1__AuthorityResponse m = NACRE__V1__AUTHORITY_RESPONSE__INIT;
	const struct identity_call *c = userdata;
	struct issuer_rotation now = issuer_rotation(c->service->issuer);

	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	m.active_at = now.active_at;
	m.retires_at = rotation_retires_at(&now, c->service->identities);
	m.certificate = identity_bytes(bundle->data, bundle->len);
	m.trust_domain = (char *)(uintptr_t)issuer_domain(c->service->issuer);
	m.listen = (char **)(uintptr_t)c->service->listen;
	m.n_listen = c->service->n_listen;
	rpc_call_reply(c->call, &m.base);
}

static void authority(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct identity_call *c = identity_call_new(call, userdata);
	struct error err = ERROR_INIT;
	int r;

	(void)request;
	if (!c)
		return;
	r = issuer_bundle(c->service->issuer, authority_done, c);
	if (r < 0) {
		(void)error_set(&err, r, "ask the certificate authority");
		rpc_call_fail(call, &err);
	}
}

/* ---- RotateAuthority, RetireAuthority ---- */

static void rotate_done(void *userdata, const struct gate_bytes *bundle, const struct error *err)
{
	Nacre__V1__RotateAuthorityResponse m = NACRE__V1__ROTATE_AUTHORITY_RESPONSE__INIT;
	const struct identity_call *c = userdata;
	struct issuer_rotation now = issuer_rotation(c->service->issuer);

	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	m.certificate = identity_bytes(bundle->data, bundle->len);
	m.active_at = now.active_at;
	m.retires_at = rotation_retires_at(&now, c->service->identities);
	rpc_call_reply(c->call, &m.base);
}

static void retire_done(void *userdata, const struct gate_bytes *bundle, const struct error *err)
{
	Nacre__V1__RetireAuthorityResponse m = NACRE__V1__RETIRE_AUTHORITY_RESPONSE__INIT;
	const struct identity_call *c = userdata;

	if (err) {
		rpc_call_fail(c->call, err);
		return;
	}
	m.certificate = identity_bytes(bundle->data, bundle->len);
	rpc_call_reply(c->call, &m.base);
}

static void change_authority(struct rpc_call *call, void *userdata,
			     int (*change)(struct issuer *i, issuer_done_fn done, void *data),
			     issuer_done_fn done)
{
	struct identity_call *c = identity_call_new(call, userdata);
	struct error err = ERROR_INIT;

	if (!c || change(c->service->issuer, done, c) == 0)
		return;
	(void)error_refuse(
		&err, ERROR_UNAVAILABLE,
		"the certificate authority is being changed by another call (try again)");
	rpc_call_fail(call, &err);
}

static void rotate_authority(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	(void)request;
	change_authority(call, userdata, issuer_rotate, rotate_done);
}

static void retire_authority(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	(void)request;
	change_authority(call, userdata, issuer_retire, retire_done);
}

static const struct rpc_method identity_methods[] = {
	{ "Issue", &nacre__v1__issue_request__descriptor, &nacre__v1__issue_response__descriptor,
	  false, issue },
	{ "ListIdentities", &nacre__v1__list_identities_request__descriptor,
	  &nacre__v1__list_identities_response__descriptor, false, list_identities },
	{ "Revoke", &nacre__v1__revoke_request__descriptor, &nacre__v1__revoke_response__descriptor,
	  false, revoke_identities },
	{ "Authority", &nacre__v1__authority_request__descriptor,
	  &nacre__v1__authority_response__descriptor, false, authority },
	{ "RotateAuthority", &nacre__v1__rotate_authority_request__descriptor,
	  &nacre__v1__rotate_authority_response__descriptor, false, rotate_authority },
	{ "RetireAuthority", &nacre__v1__retire_authority_request__descriptor,
	  &nacre__v1__retire_authority_response__descriptor, false, retire_authority },
};

const struct rpc_service identity_service = {
	.name = "nacre.v1.IdentityService",
	.methods = identity_methods,
	.n_methods = ARRAY_SIZE(identity_methods),
};
