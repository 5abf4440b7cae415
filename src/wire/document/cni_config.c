/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/document/cni_config.h"

#include <ctype.h>
#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "wire/document/jsonwrite.h"

/* From the oldest on. */
static const char *const cni_versions[] = { "0.3.0", "0.3.1", "0.4.0", "1.0.0", "1.1.0" };

static int cni_version_rank(const char *version)
{
	for (size_t i = 0; i < ARRAY_SIZE(cni_versions); i++)
		if (str_eq(cni_versions[i], version))
			return (int)i;
	return -1;
}

bool cni_version_is_known(const char *version)
{
	return cni_version_rank(version) >= 0;
}

int cni_version_compare(const char *a, const char *b)
{
	const int x = cni_version_rank(a), y = cni_version_rank(b);

	return (x > y) - (x < y);
}

bool cni_name_is_valid(const char *text)
{
	const size_t n = strlen(text);

	if (n == 0 || n > CNI_NAME_MAX || !isascii(text[0]) || !isalnum((unsigned char)text[0]))
		return false;
	for (size_t i = 0; i < n; i++)
		if (!isascii(text[i]) ||
		    (!isalnum((unsigned char)text[i]) && !strchr("_.-", text[i])))
			return false;
	return true;
}

/* ---- reading ---- */

static const char *cni_text(const struct json_value *object, const char *name)
{
	const struct json_value *v = json_member(object, name);

	return v && v->kind == JSON_STRING ? v->text : NULL;
}

/* Written as a truth, or as its word: older versions had both. */
static int cni_truth(const struct json_value *object, const char *name, bool *ret,
		     struct error *err)
{
	const struct json_value *v = json_member(object, name);

	*ret = v && ((v->kind == JSON_BOOL && v->truth) ||
		     (v->kind == JSON_STRING && str_eq(v->text, "true")));
	if (!v || v->kind == JSON_BOOL || *ret ||
	    (v->kind == JSON_STRING && str_eq(v->text, "false")))
		return 0;
	return error_refuse(err, ERROR_INVALID, "%s: is neither true nor false", name);
}

static void cni_consider_version(const struct json_value *v, const char **best)
{
	if (v && v->kind == JSON_STRING && cni_version_is_known(v->text) &&
	    (!*best || cni_version_compare(v->text, *best) > 0))
		*best = v->text;
}

static int cni_choose_version(struct cni_config *c, const struct json_value *top, struct error *err)
{
	const struct json_value *one = json_member(top, "cniVersion");
	const struct json_value *many = json_member(top, "cniVersions");

	if (one && one->kind != JSON_STRING)
		return error_refuse(err, ERROR_INVALID, "cniVersion: is no text");
	if (many && many->kind != JSON_ARRAY)
		return error_refuse(err, ERROR_INVALID, "cniVersions: is no list");
	cni_consider_version(one, &c->version);
	for (const struct json_value *v = many ? many->first : NULL; v; v = v->next)
		cni_consider_version(v, &c->version);
	if (c->version)
		return 0;
	return error_refuse(err, ERROR_UNSUPPORTED,
			    "cniVersion: \"%.32s\" is none of 0.3.0, 0.3.1, 0.4.0, 1.0.0 and 1.1.0",
			    one ? one->text : "");
}

static int cni_add_plugin(struct cni_config *c, const struct json_value *object, struct error *err)
{
	const struct json_value *capabilities;
	const char *type;

	if (c->n_plugins == CNI_PLUGINS_MAX)
		return error_refuse(err, ERROR_INVALID,
				    "plugins: more than the limit of %d plugins", CNI_PLUGINS_MAX);
	if (object->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "plugins[%zu]: is no object", c->n_plugins);
	type = cni_text(object, "type");
	if (!type || !cni_name_is_valid(type))
		return error_refuse(err, ERROR_INVALID,
				    "plugins[%zu].type: must be the file name of a plugin, of "
				    "letters, digits, '.', '-' and '_'",
				    c->n_plugins);
	capabilities = json_member(object, "capabilities");
	if (capabilities && capabilities->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "plugins[%zu].capabilities: is no object",
				    c->n_plugins);
	c->plugins[c->n_plugins++] = (struct cni_plugin){ .type = type, .object = object };
	return 0;
}

static int cni_add_plugins(struct cni_config *c, const struct json_value *top, struct error *err)
{
	const struct json_value *list = json_member(top, "plugins");
	int r = 0;

	if (!list)
		return cni_add_plugin(c, top, err);
	if (list->kind != JSON_ARRAY || list->n == 0)
		return error_refuse(err, ERROR_INVALID, "plugins: must be a list of plugins");
	for (const struct json_value *v = list->first; v && r == 0; v = v->next)
		r = cni_add_plugin(c, v, err);
	return r;
}

