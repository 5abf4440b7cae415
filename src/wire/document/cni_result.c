/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/cni_result.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/document/cni_config.h"

#define CNI_ERROR_ARENA ((size_t)8 << 20)

static const char *result_text(const struct json_value *object, const char *name)
{
	const struct json_value *v = json_member(object, name);

	return v && v->kind == JSON_STRING ? v->text : "";
}

/* A list of objects; NULL with 0: there is none. */
static int result_list(const struct json_value *top, const char *name, size_t max,
		       const struct json_value **ret, struct error *err)
{
	const struct json_value *list = json_member(top, name);

	*ret = list ? list->first : NULL;
	if (!list)
		return 0;
	if (list->kind != JSON_ARRAY)
		return error_refuse(err, ERROR_INVALID, "%s: is no list", name);
	if (list->n > max)
		return error_refuse(err, ERROR_INVALID, "%s: more than the limit of %zu", name,
				    max);
	for (const struct json_value *v = list->first; v; v = v->next)
		if (v->kind != JSON_OBJECT)
			return error_refuse(err, ERROR_INVALID, "%s: has what is no object", name);
	return 0;
}

static bool result_mac_is_valid(const char *mac)
{
	return strlen(mac) <= 64 && strspn(mac, "0123456789abcdefABCDEF:") == strlen(mac);
}

/* The index of the pod's interface; -1: the plugins tell of none of that name. */
static int result_interfaces(struct cni_result *r, const char *interface, int *ret,
			     struct error *err)
{
	const struct json_value *v;
	int index = 0, e;

	*ret = -1;
	e = result_list(r->tree, "interfaces", CNI_INTERFACES_MAX, &v, err);
	for (; v && e == 0; v = v->next, index++) {
		const struct json_value *mtu = json_member(v, "mtu");
		uint64_t n = 0;

		if (!str_eq(result_text(v, "name"), interface) || !*result_text(v, "sandbox"))
			continue;
		*ret = index;
		r->mac = result_text(v, "mac");
		if (!result_mac_is_valid(r->mac))
			return error_refuse(err, ERROR_INVALID,
					    "interfaces[%d].mac: \"%.64s\" is no MAC address",
					    index, r->mac);
		if (mtu &&
		    (mtu->kind != JSON_NUMBER || parse_u64(mtu->text, 0, UINT32_MAX, &n) < 0))
			return error_refuse(err, ERROR_INVALID, "interfaces[%d].mtu: is no MTU",
					    index);
		r->mtu = (uint32_t)n;
	}
	return e;
}

static int result_address(struct cni_address *ret, const char *text, struct arena *arena)
{
	char address[INET6_ADDRSTRLEN];
	uint8_t bytes[16];
	const char *slash = strchr(text, '/');
	uint64_t length;

	if (!slash || (size_t)(slash - text) >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, (size_t)(slash - text));
	address[slash - text] = '\0';
	ret->family = strchr(address, ':') ? AF_INET6 : AF_INET;
	if (inet_pton(ret->family, address, bytes) != 1 ||
	    parse_u64(slash + 1, 0, ret->family == AF_INET ? 32 : 128, &length) < 0 ||
	    !inet_ntop(ret->family, bytes, address, sizeof(address)))
		return -EINVAL;
	ret->length = (unsigned)length;
	ret->text = arena_strdup(arena, address);
	return ret->text ? 0 : -ENOMEM;
}

/* Whether an address is that of the interface: it says which, or is of the only one. */
static bool result_is_of(const struct json_value *ip, int index)
{
	const struct json_value *of = json_member(ip, "interface");
	uint64_t n;

	if (!of)
		return true;
	return of->kind == JSON_NUMBER && parse_u64(of->text, 0, CNI_INTERFACES_MAX, &n) == 0 &&
	       (int)n == index;
}

static int result_addresses(struct cni_result *r, int index, struct arena *arena, struct error *err)
{
	const struct json_value *v;
	size_t i = 0;
	int e;

	e = result_list(r->tree, "ips", CNI_ADDRESSES_MAX, &v, err);
	for (; v && e == 0; v = v->next, i++) {
		const char *text = result_text(v, "address");

		e = result_address(&r->addresses[r->n_addresses], text, arena);
		if (e == -ENOMEM)
			return error_set(err, e, "read the answer of a plugin");
		if (e < 0)
			return error_refuse(err, ERROR_INVALID,
					    "ips[%zu].address: \"%.64s\" is no address with a "
					    "length, as in 10.1.2.3/24",
					    i, text);
		if (result_is_of(v, index))
			r->n_addresses++;
	}
	return e;
}

static int result_routes(struct cni_result *r, struct arena *arena, struct error *err)
{
	const struct json_value *v;
	int e;

	e = result_list(r->tree, "routes", CNI_ROUTES_MAX, &v, err);
	for (; v && e == 0; v = v->next) {
		struct cni_address dst;

		e = result_address(&dst, result_text(v, "dst"), arena);
		if (e == -ENOMEM)
			return error_set(err, e, "read the answer of a plugin");
		if (e < 0)
			return error_refuse(err, ERROR_INVALID,
					    "routes[%zu].dst: \"%.64s\" is no subnet", r->n_routes,
					    result_text(v, "dst"));
		r->routes[r->n_routes++] = result_text(v, "dst");
	}
	return e;
}

int cni_result_parse(struct cni_result *ret, struct arena *arena, const void *data, size_t len,
		     const char *interface, struct error *err)
{
	struct json_value *top = NULL;
	int index, r;

	*ret = (struct cni_result){ .mac = "" };
	if (len > CNI_RESULT_MAX)
		return error_refuse(err, ERROR_INVALID, "longer than the limit of %zu bytes",
				    CNI_RESULT_MAX);
	r = json_parse(&top, arena, data, len, err);
	if (r < 0)
		return r;
	if (top->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "is no JSON object");
	ret->tree = top;
	if (!cni_version_is_known(result_text(top, "cniVersion")))
		return error_refuse(err, ERROR_INVALID,
				    "cniVersion: \"%.32s\" is no version that was asked for",
				    result_text(top, "cniVersion"));
	r = result_interfaces(ret, interface, &index, err);
	if (r == 0)
		r = result_addresses(ret, index, arena, err);
	return r < 0 ? r : result_routes(ret, arena, err);
}

int cni_error_parse(char text[CNI_ERROR_TEXT_MAX], unsigned *ret_code, const void *data, size_t len)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(CNI_ERROR_ARENA);
	const struct json_value *code;
	struct json_value *top = NULL;
	const char *details;
	uint64_t n;

	if (json_parse(&top, &arena, data, len, NULL) < 0 || top->kind != JSON_OBJECT)
		return -EBADMSG;
	code = json_member(top, "code");
	if (!code || code->kind != JSON_NUMBER || parse_u64(code->text, 1, UINT32_MAX, &n) < 0)
		return -EBADMSG;
	details = result_text(top, "details");
	(void)str_printf(text, CNI_ERROR_TEXT_MAX, "code %u: %.180s%s%.100s", (unsigned)n,
			 result_text(top, "msg"), *details ? "; " : "", details);
	str_clean(text);
	*ret_code = (unsigned)n;
	return 0;
}
