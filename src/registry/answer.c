/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/answer.h"

#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "registry/limits.h"
#include "wire/document/jsonread.h"
#include "wire/name/reference.h"

/* Where a token server says nothing else (its specification). */
#define ANSWER_TOKEN_SECONDS 60
#define ANSWER_TOKEN_SECONDS_MAX 86400
#define ANSWER_TAGS_MAX 10000 /* of one page */
#define ANSWER_REASON_MEMORY (64 << 10)

static int answer_object(struct json_value **ret, struct arena *arena, const void *data, size_t len,
			 struct error *err)
{
	int r = json_parse(ret, arena, data, len, err);

	if (r == 0 && (*ret)->kind != JSON_OBJECT)
		r = error_refuse(err, ERROR_INVALID, "it is no JSON object");
	return r;
}

struct answer_token_text {
	const char *token, *access_token;
	struct json_int expires_in;
};

static const struct json_field answer_token_fields[] = {
	{ "token", JSON_TO_TEXT, .offset = offsetof(struct answer_token_text, token) },
	{ "access_token", JSON_TO_TEXT,
	  .offset = offsetof(struct answer_token_text, access_token) },
	{ "expires_in", JSON_TO_INT, .offset = offsetof(struct answer_token_text, expires_in),
	  .min = INT64_MIN, .max = INT64_MAX },
};

int answer_token(struct answer_token *ret, struct arena *arena, const void *data, size_t len,
		 struct error *err)
{
	struct answer_token_text text = { .token = NULL };
	struct json_value *object;
	const char *token;
	int r;

	r = answer_object(&object, arena, data, len, err);
	if (r == 0)
		r = json_fill(&text, object, answer_token_fields, ARRAY_SIZE(answer_token_fields),
			      "", arena, err);
	if (r < 0)
		return r;
	token = str_empty(text.token) ? text.access_token : text.token;
	if (str_empty(token))
		return error_refuse(err, ERROR_INVALID, "it has neither token nor access_token");
	/* It goes into a header as it is. */
	for (const char *p = token; *p; p++)
		if (*p <= ' ' || *p >= 0x7f)
			return error_refuse(err, ERROR_INVALID, "its token is no plain text");
	if (strlen(token) > REGISTRY_TOKEN_MAX)
		return error_refuse(err, ERROR_EXHAUSTED, "its token has more than %d bytes",
				    REGISTRY_TOKEN_MAX);
	ret->token = token;
	/* Some servers say 0 or less for "the usual time", which is what a missing number means. */
	ret->seconds = text.expires_in.value > 0 ? (uint64_t)MIN(text.expires_in.value,
								 (int64_t)ANSWER_TOKEN_SECONDS_MAX)
						 : ANSWER_TOKEN_SECONDS;
	return 0;
}

static const struct json_field answer_tags_fields[] = {
	{ "tags", JSON_TO_TEXTS, .offset = offsetof(struct answer_tags, tags),
	  .count_offset = offsetof(struct answer_tags, n_tags), .max = ANSWER_TAGS_MAX },
};

static bool answer_is_tag(const char *tag)
{
	struct reference ref;
	char text[REFERENCE_TAG_MAX + 3];

	return str_printf(text, sizeof(text), "x:%s", tag) >= 0 &&
	       reference_parse(&ref, text, NULL) == 0 && str_eq(ref.tag, tag);
}

int answer_tags(struct answer_tags *ret, struct arena *arena, const void *data, size_t len,
		struct error *err)
{
	struct answer_tags found = { .n_tags = 0 };
	struct json_value *object;
	int r;

	r = answer_object(&object, arena, data, len, err);
	if (r == 0)
		r = json_fill(&found, object, answer_tags_fields, ARRAY_SIZE(answer_tags_fields),
			      "", arena, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < found.n_tags; i++)
		if (!answer_is_tag(found.tags[i]))
			return error_refuse(err, ERROR_INVALID, "\"%.64s\" is no tag",
					    found.tags[i]);
	*ret = found;
	return 0;
}

static const char *answer_text(const struct json_value *object, const char *name)
{
	const struct json_value *v = json_member(object, name);

	return v && v->kind == JSON_STRING ? v->text : "";
}

void answer_reason(char ret[ANSWER_REASON_SIZE], const void *data, size_t len)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(ANSWER_REASON_MEMORY);
	const struct json_value *list, *first;
	struct json_value *object;
	const char *code, *message;

	ret[0] = '\0';
	if (answer_object(&object, &arena, data, len, NULL) < 0)
		return;
	list = json_member(object, "errors");
	first = list && list->kind == JSON_ARRAY ? list->first : object;
	if (!first || first->kind != JSON_OBJECT)
		return;
	code = answer_text(first, "code");
	message = answer_text(first, "message");
	if (!*message)
		message = answer_text(first, "details");
	(void)str_printf(ret, ANSWER_REASON_SIZE, "%.60s%s%.120s", code,
			 *code && *message ? ": " : "", message);
	str_clean(ret);
	/* A character may have been cut. */
	while (*ret && !str_is_utf8(ret, strlen(ret)))
		ret[strlen(ret) - 1] = '\0';
}
