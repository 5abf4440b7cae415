/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/xml.h"

#include <errno.h>
#include <expat.h>
#include <string.h>

#include "base/memory/buf.h"
#include "base/text/str.h"

#define XML_BYTES_MAX (8 << 20)
/* Between a namespace and a name; no part of either. */
#define XML_SEPARATOR '\n'
#define XML_XSI_TYPE "http://www.w3.org/2001/XMLSchema-instance\ntype"

struct xml_reader {
	XML_Parser parser;
	struct arena *arena;
	struct xml_node *root, *at;
	struct buf text; /* of `at`, as far as it was read since its last tag */
	size_t depth, n_nodes;
	const char *why; /* it was stopped */
	int r;
};

static void xml_stop(struct xml_reader *x, int r, const char *why)
{
	if (x->r < 0)
		return;
	x->r = r;
	x->why = why;
	(void)XML_StopParser(x->parser, XML_FALSE);
}

/* Text between elements is white space in what clouds say: the last part is the element's. */
static void xml_take_text(struct xml_reader *x)
{
	char *copy;

	if (!x->at || x->text.len == 0)
		return;
	copy = arena_strndup(x->arena, (const char *)buf_data(&x->text), x->text.len);
	buf_clear(&x->text);
	if (!copy)
		xml_stop(x, -ENOMEM, "out of memory");
	else
		x->at->text = copy;
}

/* The namespace of most elements is that of the one around them. */
static int xml_set_name(struct xml_reader *x, struct xml_node *n, const char *name)
{
	const char *end = strchr(name, XML_SEPARATOR);
	size_t len = end ? (size_t)(end - name) : 0;

	n->name = arena_strdup(x->arena, end ? end + 1 : name);
	if (x->at && strlen(x->at->space) == len && strncmp(x->at->space, name, len) == 0)
		n->space = x->at->space;
	else
		n->space = len ? arena_strndup(x->arena, name, len) : "";
	return n->name && n->space ? 0 : -ENOMEM;
}

static int xml_set_type(struct xml_reader *x, struct xml_node *n, const char **attributes)
{
	const char *type = "", *colon;

	for (size_t i = 0; attributes[i]; i += 2)
		if (str_eq(attributes[i], XML_XSI_TYPE) ||
		    (str_eq(attributes[i], "type") && !*type))
			type = attributes[i + 1];
	/* The name may have a prefix, and no more. */
	colon = strrchr(type, ':');
	n->type = *type ? arena_strdup(x->arena, colon ? colon + 1 : type) : "";
	return n->type ? 0 : -ENOMEM;
}

static void xml_on_start(void *userdata, const char *name, const char **attributes)
{
	struct xml_reader *x = userdata;
	struct xml_node *n = NULL;

	buf_clear(&x->text);
	if (x->depth == XML_DEPTH_MAX) {
		xml_stop(x, -EINVAL, "nested too deep");
		return;
	}
	if (x->n_nodes == XML_NODES_MAX) {
		xml_stop(x, -EINVAL, "too many elements");
		return;
	}
	n = arena_zalloc(x->arena, 1, sizeof(*n));
	if (!n || xml_set_name(x, n, name) < 0 || xml_set_type(x, n, attributes) < 0) {
		xml_stop(x, -ENOMEM, "out of memory");
		return;
	}
	n->text = "";
	n->parent = x->at;
	if (!x->at)
		x->root = n;
	else if (x->at->last)
		x->at->last->next = n;
	else
		x->at->first = n;
	if (x->at)
		x->at->last = n;
	x->at = n;
	x->depth++;
	x->n_nodes++;
}

static void xml_on_end(void *userdata, const char *name)
{
	struct xml_reader *x = userdata;

	(void)name;
	if (x->r < 0 || !x->at)
		return;
	if (!x->at->first)
		xml_take_text(x);
	buf_clear(&x->text);
	x->at = x->at->parent;
	x->depth--;
}

static void xml_on_text(void *userdata, const char *text, int len)
{
	struct xml_reader *x = userdata;
	int r = buf_add(&x->text, text, (size_t)len);

	if (r < 0)
		xml_stop(x, r == -ENOBUFS ? -EINVAL : r,
			 r == -ENOBUFS ? "an element is too long" : "out of memory");
}

static void xml_on_doctype(void *userdata, const char *name, const char *system_id,
			   const char *public_id, int has_internal)
{
	(void)name;
	(void)system_id;
	(void)public_id;
	(void)has_internal;
	xml_stop(userdata, -EINVAL, "a document type has no place here");
}

static int xml_run(struct xml_reader *x, const void *data, size_t len, struct error *err)
{
	enum XML_Status status;

	XML_SetUserData(x->parser, x);
	XML_SetElementHandler(x->parser, xml_on_start, xml_on_end);
	XML_SetCharacterDataHandler(x->parser, xml_on_text);
	XML_SetStartDoctypeDeclHandler(x->parser, xml_on_doctype);
	status = XML_Parse(x->parser, data, (int)len, XML_TRUE);
	if (x->r == -ENOMEM || XML_GetErrorCode(x->parser) == XML_ERROR_NO_MEMORY)
		return error_set(err, -ENOMEM, "read XML");
	if (status == XML_STATUS_OK && x->root)
		return 0;
	return error_refuse(err, ERROR_INVALID, "line %lu of the XML: %s",
			    XML_GetCurrentLineNumber(x->parser),
			    x->why ? x->why : XML_ErrorString(XML_GetErrorCode(x->parser)));
}

int xml_parse(struct xml_node **ret, struct arena *arena, const void *data, size_t len,
	      struct error *err)
{
	struct xml_reader x = { .arena = arena, .text = BUF_INIT_LIMIT(XML_TEXT_MAX) };
	int r;

	if (len > XML_BYTES_MAX)
		return error_refuse(err, ERROR_INVALID, "the XML has more than %d bytes",
				    XML_BYTES_MAX);
	/* Whatever encoding the document claims: the clouds write UTF-8. */
	x.parser = XML_ParserCreateNS("UTF-8", XML_SEPARATOR);
	if (!x.parser)
		return error_set(err, -ENOMEM, "read XML");
	r = xml_run(&x, data, len, err);
	XML_ParserFree(x.parser);
	buf_done(&x.text);
	if (r == 0)
		*ret = x.root;
	return r;
}

static const struct xml_node *xml_child_of(const struct xml_node *n, const char *name, size_t len)
{
	const struct xml_node *c = n ? n->first : NULL;

	while (c && (strncmp(c->name, name, len) != 0 || c->name[len]))
		c = c->next;
	return c;
}

const struct xml_node *xml_child(const struct xml_node *n, const char *name)
{
	return xml_child_of(n, name, strlen(name));
}

const char *xml_text(const struct xml_node *n, const char *name)
{
	const struct xml_node *c = xml_child(n, name);

	return c ? c->text : "";
}

const struct xml_node *xml_find(const struct xml_node *n, const char *path)
{
	while (n && *path) {
		size_t len = strcspn(path, "/");

		n = xml_child_of(n, path, len);
		path += len + (path[len] == '/');
	}
	return n;
}
