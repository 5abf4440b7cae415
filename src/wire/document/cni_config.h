/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CNI_CONFIG_H
#define NACRE_WIRE_CNI_CONFIG_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "wire/document/jsonread.h"

/*
 * The configuration of a network that plugins make (CNI 0.3.1 to 1.1.0): a list of plugins, or a
 * single one; and what each of them is sent. The object of a plugin goes to it as it was written,
 * whatever is in it: only what the specification has a runtime put in or take out is changed.
 */

#define CNI_CONFIG_MAX ((size_t)1 << 20)
#define CNI_PLUGINS_MAX 32
#define CNI_NAME_MAX 128 /* bytes of a network's name, a type, an id */

struct cni_plugin {
	const char *type; /* a file's name */
	const struct json_value *object;
};

/* All of it lives in the arena. */
struct cni_config {
	const char *name;
	const char *version; /* the highest one that both sides speak */
	bool disable_check, disable_gc;
	struct cni_plugin plugins[CNI_PLUGINS_MAX];
	size_t n_plugins;
};

/* ERROR_INVALID with the member and what is wrong with it, ERROR_UNSUPPORTED: only versions that we
 * do not speak; or -ENOMEM. */
int cni_config_parse(struct cni_config *ret, struct arena *arena, const void *data, size_t len,
		     struct error *err);

/* Whether text can be the name of a network or of a container. */
bool cni_name_is_valid(const char *text);
/* -1, 0, 1: version a is older than b, as new, newer. Both are of those that we speak. */
int cni_version_compare(const char *a, const char *b);
bool cni_version_is_known(const char *version);
/* Whether a plugin's answer to VERSION has it. */
bool cni_version_is_supported(const void *data, size_t len, const char *version,
			      struct arena *arena);

struct cni_request {
	const struct cni_config *config;
	size_t plugin;
	const struct json_value *previous; /* a result; NULL: none */
	const struct json_value *offered;  /* object of capabilities' arguments; NULL: none */
	const char *attachments;           /* of GC: JSON, an array; NULL: none */
};

/* Prints the input of that plugin. -ENOMEM. */
int cni_request_print(struct buf *b, const struct cni_request *q) _must_check_;

#endif
