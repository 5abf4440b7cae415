/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/verdict.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "wire/name/reference.h"

#define VERDICT_MEMORY_MAX (8 << 20)
#define VERDICTS_MAX 256 /* of an image; the oldest go */

static const char *const verdict_words[] = {
	[IMAGE_VERDICT_NO_POLICY] = "no-policy",
	[IMAGE_VERDICT_ACCEPTED] = "accepted",
	[IMAGE_VERDICT_SIGNED] = "signed",
	[IMAGE_VERDICT_REFUSED] = "refused",
};
static_assert(ARRAY_SIZE(verdict_words) == IMAGE_VERDICT_KIND_COUNT, "a word for each");

const char *image_verdict_word(enum image_verdict_kind kind)
{
	return verdict_words[kind];
}

/* ---- what the helper says ---- */

void verdict_init(struct verdict *v)
{
	*v = (struct verdict){ .arena = ARENA_INIT_LIMIT(VERDICT_MEMORY_MAX) };
}

void verdict_done(struct verdict *v)
{
	arena_done(&v->arena);
}

static int verdict_memory(struct error *err)
{
	return error_set(err, -ENOMEM, "take what nacre-transfer says");
}

static int verdict_wrong(struct error *err)
{
	return error_set(err, -EPROTO, "nacre-transfer: a verdict that cannot be");
}

static int verdict_take_signer(struct verdict *v, const struct fetchmsg *m, struct error *err)
{
	struct image_signer *s = &v->signers[v->said.n_signers];

	if (v->said.n_signers == FETCH_SIGNERS_MAX)
		return verdict_wrong(err);
	s->key = arena_strdup(&v->arena, m->signer.key);
	s->fingerprint = arena_strdup(&v->arena, m->signer.fingerprint);
	s->identity = arena_strdup(&v->arena, m->signer.identity);
	if (!s->key || !s->fingerprint || !s->identity)
		return verdict_memory(err);
	v->said.n_signers++;
	return 0;
}

static int verdict_take_annotation(struct verdict *v, const struct fetchmsg *m, struct error *err)
{
	size_t i = v->said.n_signers - 1;
	struct image_annotation *a;
	struct image_signer *s;

	if (v->said.n_signers == 0 || v->signers[i].n_annotations == FETCH_ANNOTATIONS_MAX)
		return verdict_wrong(err);
	s = &v->signers[i];
	if (!v->annotations[i])
		v->annotations[i] = arena_zalloc(&v->arena, FETCH_ANNOTATIONS_MAX, sizeof(*a));
	if (!v->annotations[i])
		return verdict_memory(err);
	a = &v->annotations[i][s->n_annotations];
	a->name = arena_strdup(&v->arena, m->annotation.name);
	a->value = arena_strdup(&v->arena, m->annotation.value);
	if (!a->name || !a->value)
		return verdict_memory(err);
	s->annotations = v->annotations[i];
	s->n_annotations++;
	return 0;
}

static int verdict_take_end(struct verdict *v, const struct fetchmsg *m, struct error *err)
{
	static const enum image_verdict_kind kinds[] = {
		[FETCH_VERDICT_NO_POLICY] = IMAGE_VERDICT_NO_POLICY,
		[FETCH_VERDICT_ACCEPTED] = IMAGE_VERDICT_ACCEPTED,
		[FETCH_VERDICT_SIGNED] = IMAGE_VERDICT_SIGNED,
		[FETCH_VERDICT_REFUSED] = IMAGE_VERDICT_REFUSED,
	};

	if (m->verdict.n_signers != v->said.n_signers)
		return verdict_wrong(err);
	(void)str_copy(v->digest, sizeof(v->digest), m->verdict.digest);
	v->said.digest = v->digest;
	v->said.kind = kinds[m->verdict.verdict];
	v->said.scope = arena_strdup(&v->arena, m->verdict.scope);
	v->said.reason = arena_strdup(&v->arena, m->verdict.text);
	v->said.signers = v->signers;
	if (!v->said.scope || !v->said.reason)
		return verdict_memory(err);
	v->done = true;
	return 0;
}

int verdict_take(struct verdict *v, const struct fetchmsg *m, struct error *err)
{
	if (v->done)
		return verdict_wrong(err);
	if (m->type == FETCHMSG_SIGNER)
		return verdict_take_signer(v, m, err);
	if (m->type == FETCHMSG_ANNOTATION)
		return verdict_take_annotation(v, m, err);
	return verdict_take_end(v, m, err);
}

/* ---- lines ---- */

static int line_add(struct buf *b, const char *text)
{
	int r = buf_add(b, text, strlen(text));

	return r < 0 ? r : buf_add(b, "\n", 1);
}

