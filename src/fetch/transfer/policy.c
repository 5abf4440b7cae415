/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/map.h"
#include "base/text/str.h"
#include "fetch/job/json.h"
#include "fetch/transfer/key.h"

#define POLICY_DEFAULT "default"
#define POLICY_GIVEN "the given key"
#define POLICY_TRANSPORTS_MAX 64

/* Texts of rules and scopes are the document's. */
struct policy {
	json_t *document;
	struct list scopes;
	struct map by_name;
	struct policy_scope fallback;
};

/* ---- the object ---- */

static void rule_free(struct policy_rule *r)
{
	for (size_t i = 0; i < r->n_keys; i++)
		key_free(r->keys[i].key);
	list_remove(&r->link);
	free(r);
}

static void scope_done(struct policy_scope *s)
{
	struct policy_rule *r;

	list_for_each (r, &s->rules, struct policy_rule, link)
		rule_free(r);
}

struct policy *policy_free(struct policy *p)
{
	struct policy_scope *s;

	if (!p)
		return NULL;
	list_for_each (s, &p->scopes, struct policy_scope, link) {
		list_remove(&s->link);
		scope_done(s);
		free(s);
	}
	scope_done(&p->fallback);
	map_done(&p->by_name);
	json_decref(p->document);
	free(p);
	return NULL;
}

/* ---- rules ---- */

/* Refuses members that are none of the words. */
static int object_knows(json_t *object, const char *const *words, size_t n, struct error *err)
{
	const char *name;
	json_t *value;

	json_object_foreach(object, name, value)
	{
		bool known = false;

		for (size_t i = 0; i < n; i++)
			known = known || str_eq(name, words[i]);
		if (!known)
			return error_refuse(err, ERROR_INVALID, "\"%.80s\" is not known here",
					    name);
	}
	return 0;
}

static int rule_add_key(struct policy_rule *rule, const char *name, const struct buf *pem,
			struct error *err)
{
	struct policy_key *key = &rule->keys[rule->n_keys];
	int r;

	if (rule->n_keys == POLICY_KEYS_MAX)
		return error_refuse(err, ERROR_INVALID, "more than %d keys in a rule",
				    POLICY_KEYS_MAX);
	r = key_read(&key->key, buf_data(pem), pem->len, err);
	if (r < 0)
		return error_wrap(err, r, "%.200s", name);
	key->name = name;
	rule->n_keys++;
	r = key_fingerprint(key->key, key->fingerprint);
	return r < 0 ? error_set(err, r, "a key") : 0;
}

static int rule_add_path(struct policy_rule *rule, const char *path, struct error *err)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT;
	int r;

	if (path[0] != '/')
		return error_refuse(err, ERROR_INVALID,
				    "the path of a key, \"%.200s\", is not "
				    "absolute",
				    path);
	r = fd_read_file(AT_FDCWD, path, POLICY_KEY_BYTES_MAX, &pem);
	if (r < 0)
		return error_set(err, r, "read the key %.200s", path);
	return rule_add_key(rule, path, &pem, err);
}

static int rule_add_data(struct policy_rule *rule, const char *text, struct error *err)
{
	_cleanup_(buf_done) struct buf pem = BUF_INIT;
	int r = key_decode(&pem, text, POLICY_KEY_BYTES_MAX);

	if (r == -ENOMEM)
		return error_set(err, r, "a key");
	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "its keyData is no base64");
	return rule_add_key(rule, "keyData", &pem, err);
}

/* One member that has a text, or one that has several. */
static int rule_add_keys(struct policy_rule *rule, json_t *object, const char *one,
			 const char *several,
			 int (*add)(struct policy_rule *rule, const char *text, struct error *err),
			 struct error *err)
{
	json_t *list = NULL, *value;
	const char *text;
	size_t i;
	int r;

