/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/xml.h"

#include <errno.h>

#include "base/memory/buf.h"
#include "unit.h"

static int parse(struct arena *a, const char *text, const struct xml_node **ret, struct error *err)
{
	struct xml_node *n = NULL;
	int r = xml_parse(&n, a, text, strlen(text), err);

	*ret = n;
	return r;
}

static void a_tree(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	const struct xml_node *n;

	CHECK_INT(parse(&a,
			"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<e:A xmlns:e='urn:x' z='1'>\n"
			" <b>one &amp; &#x74;wo</b>\n <c><d/><d>2</d></c><!-- no --></e:A>",
			&n, NULL),
		  0);
	CHECK(n && n->first);
	if (!n)
		return;
	CHECK_STR(n->name, "A");
	CHECK_STR(n->text, "");
	CHECK_STR(xml_text(n, "b"), "one & two");
	CHECK_STR(xml_text(n, "none"), "");
	CHECK_STR(xml_find(n, "c/d")->text, "");
	CHECK_STR(xml_find(n, "c/d")->next->text, "2");
	CHECK(!xml_find(n, "c/d/e") && !xml_find(n, "x/y") && !xml_child(n, "cc"));
}

/* By what a prefix stands for, not by what it is called. */
static void namespaces(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	const struct xml_node *n, *b;

	CHECK_INT(parse(&a,
			"<A xmlns='urn:one' xmlns:i='http://www.w3.org/2001/XMLSchema-instance'>"
			"<b i:type='x:T' type='k'/><n:c xmlns:n='urn:two' type='k'><d/></n:c>"
			"<e xmlns=''/></A>",
			&n, NULL),
		  0);
	if (!n)
		return;
	b = xml_child(n, "b");
	CHECK_STR(n->space, "urn:one");
	CHECK_STR(n->type, "");
	CHECK_STR(b->space, "urn:one");
	CHECK_STR(b->type, "T");
	CHECK_STR(xml_child(n, "c")->space, "urn:two");
	CHECK_STR(xml_child(n, "c")->type, "k");
	CHECK_STR(xml_find(n, "c/d")->space, "urn:one");
	CHECK_STR(xml_child(n, "e")->space, "");
}

static void refused(const char *text, const char *why)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	struct error err = ERROR_INIT;
	const struct xml_node *n;

	CHECK_INT(parse(&a, text, &n, &err), -EINVAL);
	CHECK(strstr(err.text, why) != NULL);
}

static void what_is_refused(void)
{
	_cleanup_(buf_done) struct buf deep = BUF_INIT;
	int r = 0;

	refused("", "no element found");
	refused("<a><b></a>", "mismatched tag");
	refused("<!DOCTYPE a [<!ENTITY x \"y\">]><a>&x;</a>", "document type");
	refused("<a>&x;</a>", "undefined entity");
	refused("<x:a/>", "unbound prefix");
	for (int i = 0; i < XML_DEPTH_MAX + 1 && r == 0; i++)
		r = buf_add_str(&deep, "<a>");
	CHECK_INT(r, 0);
	CHECK_INT(buf_add(&deep, "", 1), 0);
	refused((const char *)buf_data(&deep), "nested too deep");
}

static void what_is_long(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT_LIMIT(1 << 16);
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = buf_add_str(&b, "<a>");
	const struct xml_node *n;

	for (int i = 0; i < 4096 && r == 0; i++)
		r = buf_add_str(&b, "<b>some text</b>");
	if (r == 0)
		r = buf_add(&b, "</a>", 5);
	CHECK_INT(r, 0);
	CHECK_INT(parse(&a, (const char *)buf_data(&b), &n, NULL), -ENOMEM);
}

UNIT_MAIN({ "a tree", a_tree }, { "namespaces", namespaces },
	  { "what is refused", what_is_refused }, { "what is long", what_is_long })
