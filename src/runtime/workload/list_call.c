/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/workload/list_call.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/nacre.pb-c.h"
#include "base/memory/hash.h"
#include "base/text/str.h"
#include "runtime/core/convert.h"
#include "runtime/core/shown.h"
#include "runtime/services.h"

/* ---- pages ---- */

int list_page_size(uint32_t asked, size_t *ret, struct error *err)
{
	if (asked > LIST_PAGE_MAX)
		return error_field(err, ERROR_INVALID, "page_size",
				   "%" PRIu32 " are more than the limit of %d", asked,
				   LIST_PAGE_MAX);
	*ret = asked ? asked : LIST_PAGE_DEFAULT;
	return 0;
}

static uint64_t list_token_check(uint64_t question, const struct shown_place *p)
{
	uint64_t hash = hash_add(HASH_INIT, &question, sizeof(question));

	hash = hash_add(hash, &p->created_at, sizeof(p->created_at));
	return hash_add_str(hash, p->id);
}

void list_token_write(char to[LIST_TOKEN_SIZE], uint64_t question, const struct shown_place *p)
{
	(void)str_printf(to, LIST_TOKEN_SIZE, "%016" PRIx64 "%s%016" PRIx64, p->created_at, p->id,
			 list_token_check(question, p));
}

static uint64_t list_token_number(const char *digits)
{
	char text[17];

	(void)str_printf(text, sizeof(text), "%.16s", digits);
	return strtoull(text, NULL, 16);
}

int list_token_read(const char *token, uint64_t question, struct shown_place *ret,
		    struct error *err)
{
	*ret = (struct shown_place){ .created_at = 0 };
	if (str_empty(token))
		return 0;
	if (strlen(token) == LIST_TOKEN_SIZE - 1 &&
	    strspn(token, "0123456789abcdef") == LIST_TOKEN_SIZE - 1) {
		ret->created_at = list_token_number(token);
		(void)str_printf(ret->id, sizeof(ret->id), "%.16s", token + 16);
		if (list_token_number(token + 32) == list_token_check(question, ret))
			return 0;
	}
	return error_field(err, ERROR_INVALID, "page_token",
			   "not one that an answer to this question gave out");
}

/* ---- the request ---- */

struct list_question {
	struct shown_filter filter;
	struct shown_place after;
	uint64_t hash;
	size_t n_page;
	uint64_t fields;
};

static uint64_t list_question_hash(const struct shown_filter *f)
{
	uint64_t hash = hash_add_str(HASH_INIT, "WorkloadService.List");

	hash = hash_add(hash, &f->kinds, sizeof(f->kinds));
	hash = hash_add(hash, &f->states, sizeof(f->states));
	hash = hash_add(hash, &f->ended, sizeof(f->ended));
	for (size_t i = 0; i < f->n_labels; i++)
		hash = hash_add_str(hash, f->labels[i]);
	return hash_add_str(hash, f->below);
}

static int list_question(const Nacre__V1__ListRequest *q, struct list_question *ret,
			 struct error *err)
{
	int r;

	*ret = (struct list_question){ .filter = { .ended = q->all } };
	r = shown_filter_set(&ret->filter, q->kinds, q->n_kinds, q->states, q->n_states, q->below,
			     err);
	if (r == 0)
		r = shown_filter_set_labels(&ret->filter, q->labels, q->n_labels, err);
	if (r == 0)
		r = list_page_size(q->page_size, &ret->n_page, err);
	if (r == 0)
		r = convert_fields(q->fields, q->n_fields, &ret->fields, err);
	if (r < 0)
		return r;
	ret->hash = list_question_hash(&ret->filter);
	return list_token_read(q->page_token, ret->hash, &ret->after, err);
}

static int list_answer(struct rpc_call *call, const struct workload_service *s,
		       const struct list_question *question, struct error *err)
{
	struct arena *a = rpc_call_arena(call);
	Nacre__V1__ListResponse m = NACRE__V1__LIST_RESPONSE__INIT;
	char token[LIST_TOKEN_SIZE];
	struct target *found;
	struct shown_place last;
	size_t n, bytes = 0;
	int r;

	r = shown_collect(s, &question->filter, &question->after, a, &found, &n);
	if (r < 0)
		return error_set(err, r, "list");
	m.workloads = arena_zalloc(a, n + 1, sizeof(*m.workloads));
	if (!m.workloads)
		return error_set(err, -ENOMEM, "list");
	while (m.n_workloads < MIN(n, question->n_page) && bytes < LIST_PAGE_BYTES) {
		Nacre__V1__Workload *w = convert_target(a, &found[m.n_workloads], question->fields);

		if (!w)
			return error_set(err, -ENOMEM, "list");
		bytes += nacre__v1__workload__get_packed_size(w);
		m.workloads[m.n_workloads++] = w;
	}
	if (m.n_workloads < n) {
		last = shown_place_of(&found[m.n_workloads - 1]);
		list_token_write(token, question->hash, &last);
		m.next_page_token = token;
	}
	rpc_call_reply(call, &m.base);
	return 0;
}

void list_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata)
{
	struct list_question question;
	struct error err = ERROR_INIT;
	int r;

	r = list_question((const Nacre__V1__ListRequest *)(const void *)request, &question, &err);
	if (r == 0)
		r = list_answer(call, userdata, &question, &err);
	if (r < 0)
		rpc_call_fail(call, &err);
}
