/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_NETWORK_PLUGIN_PART_H
#define NACRE_NETWORK_PLUGIN_PART_H

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "base/text/id.h"
#include "network/wish.h"

/*
 * The further part of an attachment whose network is made by plugins of CNI: the identity of the
 * pod for them. Private to this area.
 */

#define PLUGIN_WORD_MAX 253 /* bytes of a pod's name, namespace and uid, as Kubernetes has them */

struct plugin_part {
	char id[ID_SIZE]; /* CNI_CONTAINERID */
	char pod[PLUGIN_WORD_MAX + 1], pod_namespace[PLUGIN_WORD_MAX + 1], uid[PLUGIN_WORD_MAX + 1];
	bool asked_mac;
	struct buf names; /* words of a message (wire/message/cnimsg.h): its resolver's settings */
};

/* Whether a wish or a record names such a network: "cni" for the first one of the directory, or
 * "cni:NAME". */
bool plugin_part_is_meant(const char *network);
/* The name behind that; "" for the first one. */
const char *plugin_part_network(const char *network);

/* ERROR_INVALID: a word that plugins cannot be told. */
int plugin_part_new(struct plugin_part **ret, const struct network_wish *wish, struct error *err);
struct plugin_part *plugin_part_free(struct plugin_part *p);

/* As words of the attachment's text, and one of these: 1 where the key is one of ours, 0, or
 * -EBADMSG. */
int plugin_part_print(const struct plugin_part *p, struct buf *b);
int plugin_part_read(struct plugin_part *p, const char *key, const char *value);

#endif
