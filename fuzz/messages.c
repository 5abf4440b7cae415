/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Every message of the API. The first byte says which; what is decoded is packed to bytes that are
 * decoded to the same again.
 */

#include <protobuf-c/protobuf-c.h>

#include "fuzz.h"
#include "rpc/exchange/client.h"

extern const ProtobufCMessageDescriptor *const fuzz_messages[];
extern const size_t fuzz_n_messages;

static uint8_t *pack(const ProtobufCMessage *m, size_t *ret_len)
{
	uint8_t *bytes;

	*ret_len = protobuf_c_message_get_packed_size(m);
	bytes = malloc(*ret_len + 1);
	fuzz_need(bytes && protobuf_c_message_pack(m, bytes) == *ret_len);
	return bytes;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	const ProtobufCMessageDescriptor *type = fuzz_messages[fuzz_byte(&in) % fuzz_n_messages];
	struct error err = ERROR_INIT;
	ProtobufCMessage *m = rpc_decode(type, in.at, in.len, NULL, &err);
	uint8_t *once, *twice;
	size_t n_once, n_twice;

	if (!m) {
		fuzz_need(err.code != 0 && err.text[0] != '\0');
		return 0;
	}
	once = pack(m, &n_once);
	protobuf_c_message_free_unpacked(m, NULL);
	m = rpc_decode(type, once, n_once, NULL, &err);
	fuzz_need(m != NULL);
	twice = pack(m, &n_twice);
	protobuf_c_message_free_unpacked(m, NULL);
	fuzz_need(n_once == n_twice && memcmp(once, twice, n_once) == 0);
	free(once);
	free(twice);
	return 0;
}
