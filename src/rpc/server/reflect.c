/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/reflect.h"

#include <string.h>

#include "rpc/server/call.h"
#include "rpc/server/descriptors.h"

/* Field numbers of reflection.proto. */
enum {
	REQUEST_HOST = 1,
	REQUEST_FILE = 3,
	REQUEST_SYMBOL = 4,
	REQUEST_EXTENSION = 5,
	REQUEST_EXTENSIONS_OF = 6,
	REQUEST_SERVICES = 7,

	RESPONSE_HOST = 1,
	RESPONSE_REQUEST = 2,
	RESPONSE_FILES = 4,
	RESPONSE_EXTENSIONS = 5,
	RESPONSE_SERVICES = 6,
	RESPONSE_ERROR = 7,

	FILES_FILE = 1,
	EXTENSIONS_TYPE = 1,
	SERVICES_SERVICE = 1,
	SERVICE_NAME = 1,
	ERROR_CODE = 1,
	ERROR_MESSAGE = 2,
};

/* Names in a request; longer ones are not ours. */
#define REFLECT_NAME_MAX 512

static void buf_donep(struct buf *b)
{
	buf_done(b);
}

/* Each of these adds the message_response to out. 0 or a negative errno. */

static int reflect_error(struct buf *out, enum rpc_code code, const char *message)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT;
	int r = pb_put_varint(&b, ERROR_CODE, (uint64_t)code);

	if (r == 0)
		r = pb_put_str(&b, ERROR_MESSAGE, message);
	return r < 0 ? r : pb_put_bytes(out, RESPONSE_ERROR, buf_data(&b), b.len);
}

static int reflect_put_file(struct buf *out, const struct pb_field *file)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT;
	int r = pb_put_bytes(&b, FILES_FILE, file->data, file->len);

	return r < 0 ? r : pb_put_bytes(out, RESPONSE_FILES, buf_data(&b), b.len);
}

static int reflect_find(struct reflect *reflect, struct buf *out, const char *name,
			int (*find)(const void *set, size_t len, const char *name,
				    struct pb_field *ret))
{
	struct pb_field file;

	for (size_t i = 0; i < ARRAY_SIZE(reflect->sets); i++)
		if (find(reflect->sets[i].data, reflect->sets[i].len, name, &file) > 0)
			return reflect_put_file(out, &file);
	return reflect_error(out, RPC_NOT_FOUND, "not known here");
}

static int reflect_file(struct reflect *reflect, struct buf *out, const char *name)
{
	return reflect_find(reflect, out, name, descriptors_find_file);
}

static int reflect_symbol(struct reflect *reflect, struct buf *out, const char *name)
{
	return reflect_find(reflect, out, name, descriptors_find_symbol);
}

static int reflect_extension(struct reflect *reflect, struct buf *out, const char *name)
{
	return reflect_error(out, RPC_NOT_FOUND, "there are no extensions here");
}

static int reflect_extensions_of(struct reflect *reflect, struct buf *out, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT;
	struct pb_field file;
	int r;

	for (size_t i = 0; i < ARRAY_SIZE(reflect->sets); i++) {
		if (descriptors_find_symbol(reflect->sets[i].data, reflect->sets[i].len, name,
					    &file) <= 0)
			continue;
		r = pb_put_str(&b, EXTENSIONS_TYPE, name);
		return r < 0 ? r : pb_put_bytes(out, RESPONSE_EXTENSIONS, buf_data(&b), b.len);
	}
	return reflect_error(out, RPC_NOT_FOUND, "not known here");
}

static int reflect_put_service(struct buf *to, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT;
	int r = pb_put_str(&b, SERVICE_NAME, name);

	return r < 0 ? r : pb_put_bytes(to, SERVICES_SERVICE, buf_data(&b), b.len);
}

static int reflect_services(struct reflect *reflect, struct buf *out, const char *name)
{
	_cleanup_(buf_donep) struct buf b = BUF_INIT;
	const char *service;
	int r = 0;

	for (size_t i = 0; r == 0; i++) {
		service = reflect->service(reflect, i);
		if (!service)
			break;
		r = reflect_put_service(&b, service);
	}
	return r < 0 ? r : pb_put_bytes(out, RESPONSE_SERVICES, buf_data(&b), b.len);
}

static const struct {
	uint32_t number;
	int (*answer)(struct reflect *reflect, struct buf *out, const char *name);
} reflect_requests[] = {
	{ REQUEST_FILE, reflect_file },           { REQUEST_SYMBOL, reflect_symbol },
	{ REQUEST_EXTENSION, reflect_extension }, { REQUEST_EXTENSIONS_OF, reflect_extensions_of },
	{ REQUEST_SERVICES, reflect_services },
};

static int reflect_answer(struct reflect *reflect, struct buf *out, const struct pb_field *f)
{
	char name[REFLECT_NAME_MAX] = "";

	for (size_t i = 0; i < ARRAY_SIZE(reflect_requests); i++) {
		if (reflect_requests[i].number != f->number)
			continue;
		if (f->len >= sizeof(name) || (f->len && memchr(f->data, '\0', f->len)))
			return reflect_error(out, RPC_NOT_FOUND, "not known here");
		if (f->len)
			memcpy(name, f->data, f->len);
		return reflect_requests[i].answer(reflect, out, name);
	}
	return reflect_error(out, RPC_UNIMPLEMENTED, "not a request that is known here");
}

/* The field of the oneof, the last one where there are several; 0 also where there is none. */
static int reflect_parse(const uint8_t *data, size_t len, struct pb_field *ret,
			 struct pb_field *ret_host)
{
	struct pb_reader reader = pb_reader(data, len);
	struct pb_field f;
	int r;

	*ret = *ret_host = (struct pb_field){ .number = 0 };
	for (;;) {
		r = pb_next(&reader, &f);
		if (r <= 0)
			return r;
		if (f.wire != PB_BYTES)
			continue;
		*(f.number == REQUEST_HOST ? ret_host : ret) = f;
	}
}

static void reflect_message(struct rpc_call *c, const uint8_t *data, size_t len)
{
	_cleanup_(buf_donep) struct buf out = BUF_INIT;
	struct pb_field f, host;
	int r;

	if (reflect_parse(data, len, &f, &host) < 0)
		return call_end(c, RPC_INVALID_ARGUMENT, "not a ServerReflectionRequest");
	r = pb_put_bytes(&out, RESPONSE_HOST, host.data, host.len);
	if (r == 0)
		r = pb_put_bytes(&out, RESPONSE_REQUEST, data, len);
	if (r == 0)
		r = reflect_answer(c->userdata, &out, &f);
	if (r == 0)
		r = call_send(c, buf_data(&out), out.len);
	if (r < 0)
		return call_fail_send(c, r);
	if (!exchange_writable(&c->x))
		exchange_pause(&c->x, true);
}

static void reflect_writable(struct rpc_call *c, void *data)
{
	exchange_pause(&c->x, false);
}

static void reflect_open(struct rpc_call *c)
{
	c->on_writable = reflect_writable;
}

static void reflect_end(struct rpc_call *c)
{
	call_end(c, RPC_OK, NULL);
}

static void reflect_lost(struct rpc_call *c)
{
	call_end(c, RPC_CANCELLED, NULL);
}

const struct call_input reflect_info = {
	.open = reflect_open,
	.message = reflect_message,
	.end = reflect_end,
	.lost = reflect_lost,
};