int cni_config_parse(struct cni_config *ret, struct arena *arena, const void *data, size_t len,
		     struct error *err)
{
	struct cni_config c = { .name = NULL };
	struct json_value *top = NULL;
	int r;

	if (len > CNI_CONFIG_MAX)
		return error_refuse(err, ERROR_INVALID, "longer than the limit of %zu bytes",
				    CNI_CONFIG_MAX);
	r = json_parse(&top, arena, data, len, err);
	if (r < 0)
		return r;
	if (top->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "is no JSON object");
	c.name = cni_text(top, "name");
	if (!c.name || !cni_name_is_valid(c.name))
		return error_refuse(err, ERROR_INVALID,
				    "name: must begin with a letter or digit and have only "
				    "letters, digits, '.', '-' and '_'");
	r = cni_choose_version(&c, top, err);
	if (r == 0)
		r = cni_truth(top, "disableCheck", &c.disable_check, err);
	if (r == 0)
		r = cni_truth(top, "disableGC", &c.disable_gc, err);
	if (r == 0)
		r = cni_add_plugins(&c, top, err);
	if (r == 0)
		*ret = c;
	return r;
}

bool cni_version_is_supported(const void *data, size_t len, const char *version,
			      struct arena *arena)
{
	const struct json_value *list;
	struct json_value *top = NULL;

	if (json_parse(&top, arena, data, len, NULL) < 0 || top->kind != JSON_OBJECT)
		return false;
	list = json_member(top, "supportedVersions");
	if (!list || list->kind != JSON_ARRAY)
		return false;
	for (const struct json_value *v = list->first; v; v = v->next)
		if (v->kind == JSON_STRING && str_eq(v->text, version))
			return true;
	return false;
}

/* ---- what a plugin is sent ---- */

/* Members that are the runtime's. */
static bool cni_member_is_ours(const char *name)
{
	static const char *const names[] = { "name",
					     "cniVersion",
					     "prevResult",
					     "runtimeConfig",
					     "capabilities",
					     "cni.dev/valid-attachments",
					     "cni.dev/attachments" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

/* What belongs to a list, not to its plugin, where a single plugin is the whole. */
static bool cni_member_is_of_list(const char *name)
{
	static const char *const names[] = { "cniVersions", "disableCheck", "disableGC",
					     "loadOnlyInlinedPlugins" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (str_eq(names[i], name))
			return true;
	return false;
}

static int cni_print_text(struct buf *b, const char *name, const char *value)
{
	int r = json_write_name(b, name);

	return r < 0 ? r : json_write_text(b, value);
}

static int cni_print_tree(struct buf *b, const char *name, const struct json_value *v)
{
	int r = json_write_name(b, name);

	return r < 0 ? r : json_write_value(b, v);
}

static bool cni_is_declared(const struct json_value *declared, const char *name)
{
	const struct json_value *d = declared ? json_member(declared, name) : NULL;

	return d && d->kind == JSON_BOOL && d->truth;
}

/* Those that the plugin declares, of those that there are. */
static int cni_print_capabilities(struct buf *b, const struct json_value *declared,
				  const struct json_value *offered)
{
	bool first = true;
	int r = 0;

	for (const struct json_value *v = offered ? offered->first : NULL; v && r == 0;
	     v = v->next) {
		if (!cni_is_declared(declared, v->name))
			continue;
		if (first)
			r = json_write_name(b, "runtimeConfig");
		if (r == 0 && first)
			r = buf_add_str(b, "{");
		first = false;
		if (r == 0)
			r = cni_print_tree(b, v->name, v);
	}
	return r < 0 || first ? r : buf_add_str(b, "}");
}

static int cni_print_attachments(struct buf *b, const char *attachments)
{
	int r = json_write_name(b, "cni.dev/valid-attachments");

	if (r == 0)
		r = buf_add_str(b, attachments);
	/* The name that the library of the specification's authors sends as well. */
	if (r == 0)
		r = json_write_name(b, "cni.dev/attachments");
	return r < 0 ? r : buf_add_str(b, attachments);
}

int cni_request_print(struct buf *b, const struct cni_request *q)
{
	const struct json_value *object = q->config->plugins[q->plugin].object;
	int r = buf_add_str(b, "{");

	if (r == 0)
		r = cni_print_text(b, "cniVersion", q->config->version);
	if (r == 0)
		r = cni_print_text(b, "name", q->config->name);
	for (const struct json_value *v = object->first; v && r == 0; v = v->next)
		if (!cni_member_is_ours(v->name) && !cni_member_is_of_list(v->name))
			r = cni_print_tree(b, v->name, v);
	if (r == 0)
		r = cni_print_capabilities(b, json_member(object, "capabilities"), q->offered);
	if (r == 0 && q->previous)
		r = cni_print_tree(b, "prevResult", q->previous);
	if (r == 0 && q->attachments)
		r = cni_print_attachments(b, q->attachments);
	return r < 0 ? r : buf_add_str(b, "}");
}
