/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_CALL_H
#define NACRE_KEEPER_CLIENT_CALL_H

#include "keeper/client/client_model.h"

/* A call of a client, for the units behind keeper/client/client.h. */

#define START_FDS 3 /* and behind them the mounts */

struct client_call;
typedef void (*client_finish_fn)(struct client_call *call, const ProtobufCMessage *response,
				 const struct error *err);

struct client_call {
	struct unary unary;
	struct list link; /* of the client */
	struct keeper_client *client;
	client_finish_fn finish;
	union {
		peer_done_fn done;
		peer_started_fn started;
		void (*spawned)(void *userdata, int64_t pid, const struct error *err);
		peer_machine_fn machine;
		peer_usage_fn used;
		peer_processes_fn processes;
	};
	void *userdata;
	struct list waiting; /* of the connection: those that were not sent yet */
	bool is_start, counted;
	const char *method;
	const ProtobufCMessageDescriptor *output;
	nsec_t timeout;
	uint8_t *data; /* the request of one that waits */
	size_t len;
	/* Start only. */
	bool late; /* fds are still to be given */
	char id[ID_SIZE];
	size_t n_fds;
	uint64_t tokens[START_FDS];
	int fds[START_FDS];
	uint64_t *mount_tokens, network_token;
	struct container_fds mounts; /* its mounts and its cell's network alone */
};

/* NULL without memory; client_no_memory() is the error of that. Then it is started: finish follows,
 * later. */
struct client_call *client_call_new(struct keeper_client *client, client_finish_fn finish,
				    void *userdata);
void client_call_ask(struct client_call *call, const char *method, const ProtobufCMessage *message,
		     const ProtobufCMessageDescriptor *output, nsec_t timeout);
/* Instead of that. */
void client_call_refuse(struct client_call *call, const struct error *err);
void client_no_memory(struct error *err);
/* A call whose answer carries nothing but success: all of the above in one. */
void client_call_plain(struct keeper_client *client, const char *method,
		       const ProtobufCMessage *message, const ProtobufCMessageDescriptor *output,
		       nsec_t timeout, peer_done_fn done, void *userdata);
/* Sends the descriptors of a start that is under way already; a failure ends the call. */
/* peer_ops.change_log(). */
void client_change_log(struct keeper_client *client, const char *id, int fd, peer_done_fn done,
		       void *userdata);
void client_call_give(struct client_call *call);
/* Ends a call without a completion. */
void client_call_free(struct client_call *call);

/* Sends the starts that wait, as far as their descriptors fit. */
void connection_pump(struct connection *c);
/* The keeper has said hello again, or never will: sends all that waits. */
void connection_go_on(struct connection *c);

/* The request of a start into call->data, with tokens for its descriptors: those of call->fds, or
 * those that will be given where the spec is `late`. -ENOMEM, or that nothing random is to be had.
 */
int client_call_prepare_start(struct client_call *call, const struct cell_spec *cell,
			      const struct container_spec *spec);
/* A keeper of another release would pass over what it does not know, and one that is reached
 * without a channel gets no descriptors. */
int client_check_features(const struct client_call *call, const struct cell_spec *cell,
			  const struct container_spec *spec, struct error *err);

#endif
