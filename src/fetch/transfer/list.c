/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/list.h"

#include <errno.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/transfer/referrers.h"
#include "fetch/unpack/reading.h"
#include "registry/answer.h"

#define LIST_MEMORY_MAX (32 << 20)

static int list_send_page(struct network *n, const struct network_document *page, void *userdata,
			  struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(LIST_MEMORY_MAX);
	struct fetchmsg m = { .type = FETCHMSG_TAG };
	struct answer_tags tags;
	uint32_t *n_told = userdata;
	int r;

	r = answer_tags(&tags, &arena, page->data.len ? (const char *)buf_data(&page->data) : "",
			page->data.len, err);
	for (size_t i = 0; r == 0 && i < tags.n_tags; i++) {
		if (++*n_told > n->request.list.max)
			return error_refuse(err, ERROR_EXHAUSTED, "more than %u tags",
					    n->request.list.max);
		m.tag.name = tags.tags[i];
		r = channel_send(n->sock_fd, &m, err);
	}
	return r < 0 ? error_wrap(err, r, "registry %s: tags", n->registry.host) : 0;
}

static int list_tags(struct network *n, struct error *err)
{
	struct network_question q = { .what = "tags",
				      .path = "/tags/list?n=1000",
				      .need = FETCH_CAN_RESOLVE,
				      .max = READING_DOCUMENT_MAX };
	_cleanup_(network_document_done) struct network_document page = { .data = BUF_INIT };
	uint32_t n_told = 0;
	int r;

	r = network_get(n, &q, &page, err);
	return r < 0 ? r : network_each_page(n, &q, &page, list_send_page, &n_told, err);
}

static int list_resolve(struct network *n, struct error *err)
{
	_cleanup_(network_document_done) struct network_document root = { .data = BUF_INIT };
	const struct reference *ref = &n->reference;
	int r;

	r = network_get_manifest(n, *ref->digest ? ref->digest : ref->tag, &root, err);
	if (r == 0)
		r = network_send_resolved(n, &root, err);
	if (r == 0 && n->request.list.what == FETCH_LIST_REFERRERS)
		r = referrers_tell(n, root.digest, n->request.list.max, false, err);
	return r;
}

int list_run(struct network *n, struct error *err)
{
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	int r;

	r = n->request.list.what == FETCH_LIST_TAGS ? list_tags(n, err) : list_resolve(n, err);
	return r == 0 ? channel_send(n->sock_fd, &done, err) : r;
}

int list_login(struct network *n, struct error *err)
{
	struct network_question q = { .what = "login", .path = "", .max = READING_DOCUMENT_MAX };
	_cleanup_(network_document_done) struct network_document root = { .data = BUF_INIT };
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	int r = network_get(n, &q, &root, err);

	return r == 0 ? channel_send(n->sock_fd, &done, err) : r;
}