char *verdict_line(const struct image_verdict *v)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char at[24];
	int r;

	(void)str_printf(at, sizeof(at), "%" PRIu64, v->at);
	r = line_add(&b, v->reference);
	if (r == 0)
		r = line_add(&b, v->digest);
	if (r == 0)
		r = line_add(&b, image_verdict_word(v->kind));
	if (r == 0)
		r = line_add(&b, at);
	if (r == 0)
		r = line_add(&b, v->scope);
	for (size_t i = 0; i < v->n_signers && r == 0; i++) {
		r = line_add(&b, v->signers[i].key);
		if (r == 0)
			r = line_add(&b, v->signers[i].fingerprint);
		if (r == 0)
			r = line_add(&b, v->signers[i].identity);
	}
	return r == 0 ? strndup((const char *)buf_data(&b), b.len) : NULL;
}

/* The next field of it, which ends with a newline; NULL where there is none. */
static const char *line_next(char **at)
{
	char *field = *at, *end = strchr(field, '\n');

	if (!end)
		return NULL;
	*end = '\0';
	*at = end + 1;
	return field;
}

static int line_read_signers(struct image_verdict *v, struct arena *a, char *at)
{
	struct image_signer *list = arena_zalloc(a, FETCH_SIGNERS_MAX, sizeof(*list));

	if (!list)
		return -ENOMEM;
	while (*at) {
		struct image_signer *s = &list[v->n_signers];

		if (v->n_signers++ == FETCH_SIGNERS_MAX)
			return -EINVAL;
		s->key = line_next(&at);
		s->fingerprint = s->key ? line_next(&at) : NULL;
		s->identity = s->fingerprint ? line_next(&at) : NULL;
		if (!s->identity || !digest_is_valid(s->fingerprint))
			return -EINVAL;
	}
	v->signers = list;
	return 0;
}

static int line_read_kind(struct image_verdict *v, const char *word)
{
	for (size_t i = 0; word && i < ARRAY_SIZE(verdict_words); i++) {
		if (!str_eq(verdict_words[i], word))
			continue;
		v->kind = (enum image_verdict_kind)i;
		return 0;
	}
	return -EINVAL;
}

int verdict_read(struct image_verdict *ret, struct arena *a, const char *line)
{
	struct image_verdict v = { .reason = "" };
	char *at = arena_strdup(a, line);
	char full[REFERENCE_SIZE];
	const char *when;
	int r;

	if (!at)
		return -ENOMEM;
	v.reference = line_next(&at);
	v.digest = v.reference ? line_next(&at) : NULL;
	if (!v.digest || !digest_is_valid(v.digest) ||
	    reference_normalise(full, v.reference, NULL) < 0 || !str_eq(full, v.reference) ||
	    line_read_kind(&v, line_next(&at)) < 0)
		return -EINVAL;
	when = line_next(&at);
	v.scope = when ? line_next(&at) : NULL;
	if (!v.scope || parse_u64(when, 0, UINT64_MAX, &v.at) < 0)
		return -EINVAL;
	r = line_read_signers(&v, a, at);
	if (r == 0)
		*ret = v;
	return r;
}

/* ---- lists of lines ---- */

static bool line_is_of(const char *line, const char *reference)
{
	size_t len = strlen(reference);

	return strncmp(line, reference, len) == 0 && line[len] == '\n';
}

const char *verdicts_find(char *const *lines, const char *reference)
{
	for (; *lines; lines++)
		if (line_is_of(*lines, reference))
			return *lines;
	return NULL;
}

void verdicts_drop(char **lines, const char *reference)
{
	size_t to = 0;

	for (size_t i = 0; lines[i]; i++) {
		if (line_is_of(lines[i], reference))
			free(lines[i]);
		else
			lines[to++] = lines[i];
	}
	lines[to] = NULL;
}

static void verdicts_drop_first(char **lines)
{
	free(lines[0]);
	for (size_t i = 0; lines[i]; i++)
		lines[i] = lines[i + 1];
}

int verdicts_put(char ***lines, const char *line)
{
	char reference[REFERENCE_SIZE];

	(void)str_printf(reference, sizeof(reference), "%.*s", (int)strcspn(line, "\n"), line);
	verdicts_drop(*lines, reference);
	if (strv_len(*lines) >= VERDICTS_MAX)
		verdicts_drop_first(*lines);
	return strv_add(lines, line);
}

static bool line_holds(const char *line, char *const *names)
{
	size_t len = strcspn(line, "\n");

	if (memchr(line, '@', len))
		return true;
	for (; *names; names++)
		if (line_is_of(line, *names))
			return true;
	return false;
}

void verdicts_keep(char **lines, char *const *names)
{
	size_t to = 0;

	for (size_t i = 0; lines[i]; i++) {
		_cleanup_(arena_done) struct arena a = ARENA_INIT;
		struct image_verdict v;

		if (line_holds(lines[i], names) && verdict_read(&v, &a, lines[i]) != -EINVAL)
			lines[to++] = lines[i];
		else
			free(lines[i]);
	}
	lines[to] = NULL;
}
