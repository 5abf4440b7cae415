/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_DAEMON_REMOTE_H
#define NACRE_DAEMON_REMOTE_H

#include "base/log/error.h"
#include "daemon/audit.h"
#include "daemon/config.h"
#include "rpc/message/status.h"
#include "runtime/services.h"

/*
 * Users from elsewhere: the certificates that they have, the listeners where they come in, and what
 * each of them may call.
 */

struct front;
struct identities;
struct issuer;
struct loop;
struct policy;
struct rotation;
struct root_store;
struct rpc_peer;
struct rpc_server;

struct remote {
	struct loop *loop;
	const struct config *config;
	struct issuer *issuer;
	struct identities *identities;
	struct rotation *rotation;
	struct rpc_server *server; /* between remote_begin() and remote_end() */
	struct front *fronts[CONFIG_LISTEN_MAX];
	const char *listen[CONFIG_LISTEN_MAX];
	struct identity_service service;
	struct policy *policy; /* NULL: the roles of certificates */
	struct audit audit;
	bool rechecking; /* what has begun is no new change of state */
};

/* The policy and the audit log that the configuration names: before anything is made. */
int remote_read(struct remote *r, const struct config *config, struct error *err);
/* Reads the records: while the store is idle. Starts nothing. */
int remote_open(struct remote *r, struct loop *loop, struct root_store *store,
		struct issuer *issuer, struct error *err);
/* Reads the policy and opens the audit log again, on SIGHUP. What is broken is told, and what was
 * there before stays. */
void remote_reload(struct remote *r);
/* Listens, for the server. An address that cannot be had is tried again. */
void remote_begin(struct remote *r, struct rpc_server *server);
/* Nobody comes any more, and who is there goes. */
void remote_end(struct remote *r);
/* Behind pool_free(), before the issuer and the store go. Also where it was never opened. */
void remote_close(struct remote *r);

/* For struct rpc_server_config; userdata: struct remote. */
int remote_authorize(void *userdata, const struct rpc_peer *peer, const char *method,
		     struct error *err);
void remote_done(void *userdata, const struct rpc_peer *peer, const char *method,
		 enum rpc_code code);

#endif
