/* SPDX-License-Identifier: Apache-2.0 */

/*
 * Input from a cloud and from credentials. The first byte selects the parser: an XML response
 * (machines or an error), a credentials file, the metadata service, a packet between the daemon and
 * its helper, base64, an answer of a vCenter, the file of its key, a JSON response of Compute
 * Engine.
 */

#include "base/text/str.h"
#include "cloud/credentials.h"
#include "cloud/ec2.h"
#include "cloud/gce.h"
#include "cloud/gce_call.h"
#include "cloud/vsphere.h"
#include "cloud/xml.h"
#include "fuzz.h"
#include "wire/format/base64.h"
#include "wire/message/cloudmsg.h"

static void fuzz_answer(struct fuzz_input in)
{
	struct arena arena = ARENA_INIT_LIMIT(1 << 20);
	const struct xml_node *set, *item;
	struct error err = ERROR_INIT;
	struct xml_node *root;
	struct cloud_machine m;
	struct cloud_fault f;
	bool again;

	if (xml_parse(&root, &arena, in.at, in.len, &err) == 0) {
		if (ec2_judge(400, root, &f, &again, &err) < 0)
			fuzz_need(*err.text && str_is_clean(f.code));
		set = xml_find(root, "instancesSet");
		for (item = set ? set->first : NULL; item; item = item->next) {
			if (ec2_read_machine(&m, item, &arena, &err) < 0)
				continue;
			fuzz_need(str_has_prefix(m.id, "i-") && str_is_clean(m.state));
			fuzz_need(str_is_clean(m.reason) &&
				  str_is_utf8(m.reason, strlen(m.reason)));
			for (size_t i = 0; i < m.n_tags; i++)
				fuzz_need(str_is_clean(m.tags[i]) && strchr(m.tags[i], '='));
		}
	}
	arena_done(&arena);
}

/* The same of a cloud that speaks JSON. */
static void fuzz_instance(struct fuzz_input in)
{
	struct arena arena = ARENA_INIT_LIMIT(1 << 20);
	struct error err = ERROR_INIT;
	struct json_value *root = NULL;
	const struct json_value *items, *item;
	struct cloud_machine m;
	struct cloud_fault f;
	bool again;

	if (json_parse(&root, &arena, in.at, in.len, &err) == 0) {
		if (gce_judge(404, root, &f, &again, &err) < 0)
			fuzz_need(*err.text && str_is_clean(f.code));
		items = root->kind == JSON_OBJECT ? json_member(root, "items") : NULL;
		item = items && items->kind == JSON_ARRAY ? items->first : root;
		for (; item; item = item->next) {
			if (gce_read_machine(&m, item, &arena, &err) < 0)
				continue;
			fuzz_need(*m.id && !strchr(m.id, '/') && str_is_clean(m.address));
			fuzz_need(str_is_clean(m.zone) && str_is_clean(m.type));
			fuzz_need(str_is_clean(m.reason) &&
				  str_is_utf8(m.reason, strlen(m.reason)));
			for (size_t i = 0; i < m.n_tags; i++)
				fuzz_need(str_is_clean(m.tags[i]) && strchr(m.tags[i], '='));
		}
	}
	arena_done(&arena);
}

static void fuzz_profile(struct fuzz_input in)
{
	struct credentials c;

	if (credentials_read_profile(&c, (const char *)in.at, in.len, "default", NULL) > 0)
		fuzz_need(*c.id && *c.secret && str_is_clean(c.secret) && str_is_clean(c.token));
}

static void fuzz_metadata(struct fuzz_input in)
{
	struct credentials c;

	if (credentials_read_metadata(&c, in.at, in.len, NULL) == 0)
		fuzz_need(str_is_clean(c.id) && str_is_clean(c.token));
}

static void fuzz_packet(struct fuzz_input in)
{
	struct cloudmsg m;
	const char *at = NULL;
	size_t n = 0;

	if (cloudmsg_read(&m, in.at, in.len) < 0)
		return;
	while (cloudmsg_next(&m, "tag", &at))
		n++;
	fuzz_need(n <= CLOUDMSG_WORDS_MAX && str_is_clean(cloudmsg_get(&m, "id")));
}

/* What base64 was read into says the same again. */
static void fuzz_base64(struct fuzz_input in)
{
	struct arena arena = ARENA_INIT_LIMIT(1 << 20);
	char *text = fuzz_str(in), *again;
	uint8_t *data = arena_alloc(&arena, strlen(text) + 1);
	uint8_t *same = arena_alloc(&arena, strlen(text) + 4);
	size_t len, n;

	if (data && same && base64_decode_lines(text, data, &len)) {
		again = base64_encode(&arena, data, len);
		fuzz_need(again && base64_decode_lines(again, same, &n) && n == len &&
			  memcmp(data, same, n) == 0);
	}
	arena_done(&arena);
	free(text);
}

static void fuzz_object(const struct xml_node *object, struct arena *arena)
{
	struct error err = ERROR_INIT;
	struct cloud_machine m;
	struct cloud_fault f = { .code = "" };
	bool again;

	if (vsphere_judge_task(object, &f, &again, &err) < 0)
		fuzz_need(*err.text && str_is_clean(f.code));
	if (vsphere_read_machine(&m, object, arena, &err) < 0)
		return;
	fuzz_need(vsphere_is_uuid(m.id) && *m.token && str_is_clean(m.token));
	fuzz_need(str_is_clean(m.address) && strlen(m.address) <= CLOUDMSG_TEXT_MAX);
	for (size_t i = 0; i < m.n_tags; i++)
		fuzz_need(str_is_clean(m.tags[i]) && strchr(m.tags[i], '='));
}

static void fuzz_soap(struct fuzz_input in)
{
	static const char *const methods[] = { "Login", "RetrievePropertiesEx", "CloneVM_Task" };
	struct arena arena = ARENA_INIT_LIMIT(1 << 20);
	const struct xml_node *response, *o;
	struct error err = ERROR_INIT;
	struct xml_node *root;
	struct cloud_fault f;
	bool again;

	if (xml_parse(&root, &arena, in.at, in.len, &err) == 0) {
		for (size_t i = 0; i < ARRAY_SIZE(methods); i++) {
			if (vsphere_judge(200, methods[i], root, &response, &f, &again, &err) < 0) {
				fuzz_need(*err.text && str_is_clean(f.code));
				continue;
			}
			o = xml_child(response, "returnval");
			for (o = o ? o->first : NULL; o; o = o->next)
				fuzz_object(o, &arena);
		}
	}
	arena_done(&arena);
}

static void fuzz_vsphere_key(struct fuzz_input in)
{
	struct vsphere_key k;

	if (vsphere_key_read(&k, (const char *)in.at, in.len, NULL) == 0)
		fuzz_need(*k.name && *k.password && str_is_clean(k.password));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const targets[])(struct fuzz_input in) = {
		fuzz_answer, fuzz_profile, fuzz_metadata,    fuzz_packet,
		fuzz_base64, fuzz_soap,    fuzz_vsphere_key, fuzz_instance,
	};
	struct fuzz_input in = { .at = data, .len = size };

	if (size > 0)
		targets[fuzz_byte(&in) % ARRAY_SIZE(targets)](in);
	return 0;
}
