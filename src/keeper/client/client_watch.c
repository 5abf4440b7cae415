/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_watch.h"

#include "base/fault/failpoint.h"
#include "base/process/build_id.h"
#include "base/text/str.h"
#include "keeper/message/convert.h"

_Static_assert(sizeof(((struct peer_hello *)NULL)->build) == BUILD_ID_MAX + 1, "room for an id");

void client_make_hello(const struct keeper_client *client,
		       Nacre__Instance__V1__HelloRequest *request)
{
	nacre__instance__v1__hello_request__init(request);
	request->protocol = FAILPOINT("upgrade.protocol") < 0 ? UINT32_MAX : KEEPER_PROTOCOL;
	request->version = convert_str(NACRE_VERSION);
	if (client->path)
		request->path = client->path;
}

static void client_keep_hello(struct keeper_client *client,
			      const Nacre__Instance__V1__HelloResponse *response)
{
	const struct {
		const char *name;
		bool *flag;
	} features[] = {
		{ "upgrade", &client->hello.can_upgrade },
		{ "log-rotation", &client->rotates },
		{ "mounts", &client->mounts },
		{ "limits", &client->limits },
		{ "late-fds", &client->late },
		{ "disks", &client->disks },
		{ "logs", &client->logs },
		{ "shares", &client->shares },
		{ "groups", &client->groups },
		{ "files", &client->files },
		{ "hosts", &client->hosts },
		{ "scratch", &client->scratch },
		{ "log-change", &client->changes_log },
		{ "security", &client->secures },
		{ "devices", &client->devices },
		{ "visitors", &client->visitors },
		{ "rlimits", &client->rlimits },
		{ "filters", &client->filters },
		{ "tmpfs-owner", &client->tmpfs_owner },
		{ "cell-network", &client->cell_network },
		{ "sysctls", &client->sysctls },
	};

	for (size_t f = 0; f < ARRAY_SIZE(features); f++) {
		*features[f].flag = false;
		for (size_t i = 0; i < response->n_features; i++)
			if (str_eq(response->features[i], features[f].name))
				*features[f].flag = true;
	}
	/* What does not fit is not ours. */
	if (str_copy(client->hello.build, sizeof(client->hello.build), response->build) < 0)
		client->hello.build[0] = '\0';
	(void)str_copy(client->hello.version, sizeof(client->hello.version), response->version);
}

int client_take_hello(struct keeper_client *client, const ProtobufCMessage *response,
		      const struct error *answer, struct error *err)
{
	const Nacre__Instance__V1__HelloResponse *hello = (const void *)response;

	if (answer && answer->kind != ERROR_PRECONDITION)
		return error_copy(err, answer);
	if (!answer && hello->protocol == KEEPER_PROTOCOL) {
		client_keep_hello(client, hello);
		return 0;
	}
	if (answer)
		(void)error_copy(&client->refusal, answer);
	else
		(void)error_refuse(&client->refusal, ERROR_PRECONDITION,
				   "its keeper (version %.40s) speaks protocol %u", hello->version,
				   hello->protocol);
	(void)error_wrap(&client->refusal, client->refusal.code,
			 "the keeper and this daemon (version %s, protocol %u) are too far apart",
			 NACRE_VERSION, KEEPER_PROTOCOL);
	return error_copy(err, &client->refusal);
}

static void client_tell(struct keeper_client *client,
			const Nacre__Instance__V1__WatchResponse *change)
{
	const struct peer_events *events = client->events;
	void *userdata = client->events_userdata;
	struct process_identity user;
	struct container_view view;

	/* A message says one thing: after an event the peer may be gone. */
	if (change->synced)
		events->on_synced(userdata);
	else if (change->child && !change->child->alive)
		events->on_child_end(userdata, change->child->name, change->child->reason);
	else if (convert_view(&view, change->container) == 0) {
		if (change->container->user &&
		    convert_identity(&user, change->container->user) == 0)
			view.user = &user;
		events->on_container(userdata, &view);
	}
}

static void client_on_change(struct rpc_stream *stream, const uint8_t *data, size_t len,
			     void *userdata)
{
	struct keeper_client *client = userdata;
	struct connection *c = connection_enter(client->connection);
	ProtobufCMessage *message;

	message =
		rpc_decode(&nacre__instance__v1__watch_response__descriptor, data, len, NULL, NULL);
	if (message) {
		client_tell(client, (const void *)message);
		protobuf_c_message_free_unpacked(message, NULL);
	}
	connection_leave(c);
}

static void client_on_watch_end(struct rpc_stream *stream, enum rpc_code code,
				const struct error *err, void *userdata)
{
	struct keeper_client *client = userdata;
	struct connection *c = connection_enter(client->connection);
	struct error ended = ERROR_INIT;

	client->watch = NULL;
	(void)error_refuse(&ended, ERROR_UNAVAILABLE, "the keeper has ended its watch");
	if (!err || !err->code)
		err = &ended;
	c->lost(client, err);
	connection_leave(c);
}

static const struct rpc_stream_ops client_watch_ops = {
	.on_message = client_on_change,
	.on_end = client_on_watch_end,
};

int client_watch(struct keeper_client *client)
{
	Nacre__Instance__V1__WatchRequest request;
	struct rpc_request call = {
		.method = KEEPER_METHOD("Watch"),
		.target = client->target,
		.message = &request.base,
		.timeout = NSEC_NEVER,
	};

	nacre__instance__v1__watch_request__init(&request);
	return rpc_client_call(client->connection->rpc, &call, &client_watch_ops, client,
			       &client->watch);
}