	r = json_get_text(object, one, &text, err);
	if (r == 0 && *text)
		r = add(rule, text, err);
	if (r == 0)
		r = json_get_array(object, several, POLICY_KEYS_MAX, &list, err);
	if (r < 0 || !list)
		return r;
	json_array_foreach(list, i, value)
	{
		text = json_string_value(value);
		if (!text)
			return error_refuse(err, ERROR_INVALID, "%s: not a text", several);
		r = add(rule, text, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int identity_text(json_t *object, const char *name, const char **ret, struct error *err)
{
	int r = json_need_text(object, name, ret, err);

	if (r == 0 && !**ret)
		return error_refuse(err, ERROR_INVALID, "\"%s\" is empty", name);
	return r;
}

static int rule_read_identity(struct policy_rule *rule, json_t *object, struct error *err)
{
	static const struct {
		const char *type, *members[3];
	} kinds[] = {
		[POLICY_REPOSITORY_OR_EXACT] = { "matchRepoDigestOrExact", { "type" } },
		[POLICY_EXACT] = { "matchExact", { "type" } },
		[POLICY_REPOSITORY] = { "matchRepository", { "type" } },
		[POLICY_EXACT_REFERENCE] = { "exactReference", { "type", "dockerReference" } },
		[POLICY_EXACT_REPOSITORY] = { "exactRepository", { "type", "dockerRepository" } },
		[POLICY_REMAP] = { "remapIdentity", { "type", "prefix", "signedPrefix" } },
	};
	const char *type;
	size_t i, n;
	int r;

	r = json_need_text(object, "type", &type, err);
	if (r < 0)
		return r;
	for (i = 0; i < ARRAY_SIZE(kinds) && !str_eq(type, kinds[i].type);)
		i++;
	if (i == ARRAY_SIZE(kinds))
		return error_refuse(err, ERROR_INVALID, "the type \"%.80s\" is not known here",
				    type);
	rule->identity = (enum policy_identity)i;
	for (n = 0; n < ARRAY_SIZE(kinds[i].members) && kinds[i].members[n];)
		n++;
	r = object_knows(object, kinds[i].members, n, err);
	if (r == 0 && n == 2)
		r = identity_text(object, kinds[i].members[1], &rule->named, err);
	if (r == 0 && n == 3)
		r = identity_text(object, "prefix", &rule->from, err);
	if (r == 0 && n == 3)
		r = identity_text(object, "signedPrefix", &rule->to, err);
	return r;
}

static int rule_read_signed(struct policy_rule *rule, json_t *object, struct error *err)
{
	static const char *const words[] = { "type",    "keyPath",  "keyPaths",
					     "keyData", "keyDatas", "signedIdentity" };
	json_t *identity = NULL;
	int r;

	r = object_knows(object, words, ARRAY_SIZE(words), err);
	if (r == 0)
		r = rule_add_keys(rule, object, "keyPath", "keyPaths", rule_add_path, err);
	if (r == 0)
		r = rule_add_keys(rule, object, "keyData", "keyDatas", rule_add_data, err);
	if (r == 0 && !rule->n_keys)
		r = error_refuse(err, ERROR_INVALID, "it names no key");
	if (r == 0)
		r = json_get_object(object, "signedIdentity", &identity, err);
	if (r < 0 || !identity)
		return r;
	r = rule_read_identity(rule, identity, err);
	return r < 0 ? error_wrap(err, r, "signedIdentity") : 0;
}

static int rule_read(struct policy_rule *rule, json_t *object, struct error *err)
{
	static const char *const words[] = { "type" };
	const char *type;
	int r;

	r = json_need_text(object, "type", &type, err);
	if (r < 0)
		return r;
	if (str_eq(type, "sigstoreSigned")) {
		rule->kind = POLICY_SIGNED;
		return rule_read_signed(rule, object, err);
	}
	if (str_eq(type, "reject"))
		rule->kind = POLICY_REJECT;
	else if (str_eq(type, "insecureAcceptAnything"))
		rule->kind = POLICY_ACCEPT;
	else
		return error_refuse(err, ERROR_INVALID, "the type \"%.80s\" is not known here",
				    type);
	return object_knows(object, words, ARRAY_SIZE(words), err);
}

/* An empty one, which the scope has from now on. */
static struct policy_rule *rule_new(struct policy_scope *s, struct error *err)
{
	struct policy_rule *rule = calloc(1, sizeof(*rule));

	if (!rule) {
		(void)error_set(err, -ENOMEM, "a rule");
		return NULL;
	}
	list_init(&rule->link);
	list_add_tail(&s->rules, &rule->link);
	return rule;
}

static int scope_read(struct policy_scope *s, json_t *rules, struct error *err)
{
	json_t *value;
	size_t i;

	if (!json_is_array(rules) || !json_array_size(rules))
		return error_refuse(err, ERROR_INVALID, "not a list of at least one rule");
	if (json_array_size(rules) > POLICY_RULES_MAX)
		return error_refuse(err, ERROR_INVALID, "more than %d rules", POLICY_RULES_MAX);
	json_array_foreach(rules, i, value)
	{
		struct policy_rule *rule = rule_new(s, err);
		int r;

		if (!rule)
			return -ENOMEM;
		r = json_is_object(value) ? rule_read(rule, value, err)
					  : error_refuse(err, ERROR_INVALID, "not an object");
		if (r < 0)
			return error_wrap(err, r, "rule %zu", i + 1);
	}
	return 0;
}

/* ---- the file ---- */

static int policy_add_scope(struct policy *p, const char *name, json_t *rules, struct error *err)
{
	struct policy_scope *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return error_set(err, -ENOMEM, "a policy");
	s->name = name;
	list_init(&s->rules);
	list_init(&s->link);
	list_add_tail(&p->scopes, &s->link);
	r = scope_read(s, rules, err);
	if (r < 0)
		return error_wrap(err, r, "\"%.200s\"", name);
	r = map_add(&p->by_name, s->name, s);
	return r < 0 ? error_set(err, r, "a policy") : 0;
}

/* Those of another transport than registries' are read, and forgotten. */
static int policy_read_other(json_t *scopes, struct error *err)
{
	const char *name;
	json_t *rules;

	json_object_foreach(scopes, name, rules)
	{
		struct policy_scope s = { .name = name };
		int r;

		list_init(&s.rules);
		r = scope_read(&s, rules, err);
		scope_done(&s);
		if (r < 0)
			return error_wrap(err, r, "\"%.200s\"", name);
	}
	return 0;
}

static int policy_read_transport(struct policy *p, const char *transport, json_t *scopes,
				 struct error *err)
{
	const char *name;
	json_t *rules;
	int r = 0;

	if (!json_is_object(scopes))
		return error_refuse(err, ERROR_INVALID, "not an object");
	if (json_object_size(scopes) > POLICY_SCOPES_MAX)
		return error_refuse(err, ERROR_INVALID, "more than %d scopes", POLICY_SCOPES_MAX);
	if (!str_eq(transport, "docker"))
		return policy_read_other(scopes, err);
	json_object_foreach(scopes, name, rules)
	{
		r = policy_add_scope(p, name, rules, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int policy_read_all(struct policy *p, struct error *err)
{
	static const char *const words[] = { POLICY_DEFAULT, "transports" };
	json_t *transports, *value;
	const char *name;
	int r;

	r = object_knows(p->document, words, ARRAY_SIZE(words), err);
	if (r < 0)
		return r;
	r = scope_read(&p->fallback, json_object_get(p->document, POLICY_DEFAULT), err);
	if (r < 0)
		return error_wrap(err, r, "\"" POLICY_DEFAULT "\"");
	r = json_get_object(p->document, "transports", &transports, err);
	if (r < 0 || !transports)
		return r;
	if (json_object_size(transports) > POLICY_TRANSPORTS_MAX)
		return error_refuse(err, ERROR_INVALID, "more than %d transports",
				    POLICY_TRANSPORTS_MAX);
	json_object_foreach(transports, name, value)
	{
		r = policy_read_transport(p, name, value, err);
		if (r < 0)
			return error_wrap(err, r, "transports: \"%.80s\"", name);
	}
	return 0;
}

static struct policy *policy_new(void)
{
	struct policy *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	list_init(&p->scopes);
	list_init(&p->fallback.rules);
	p->fallback.name = POLICY_DEFAULT;
	return p;
}

int policy_read_key(struct policy **ret, const char *pem, struct error *err)
{
	_cleanup_policy_ struct policy *p = policy_new();
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	struct policy_rule *rule;
	int r;

	if (!p || buf_add(&text, pem, strlen(pem)) < 0)
		return error_set(err, -ENOMEM, "a key");
	p->fallback.name = "";
	p->fallback.of_key = true;
	rule = rule_new(&p->fallback, err);
	if (!rule)
		return -ENOMEM;
	rule->kind = POLICY_SIGNED;
	rule->identity = POLICY_REPOSITORY;
	r = rule_add_key(rule, POLICY_GIVEN, &text, err);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(p);
	return 0;
}

int policy_read(struct policy **ret, const struct buf *text, const char *what, struct error *err)
{
	_cleanup_policy_ struct policy *p = policy_new();
	int r;

	if (!p)
		return error_set(err, -ENOMEM, "%s", what);
	r = json_read(&p->document, text, what, err);
	if (r < 0)
		return r;
	r = policy_read_all(p, err);
	if (r < 0)
		return error_wrap(err, r, "%s", what);
	*ret = TAKE_PTR(p);
	return 0;
}

int policy_open(struct policy **ret, const char *path, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r = fd_read_file(AT_FDCWD, path, POLICY_BYTES_MAX, &text);

	*ret = NULL;
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return error_set(err, r, "read the policy %.200s", path);
	return policy_read(ret, &text, path, err);
}

/* ---- asking ---- */

/* "*.b.c", then "*.c" for a.b.c:5000, whose port does not count there. */
static const struct policy_scope *policy_find_wild(const struct policy *p, const char *host)
{
	char name[REFERENCE_SIZE + 2], bare[REFERENCE_SIZE];
	const char *dot;

	(void)str_copy(bare, sizeof(bare), host);
	bare[strcspn(bare, ":")] = '\0';
	for (dot = strchr(bare, '.'); dot; dot = strchr(dot + 1, '.')) {
		const struct policy_scope *s;

		(void)str_printf(name, sizeof(name), "*%s", dot);
		s = map_get(&p->by_name, name);
		if (s)
			return s;
	}
	return NULL;
}

const struct policy_scope *policy_find(const struct policy *p, const struct reference *ref)
{
	const struct policy_scope *s;
	struct reference one = *ref;
	char name[REFERENCE_SIZE];
	char *slash;

	/* A digest says more than the tag beside it. */
	if (one.digest[0])
		one.tag[0] = '\0';
	reference_format(&one, name);
	s = map_get(&p->by_name, name);
	if (s)
		return s;
	(void)str_copy(name, sizeof(name), ref->name);
	for (;;) {
		s = map_get(&p->by_name, name);
		if (s)
			return s;
		slash = strrchr(name, '/');
		if (!slash)
			break;
		*slash = '\0';
	}
	s = policy_find_wild(p, name);
	if (!s)
		s = map_get(&p->by_name, "");
	return s ? s : &p->fallback;
}

int policy_refuses(const struct policy_scope *scope, const struct reference *ref, struct error *err)
{
	const struct policy_rule *rule;

	list_for_each (rule, &scope->rules, struct policy_rule, link)
		if (rule->kind == POLICY_REJECT)
			return error_refuse(err, ERROR_PRECONDITION,
					    "SignatureValidationFailed: the policy of this node "
					    "rejects %.300s (scope \"%.200s\")",
					    ref->name, scope->name);
	return 0;
}

bool policy_wants_signatures(const struct policy_scope *scope)
{
	const struct policy_rule *rule;

	list_for_each (rule, &scope->rules, struct policy_rule, link)
		if (rule->kind == POLICY_SIGNED)
			return true;
	return false;
}
