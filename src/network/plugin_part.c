/* SPDX-License-Identifier: Apache-2.0 */
#include "network/plugin_part.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "wire/message/cnimsg.h"

#define PLUGIN_NETWORK "cni"

bool plugin_part_is_meant(const char *network)
{
	return str_eq(network, PLUGIN_NETWORK) || str_has_prefix(network, PLUGIN_NETWORK ":");
}

const char *plugin_part_network(const char *network)
{
	const char *colon = strchr(network, ':');

	return colon ? colon + 1 : "";
}

struct plugin_part *plugin_part_free(struct plugin_part *p)
{
	if (!p)
		return NULL;
	buf_done(&p->names);
	free(p);
	return NULL;
}

static int plugin_part_set(char to[PLUGIN_WORD_MAX + 1], const char *what, const char *from,
			   struct error *err)
{
	if (!from)
		return 0;
	if (strpbrk(from, " ;=") || !str_is_clean(from) ||
	    str_copy(to, PLUGIN_WORD_MAX + 1, from) < 0)
		return error_refuse(err, ERROR_INVALID,
				    "the pod's %s \"%.100s\" cannot be told to plugins of CNI: no "
				    "blank, ';' or '=' may be in it, and no more than %d bytes",
				    what, from, PLUGIN_WORD_MAX);
	return 0;
}

static int plugin_part_names(struct buf *b, const char *key, char *const *words)
{
	int r = 0;

	for (size_t i = 0; words && words[i] && r == 0; i++)
		r = cnimsg_put(b, key, "%s", words[i]);
	return r;
}

int plugin_part_new(struct plugin_part **ret, const struct network_wish *wish, struct error *err)
{
	struct plugin_part *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return error_set(err, -ENOMEM, "a network of plugins");
	r = str_copy(p->id, sizeof(p->id), wish->id ? wish->id : "");
	if (r == 0)
		r = plugin_part_set(p->pod, "name", wish->pod, err);
	if (r == 0)
		r = plugin_part_set(p->pod_namespace, "namespace", wish->pod_namespace, err);
	if (r == 0)
		r = plugin_part_set(p->uid, "uid", wish->uid, err);
	p->asked_mac = wish->has_mac;
	if (r == 0 && (plugin_part_names(&p->names, "server", wish->servers) < 0 ||
		       plugin_part_names(&p->names, "search", wish->search) < 0 ||
		       plugin_part_names(&p->names, "option", wish->options) < 0))
		r = error_set(err, -ENOMEM, "a network of plugins");
	if (r < 0) {
		(void)plugin_part_free(p);
		return r;
	}
	*ret = p;
	return 0;
}

int plugin_part_print(const struct plugin_part *p, struct buf *b)
{
	int r = buf_addf(b, " id=%s", p->id);

	if (r == 0 && p->pod[0])
		r = buf_addf(b, " pod=%s", p->pod);
	if (r == 0 && p->pod_namespace[0])
		r = buf_addf(b, " namespace=%s", p->pod_namespace);
	if (r == 0 && p->uid[0])
		r = buf_addf(b, " uid=%s", p->uid);
	return r;
}

int plugin_part_read(struct plugin_part *p, const char *key, const char *value)
{
	const struct {
		const char *key;
		char *to;
		size_t size;
	} words[] = {
		{ "id", p->id, sizeof(p->id) },
		{ "pod", p->pod, sizeof(p->pod) },
		{ "namespace", p->pod_namespace, sizeof(p->pod_namespace) },
		{ "uid", p->uid, sizeof(p->uid) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i].key, key))
			return str_copy(words[i].to, words[i].size, value) < 0 ? -EBADMSG : 1;
	return 0;
}
