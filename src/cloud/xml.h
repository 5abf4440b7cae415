/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_XML_H
#define NACRE_CLOUD_XML_H

#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/arena.h"

/*
 * A document of XML as a tree, in an arena. Of a document the elements and their text are kept:
 * names and their namespaces, whatever the prefix; of attributes only those that name a type; no
 * comments. A document type declaration is refused, so there are no entities but the five of XML
 * itself, and so is a prefix that nobody has declared.
 */

#define XML_DEPTH_MAX 32
#define XML_NODES_MAX 65536
#define XML_TEXT_MAX (1 << 20) /* of one element */

struct xml_node {
	const char *name;
	const char *space; /* the namespace's URI, or "" */
	const char *type;  /* of xsi:type the local name, else the attribute "type", or "" */
	const char *text;  /* "" where there is none; of its own, without that of its elements */
	struct xml_node *parent, *first, *last, *next;
};

/* The root element lives as long as the arena, whose limit bounds what a document can cost.
 * ERROR_INVALID with the line, or -ENOMEM. */
int xml_parse(struct xml_node **ret, struct arena *arena, const void *data, size_t len,
	      struct error *err);
/* The first element of that name in n (NULL is fine), or NULL. */
const struct xml_node *xml_child(const struct xml_node *n, const char *name);
/* The text of that element, or "". */
const char *xml_text(const struct xml_node *n, const char *name);
/* The element that "a/b/c" leads to, or NULL. */
const struct xml_node *xml_find(const struct xml_node *n, const char *path);

#endif
