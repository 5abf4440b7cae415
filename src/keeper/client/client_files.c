/* SPDX-License-Identifier: Apache-2.0 */
#include "keeper/client/client_files.h"

#include "base/text/str.h"
#include "keeper/client/client_call.h"
#include "keeper/message/convert.h"
#include "keeper/message/convert_tree.h"

static struct keeper_client *client_of(struct peer *p)
{
	return container_of(p, struct keeper_client, peer);
}

bool client_takes_files(struct peer *p)
{
	return client_of(p)->files;
}

bool client_takes_hosts(struct peer *p)
{
	return client_of(p)->hosts;
}

void client_put_hosts(struct peer *p, const char *id, const char *block, peer_done_fn done,
		      void *userdata)
{
	Nacre__Instance__V1__PutHostsRequest request;

	nacre__instance__v1__put_hosts_request__init(&request);
	request.id = convert_str(id);
	request.block = convert_str(block);
	client_call_plain(client_of(p), KEEPER_METHOD("PutHosts"), &request.base,
			  &nacre__instance__v1__put_hosts_response__descriptor, PEER_FILES_TIMEOUT,
			  done, userdata);
}

static ProtobufCBinaryData client_mac(const uint8_t *mac)
{
	return (ProtobufCBinaryData){ .len = mac ? 6 : 0, .data = (uint8_t *)(uintptr_t)mac };
}

void client_put_link(struct peer *p, const struct peer_link *link, peer_done_fn done,
		     void *userdata)
{
	Nacre__Instance__V1__PutLinkRequest request;

	nacre__instance__v1__put_link_request__init(&request);
	request.device = client_mac(link->device);
	request.gone = link->gone;
	request.name = convert_str(link->name);
	request.mac = client_mac(link->mac);
	request.mtu = link->mtu;
	request.settings = convert_str(link->settings ?: "");
	client_call_plain(client_of(p), KEEPER_METHOD("PutLink"), &request.base,
			  &nacre__instance__v1__put_link_response__descriptor, PEER_FILES_TIMEOUT,
			  done, userdata);
}

static void client_finish_files(struct client_call *call, const ProtobufCMessage *response,
				const struct error *err)
{
	(void)response;
	call->done(call->userdata, err);
}

void client_put_files(struct peer *p, const char *volume, const struct tree_list *files,
		      peer_done_fn done, void *userdata)
{
	struct client_call *call = client_call_new(client_of(p), client_finish_files, userdata);
	Nacre__Instance__V1__PutFilesRequest request;
	struct convert_files f;
	struct error err;

	if (!call) {
		client_no_memory(&err);
		done(userdata, &err);
		return;
	}
	call->done = done;
	nacre__instance__v1__put_files_request__init(&request);
	request.volume = convert_str(volume);
	if (convert_files(&f, &request, files) < 0) {
		client_no_memory(&err);
		client_call_refuse(call, &err);
		return;
	}
	client_call_ask(call, KEEPER_METHOD("PutFiles"), &request.base,
			&nacre__instance__v1__put_files_response__descriptor, PEER_FILES_TIMEOUT);
	convert_files_done(&f);
}

void client_put_disk(struct peer *p, const struct peer_piece *piece, peer_done_fn done,
		     void *userdata)
{
	Nacre__Instance__V1__PutDiskRequest request;

	nacre__instance__v1__put_disk_request__init(&request);
	request.serial = convert_str(piece->serial);
	request.offset = piece->offset;
	request.size = piece->size;
	request.data.data = (uint8_t *)(uintptr_t)piece->data;
	request.data.len = piece->len;
	client_call_plain(client_of(p), KEEPER_METHOD("PutDisk"), &request.base,
			  &nacre__instance__v1__put_disk_response__descriptor, PEER_DISK_TIMEOUT,
			  done, userdata);
}
