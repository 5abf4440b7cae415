/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "daemon/access.h"
#include "daemon/config_read.h"
#include "wire/name/spiffe.h"

#define POLICY_FILE_MAX ((size_t)256 * 1024)
#define POLICY_WORD_MAX 256

/* One word of one id. */
struct policy_rule {
	char *id;   /* may end with '*' */
	char *word; /* a role, or a method, which may end with '*' */
};

struct policy {
	struct policy_rule rules[POLICY_RULES_MAX];
	size_t n;
};

struct policy_reader {
	struct policy *policy;
	const char *name;
	char id[SPIFFE_SIZE];
	bool in_mapping, has_id, in_list;
};

struct policy *policy_free(struct policy *p)
{
	if (!p)
		return NULL;
	for (size_t i = 0; i < p->n; i++) {
		free(p->rules[i].id);
		free(p->rules[i].word);
	}
	free(p);
	return NULL;
}

static inline void policy_freep(struct policy **p)
{
	*p = policy_free(*p);
}

static int policy_bad(const struct policy_reader *rd, const yaml_event_t *e, struct error *err,
		      const char *what)
{
	return error_refuse(err, ERROR_INVALID, "%.200s:%zu: %.200s", rd->name,
			    e->start_mark.line + 1, what);
}

/* An id, or the beginning of some. */
static bool policy_is_id(const char *text)
{
	char id[SPIFFE_SIZE];
	struct spiffe s;
	size_t len = strlen(text);

	if (len == 0 || str_copy(id, sizeof(id), text) < 0)
		return false;
	/* Any letter stands for the rest, so that the beginning is read as strictly. */
	if (id[len - 1] == '*')
		id[len - 1] = 'x';
	return spiffe_parse(&s, id, len, NULL) == 0 && s.path_len > 0;
}

static bool policy_is_word(const char *text)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._/";
	size_t len = strlen(text), n = strspn(text, letters);

	if (str_eq(text, "admin") || str_eq(text, "reader"))
		return true;
	return text[0] == '/' && len <= POLICY_WORD_MAX && (n == len || str_eq(text + n, "*"));
}

static int policy_on_word(struct policy_reader *rd, const yaml_event_t *e, const char *text,
			  struct error *err)
{
	struct policy *p = rd->policy;
	struct policy_rule r;

	if (!policy_is_word(text))
		return policy_bad(rd, e, err,
				  "expected admin, reader, or a method such as "
				  "/nacre.v1.ImageService/Pull, which may end with '*'");
	if (p->n == POLICY_RULES_MAX)
		return policy_bad(rd, e, err, "more than 1024 rules");
	r = (struct policy_rule){ .id = strdup(rd->id), .word = strdup(text) };
	if (!r.id || !r.word) {
		free(r.id);
		free(r.word);
		return error_set(err, -ENOMEM, "read %s", rd->name);
	}
	p->rules[p->n++] = r;
	rd->has_id = rd->in_list;
	return 0;
}

static int policy_on_scalar(struct policy_reader *rd, const yaml_event_t *e, struct error *err)
{
	const char *text = (const char *)e->data.scalar.value;

	if (!rd->in_mapping && !*text)
		return 0;
	if (!rd->in_mapping || strlen(text) != e->data.scalar.length)
		return policy_bad(rd, e, err, "expected ids with what they may");
	if (rd->has_id)
		return policy_on_word(rd, e, text, err);
	if (!policy_is_id(text))
		return policy_bad(
			rd, e, err,
			"expected a SPIFFE id such as spiffe://nacre.local/user/alice, which "
			"may end with '*'");
	(void)str_copy(rd->id, sizeof(rd->id), text);
	rd->has_id = true;
	return 0;
}

static int policy_event(void *userdata, const yaml_event_t *e, struct error *err)
{
	struct policy_reader *rd = userdata;

	switch (e->type) {
	case YAML_SCALAR_EVENT:
		return policy_on_scalar(rd, e, err);
	case YAML_MAPPING_START_EVENT:
		if (rd->in_mapping)
			return policy_bad(rd, e, err, "expected a word or a list of words");
		rd->in_mapping = true;
		return 0;
	case YAML_SEQUENCE_START_EVENT:
		if (!rd->has_id || rd->in_list)
			return policy_bad(rd, e, err, "a list has no place here");
		rd->in_list = true;
		return 0;
	case YAML_SEQUENCE_END_EVENT:
		rd->in_list = false;
		rd->has_id = false;
		return 0;
	case YAML_ALIAS_EVENT:
		return policy_bad(rd, e, err, "aliases have no place here");
	case YAML_NO_EVENT:
	case YAML_MAPPING_END_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_START_EVENT:
	case YAML_DOCUMENT_END_EVENT:
		return 0;
	}
	return 0;
}

int policy_parse(struct policy **ret, const char *text, size_t len, const char *name,
		 struct error *err)
{
	_cleanup_(policy_freep) struct policy *p = calloc(1, sizeof(*p));
	struct policy_reader rd = { .policy = p, .name = name };
	int r;

	if (!p)
		return error_set(err, -ENOMEM, "read %s", name);
	r = config_read_events(text, len, name, policy_event, &rd, err);
	if (r == 0)
		*ret = TAKE_PTR(p);
	return r;
}

int policy_load(struct policy **ret, const char *path, struct error *err)
{
	_cleanup_(buf_done) struct buf text = BUF_INIT;
	int r = fd_read_file(AT_FDCWD, path, POLICY_FILE_MAX, &text);

	if (r < 0)
		return error_set(err, r, "read the policy %s", path);
	return policy_parse(ret, (const char *)buf_data(&text), text.len, path, err);
}

bool policy_allows(const struct policy *p, const char *id, const char *method)
{
	for (size_t i = 0; i < p->n; i++) {
		const struct policy_rule *r = &p->rules[i];

		if (!access_matches(r->id, id))
			continue;
		if (str_eq(r->word, "admin") ||
		    (str_eq(r->word, "reader") && access_is_read(method)) ||
		    (r->word[0] == '/' && access_matches(r->word, method)))
			return true;
	}
	return false;
}
