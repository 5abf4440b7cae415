/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/remote.h"

#include <errno.h>
#include <limits.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "daemon/access.h"
#include "daemon/place.h"
#include "gates/front.h"
#include "gates/identities.h"
#include "gates/issuer.h"
#include "rpc/server.h"

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

int remote_open(struct remote *r, struct loop *loop, const struct config *config,
		struct root_store *store, struct issuer *issuer, struct error *err)
{
	const struct identities_config c = {
		.store = store, .issuer = issuer, .on_revoked = remote_on_revoked, .userdata = r
	};
	int n = identities_new(&r->identities, &c, err);

	if (n < 0)
		return n;
	r->loop = loop;
	r->config = config;
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
	r->identities = identities_free(r->identities);
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
	(void)userdata;
	return peer->remote ? access_check(peer->remote, method, err) : 0;
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
