/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remote.h"

#include <errno.h>
#include <limits.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/text/str.h"
#include "daemon/access.h"
#include "daemon/place.h"
#include "daemon/policy.h"
#include "gates/front.h"
#include "gates/identities.h"
#include "gates/issuer.h"
#include "gates/rotation.h"
#include "rpc/server/server.h"

/* As whom the gates of listeners run: beside those of machines (microvms.c). */
#define REMOTE_GATE_UID 1879113725

/* ---- certificates ---- */

static void remote_tell_revoked(struct remote *r, struct front *front)
{
	const struct gate_bytes all = identities_revoked(r->identities);

	if (front_set_revoked(front, all.data, all.len) < 0)
		log_error("a listener is closed: no memory for the list of what is revoked",
			  LOG_STR("address", front_address(front)));
}

static void remote_on_revoked(void *userdata)
{
	struct remote *r = userdata;

	for (size_t i = 0; i < ARRAY_SIZE(r->fronts); i++)
		if (r->fronts[i])
			remote_tell_revoked(r, r->fronts[i]);
}

/* ---- visitors ---- */

static void remote_on_visitor(void *userdata, int fd, const struct front_visitor *visitor)
{
	_cleanup_fd_ int owned = fd;
	struct remote *r = userdata;
	struct rpc_remote *who = NULL;
	const struct identity *known;

	if (!r->server || rpc_remote_new(&who, visitor->id, visitor->address) < 0)
		return;
	known = identities_find(r->identities, visitor->serial);
	identity_serial_text(visitor->serial, who->serial);
	/* The gate has the list too; this one is never late. */
	if (known && !known->revoked_at)
		(void)str_copy(who->role, sizeof(who->role), known->role);
	if (!known || !known->revoked_at)
		rpc_server_take(r->server, TAKE_FD(owned), who);
	(void)rpc_remote_unref(who);
}

int remote_authorize(void *userdata, const struct rpc_peer *peer, const char *method,
		     struct error *err)
{
	struct remote *r = userdata;
	int n = r->rechecking ? 0 : audit_check(&r->audit, method, err);

	if (n < 0 || !peer->remote)
		return n;
	/* A certificate without a record is refused whatever a rule says. */
	if (!*peer->remote->role || !r->policy)
		return access_check(peer->remote, method, err);
	if (policy_allows(r->policy, peer->remote->id, method))
		return 0;
	return error_refuse(err, ERROR_DENIED, "no rule of %.120s lets %.120s call %.120s",
			    r->config->policy, peer->remote->id, method);
}

void remote_done(void *userdata, const struct rpc_peer *peer, const char *method,
		 enum rpc_code code)
{
	struct remote *r = userdata;

	audit_call(&r->audit, peer, method, code);
}

/* ---- policy and audit ---- */

static int remote_open_policy(struct remote *r, struct error *err)
{
	struct policy *p = NULL;
	int n;

	if (!*r->config->policy)
		return 0;
	n = policy_load(&p, r->config->policy, err);
	if (n < 0)
		return n;
	r->policy = policy_free(r->policy);
	r->policy = p;
	return 0;
}

static int remote_open_audit(struct remote *r, struct error *err)
{
	int fd;

	if (!*r->config->audit)
		return 0;
	fd = audit_open(r->config->audit, err);
	if (fd < 0)
		return fd;
	if (r->audit.fd > 0)
		(void)fd_close(r->audit.fd);
	r->audit.fd = fd;
	r->audit.path = r->config->audit;
	r->audit.refuse = r->config->audit_full_refuses;
	return 0;
}

void remote_reload(struct remote *r)
{
	struct error err = ERROR_INIT;

	if (remote_open_policy(r, &err) < 0)
		log_error("the policy is refused; the one before stays", LOG_ERR(&err));
	else if (*r->config->policy)
		log_info("the policy was read again", LOG_STR("file", r->config->policy));
	r->rechecking = true;
	if (r->server)
		rpc_server_recheck(r->server);
	r->rechecking = false;
	if (remote_open_audit(r, &err) < 0)
		log_error("the audit log is not opened again; the one before stays", LOG_ERR(&err));
}

/* ---- from open to close ---- */

int remote_read(struct remote *r, const struct config *config, struct error *err)
{
	int n;

	r->config = config;
	n = remote_open_policy(r, err);
	return n < 0 ? n : remote_open_audit(r, err);
}

int remote_open(struct remote *r, struct loop *loop, struct root_store *store,
		struct issuer *issuer, struct error *err)
{
	const struct config *config = r->config;
	const struct identities_config c = {
		.store = store, .issuer = issuer, .on_revoked = remote_on_revoked, .userdata = r
	};
	int n = identities_new(&r->identities, &c, err);

	if (n < 0)
		return n;
	n = rotation_new(&r->rotation,
			 &(const struct rotation_config){ loop, issuer, r->identities });
	if (n < 0)
		return error_set(err, n, "watch the certificate authority");
	r->loop = loop;
	r->issuer = issuer;
	for (size_t i = 0; i < config->listen.n; i++)
		r->listen[i] = config->listen.addresses[i];
	r->service = (struct identity_service){ .identities = r->identities,
						.issuer = issuer,
						.listen = r->listen,
						.n_listen = config->listen.n };
	return 0;
}

void remote_close(struct remote *r)
{
	remote_end(r);
	r->rotation = rotation_free(r->rotation);
	r->identities = identities_free(r->identities);
	r->policy = policy_free(r->policy);
	if (r->audit.fd > 0)
		r->audit.fd = fd_close(r->audit.fd);
}

/* ---- listeners ---- */

void remote_begin(struct remote *r, struct rpc_server *server)
{
	char gate[PATH_MAX];
	struct front_config c = { .loop = r->loop,
				  .issuer = r->issuer,
				  .program = gate,
				  .names = r->config->listen.names,
				  .uid = REMOTE_GATE_UID,
				  .gid = REMOTE_GATE_UID,
				  .on_visitor = remote_on_visitor,
				  .userdata = r };

	r->server = server;
	place_find_helper(r->config->libexec, "nacre-gate", gate, sizeof(gate));
	for (size_t i = 0; i < r->config->listen.n; i++) {
		c.address = r->config->listen.addresses[i];
		if (front_new(&r->fronts[i], &c) < 0) {
			log_error("nobody listens at an address: out of memory",
				  LOG_STR("address", c.address));
			continue;
		}
		remote_tell_revoked(r, r->fronts[i]);
	}
}

void remote_end(struct remote *r)
{
	r->server = NULL;
	for (size_t i = 0; i < ARRAY_SIZE(r->fronts); i++)
		r->fronts[i] = front_free(r->fronts[i]);
}
