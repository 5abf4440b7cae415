/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/qemu/qemu_io_error.h"

#include <string.h>

#include "base/macros.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/document/jsonread.h"

/* The nodes that devices of guests stand on. */
static const struct {
	const char *prefix;
	bool slot;
} nodes[] = { { "slot", true }, { "image", false }, { "file", false } };

static const char *io_error_text(const struct json_value *data, const char *name)
{
	const struct json_value *v = json_member(data, name);

	return v && v->kind == JSON_STRING ? v->text : "";
}

static bool io_error_node(struct vm_io_error *ret, const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(nodes); i++) {
		uint64_t n;

		if (!str_has_prefix(name, nodes[i].prefix) ||
		    parse_u64(name + strlen(nodes[i].prefix), 0,
			      (nodes[i].slot ? VM_SLOTS_MAX : VM_DISKS_MAX) - 1, &n) < 0)
			continue;
		ret->slot = nodes[i].slot;
		ret->n = (unsigned)n;
		return true;
	}
	return false;
}

bool qemu_io_error_read(struct vm_io_error *ret, const struct json_value *data)
{
	if (!data || data->kind != JSON_OBJECT ||
	    !io_error_node(ret, io_error_text(data, "node-name")))
		return false;
	ret->writing = str_eq(io_error_text(data, "operation"), "write");
	ret->stopped = str_eq(io_error_text(data, "action"), "stop");
	(void)str_printf(ret->text, sizeof(ret->text), "%.*s", (int)sizeof(ret->text) - 1,
			 io_error_text(data, "reason"));
	if (!ret->text[0])
		(void)str_copy(ret->text, sizeof(ret->text), "Input/output error");
	str_clean(ret->text);
	return true;
}
