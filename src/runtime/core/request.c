/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/request.h"

#include "base/memory/hash.h"
#include "base/text/str.h"
#include "pod/workload/workload.h"
#include "runtime/services.h"

struct request_hash {
	ProtobufCBuffer buffer;
	uint64_t hash;
};

static void request_append(ProtobufCBuffer *buffer, size_t len, const uint8_t *data)
{
	struct request_hash *h = container_of(buffer, struct request_hash, buffer);

	h->hash = hash_add(h->hash, data, len);
}

/* The kind of the request is part of it. */
static uint64_t request_hash(const ProtobufCMessage *request)
{
	struct request_hash h = { .buffer = { .append = request_append }, .hash = HASH_INIT };

	h.hash = hash_add_str(h.hash, request->descriptor->name);
	(void)protobuf_c_message_pack_to_buffer(request, &h.buffer);
	return h.hash;
}

static int request_compare(const char *key, const char *recorded, const char *path,
			   struct error *err)
{
	if (!request_same_id(key, recorded))
		return 0;
	if (str_eq(key, recorded))
		return 1;
	return error_field(err, ERROR_EXISTS, "request_id",
			   "it was used for another request, that of %s", path);
}

int request_find(const struct runtime_service *s, const ProtobufCMessage *request, const char *id,
		 char ret_key[REQUEST_KEY_SIZE], struct target *ret, struct error *err)
{
	struct instance *i;
	struct workload *w;
	int r;

	ret_key[0] = '\0';
	if (str_empty(id))
		return 0;
	if (!request_id_is(id))
		return error_field(err, ERROR_INVALID, "request_id",
				   "\"%.80s\" is not 1 to %d of A-Z, a-z, 0-9, '.', '_' and '-'",
				   id, REQUEST_ID_MAX);
	request_key(ret_key, id, request_hash(request));
	list_for_each (w, workloads_list(s->workloads), struct workload, link) {
		r = request_compare(ret_key, w->request, w->path, err);
		*ret = (struct target){ .workload = w };
		if (r != 0)
			return r;
	}
	list_for_each (i, instances_list(s->instances), struct instance, link) {
		r = i->state == INSTANCE_GONE ? 0
					      : request_compare(ret_key, i->request, i->path, err);
		*ret = (struct target){ .instance = i };
		if (r != 0)
			return r;
	}
	return 0;
}
