/* SPDX-License-Identifier: Apache-2.0 */
#include "http/session.h"

#include <assert.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>
#include <string.h>

#include "base/memory/list.h"
#include "http/guard.h"

/*
 * How it works. nghttp2 keeps the frames, HPACK, windows and the flood limits; a struct http_stream
 * stands for one of its streams from the first frame to nghttp2's close callback, and owns what we
 * still have to send on it.
 *
 * Windows: the connection's window is given back as soon as bytes have come, a stream's window only
 * when its owner has consumed them. So one stream that nobody reads never stops the others, and
 * what it holds is bounded by its own window.
 */

#define HTTP_FRAME_HEAD 9

struct http_session {
	nghttp2_session *ng;
	enum http_side side;
	const struct http_ops *ops;
	void *userdata;
	struct list streams;
	struct list drained; /* streams whose drain op is due */
	struct list taken;   /* streams of whose queues something is in `out` */
	size_t queued;       /* bytes in the queues of all streams */
	/* From http_session_pull() to http_session_pulled(): where what is sent is put, until it
	 * holds out_max. */
	struct http_out *out;
	size_t out_max;
	bool out_lost; /* something that was to be sent is not there: no memory */
	struct guard guard;
	bool over;                     /* the peer was told that it is */
	uint8_t head[HTTP_FRAME_HEAD]; /* of the frame that comes, n_head bytes of it so far */
	size_t n_head;
	size_t left; /* bytes until the next head */
};

struct http_stream {
	struct http_session *session;
	struct list member;
	struct list drained;
	struct list taker;
	int32_t id;
	void *data; /* NULL: detached */
	struct buf queue;
	size_t taken;   /* bytes at the front of the queue that are in session->out */
	char *trailers; /* name NUL value NUL ..., n_trailers of them */
	size_t n_trailers;
	size_t fields_size;
	bool oversized;
	bool full;     /* reached HTTP_QUEUE_HIGH and not yet HTTP_QUEUE_LOW */
	bool deferred; /* nghttp2 waits for http_stream_wake() */
	bool finished; /* nothing is added to the queue any more */
	bool ended;    /* the peer sends no more */
};

static struct http_stream *http_stream_new(struct http_session *h)
{
	struct http_stream *s = malloc(sizeof(*s));

	if (!s)
		return NULL;
	*s = (struct http_stream){ .session = h, .queue = BUF_INIT };
	list_init(&s->drained);
	list_init(&s->taker);
	list_init(&s->member);
	list_add_tail(&h->streams, &s->member);
	return s;
}

/*
 * A frame that libnghttp2 has no memory to note would never be sent, and the peer would wait for
 * its window, or go on with what nobody wants any more: then the session ends. (Other refusals are
 * of streams that have ended meanwhile.)
 */
static void http_session_noted(struct http_session *h, int r)
{
	if (r == NGHTTP2_ERR_NOMEM)
		h->out_lost = true;
}

static void http_stream_drop_queue(struct http_stream *s)
{
	/* What was taken is sent all the same. */
	if (s->taken && s->session->out && http_out_own(s->session->out) < 0)
		s->session->out_lost = true;
	s->taken = 0;
	list_remove(&s->taker);
	s->session->queued -= s->queue.len;
	buf_clear(&s->queue);
}

static struct http_stream *http_stream_free(struct http_stream *s)
{
	http_stream_drop_queue(s);
	list_remove(&s->member);
	list_remove(&s->drained);
	free(s->trailers);
	free(s);
	return NULL;
}

static void http_stream_close(struct http_stream *s, uint32_t code)
{
	if (s->data)
		s->session->ops->close(s, code);
	http_stream_free(s);
}

static size_t http_fields_convert(nghttp2_nv *to, const struct http_field *fields, size_t n)
{
	assert(n <= HTTP_FIELDS_OUT_MAX);
	for (size_t i = 0; i < n; i++)
		to[i] = (nghttp2_nv){
			/* nghttp2 copies both and changes neither; its type only lacks the const.
			 */
			.name = (uint8_t *)(uintptr_t)fields[i].name,
			.namelen = strlen(fields[i].name),
			.value = (uint8_t *)(uintptr_t)fields[i].value,
			.valuelen = strlen(fields[i].value),
		};
	return n;
}

/* ---- callbacks of nghttp2 ---- */

static struct http_stream *http_find(nghttp2_session *ng, int32_t id)
{
	return nghttp2_session_get_stream_user_data(ng, id);
}

/* The last word to a peer that broke the rules: nothing of its streams is sent any more. */
static int http_session_blame(struct http_session *h, uint32_t code)
{
	if (h->over)
		return 0;
	h->over = true;
	return nghttp2_session_terminate_session(h->ng, code);
}

static int http_on_begin_headers(nghttp2_session *ng, const nghttp2_frame *frame, void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s;

	if (h->side != HTTP_SERVER || frame->headers.cat != NGHTTP2_HCAT_REQUEST)
		return 0;
	s = http_stream_new(h);
	if (!s)
		return nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, frame->hd.stream_id,
						 NGHTTP2_REFUSED_STREAM);
	s->id = frame->hd.stream_id;
	if (nghttp2_session_set_stream_user_data(ng, s->id, s) != 0) {
		http_stream_free(s);
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	}
	if (h->ops->begin(h, s) < 0) {
		s->data = NULL;
		return nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, s->id,
						 NGHTTP2_REFUSED_STREAM);
	}
	return 0;
}

static int http_on_header(nghttp2_session *ng, const nghttp2_frame *frame, const uint8_t *name,
			  size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
			  void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s = http_find(ng, frame->hd.stream_id);

	if (!s || !s->data || s->oversized)
		return 0;
	s->fields_size += name_len + value_len + 32;
	if (s->fields_size > HTTP_FIELDS_MAX) {
		s->oversized = true;
		return 0;
	}
	/* nghttp2 promises a NUL behind each and lets none through inside. */
	h->ops->field(s, (const char *)name, (const char *)value);
	return 0;
}

static int http_on_frame(nghttp2_session *ng, const nghttp2_frame *frame, void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s = http_find(ng, frame->hd.stream_id);

	if (frame->hd.type == NGHTTP2_GOAWAY && h->ops->goaway)
		h->ops->goaway(h);
	if (s && frame->hd.type == NGHTTP2_RST_STREAM)
		s->ended = true;
	if (!s || (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	if (s->data && frame->hd.type == NGHTTP2_HEADERS)
		h->ops->headers(s);
	if (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) {
		s->ended = true;
		if (s->data)
			h->ops->end(s);
	}
	return 0;
}

static int http_on_data(nghttp2_session *ng, uint8_t flags, int32_t id, const uint8_t *data,
			size_t len, void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s = http_find(ng, id);
	int r = nghttp2_session_consume_connection(ng, len);

	if (r != 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (s && s->data)
		h->ops->data(s, data, len);
	return 0;
}

static int http_on_close(nghttp2_session *ng, int32_t id, uint32_t code, void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s = http_find(ng, id);

	if (!s)
		return 0;
	if (s->ended)
		guard_closed(&h->guard, id);
	http_stream_close(s, code);
	return 0;
}

/* Resets that are no fault of the peer. */
static bool http_is_blameless(uint32_t code)
{
	static const uint32_t codes[] = { NGHTTP2_NO_ERROR, NGHTTP2_CANCEL, NGHTTP2_REFUSED_STREAM,
					  NGHTTP2_INTERNAL_ERROR };

	for (size_t i = 0; i < ARRAY_SIZE(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

/* An answer may end before its request has: the rest of that is not wanted (RFC 9113, 8.1). */
static int http_on_frame_sent(nghttp2_session *ng, const nghttp2_frame *frame, void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s;

	if (frame->hd.type == NGHTTP2_RST_STREAM &&
	    !http_is_blameless(frame->rst_stream.error_code) && !guard_take(&h->guard, GUARD_FAULT))
		return http_session_blame(h, HTTP_ENHANCE_YOUR_CALM) == 0
			       ? 0
			       : NGHTTP2_ERR_CALLBACK_FAILURE;
	if (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA)
		guard_sent(&h->guard);
	if (h->side != HTTP_SERVER || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) ||
	    (frame->hd.type != NGHTTP2_HEADERS && frame->hd.type != NGHTTP2_DATA))
		return 0;
	s = http_find(ng, frame->hd.stream_id);
	if (!s || s->ended)
		return 0;
	return nghttp2_submit_rst_stream(ng, NGHTTP2_FLAG_NONE, s->id, NGHTTP2_NO_ERROR);
}

static int http_submit_trailers(struct http_stream *s)
{
	struct http_field fields[HTTP_FIELDS_OUT_MAX];
	nghttp2_nv nv[HTTP_FIELDS_OUT_MAX];
	const char *p = s->trailers;
	size_t n;

	for (n = 0; n < s->n_trailers; n++) {
		fields[n].name = p;
		p += strlen(p) + 1;
		fields[n].value = p;
		p += strlen(p) + 1;
	}
	return nghttp2_submit_trailer(s->session->ng, s->id, nv,
				      http_fields_convert(nv, fields, n));
}

/* Says how much of the queue goes into the next frame; http_send_data() takes it from there. */
static ssize_t http_read_queue(nghttp2_session *ng, int32_t id, uint8_t *to, size_t len,
			       uint32_t *flags, nghttp2_data_source *source, void *userdata)
{
	struct http_stream *s = source->ptr;
	size_t n = MIN(len, s->queue.len - s->taken);

	if (n == 0 && !s->finished) {
		s->deferred = true;
		return NGHTTP2_ERR_DEFERRED;
	}
	*flags |= NGHTTP2_DATA_FLAG_NO_COPY;
	if (s->finished && s->queue.len - s->taken == n) {
		*flags |= NGHTTP2_DATA_FLAG_EOF;
		if (s->n_trailers) {
			*flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
			if (http_submit_trailers(s) != 0)
				return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
		}
	}
	return (ssize_t)n;
}

/* Follows http_read_queue() at once, so the queue still holds what that has seen. We never pad. */
static int http_send_data(nghttp2_session *ng, nghttp2_frame *frame, const uint8_t *head,
			  size_t len, nghttp2_data_source *source, void *userdata)
{
	struct http_session *h = userdata;
	struct http_stream *s = source->ptr;

	if (http_out_add(h->out, head, HTTP_FRAME_HEAD) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (len && http_out_lend(h->out, buf_data(&s->queue) + s->taken, len) < 0)
		return NGHTTP2_ERR_CALLBACK_FAILURE;
	if (len && list_empty(&s->taker))
		list_add_tail(&h->taken, &s->taker);
	s->taken += len;
	return h->out->len < h->out_max ? 0 : NGHTTP2_ERR_PAUSE;
}

/* ---- sessions ---- */

static void http_option_freep(nghttp2_option **o)
{
	nghttp2_option_del(*o);
}

static void http_callbacks_freep(nghttp2_session_callbacks **c)
{
	nghttp2_session_callbacks_del(*c);
}

static int http_session_open(struct http_session *h)
{
	_cleanup_(http_option_freep) nghttp2_option *o = NULL;
	_cleanup_(http_callbacks_freep) nghttp2_session_callbacks *c = NULL;

	if (nghttp2_option_new(&o) != 0 || nghttp2_session_callbacks_new(&c) != 0)
		return -ENOMEM;
	nghttp2_option_set_no_auto_window_update(o, 1);
	nghttp2_option_set_no_closed_streams(o, 1);
	nghttp2_option_set_max_outbound_ack(o, HTTP_ACKS_MAX);
	nghttp2_option_set_stream_reset_rate_limit(o, HTTP_RESETS_BURST, HTTP_RESETS_RATE);
	nghttp2_option_set_max_continuations(o, HTTP_CONTINUATIONS_MAX);

	nghttp2_session_callbacks_set_on_begin_headers_callback(c, http_on_begin_headers);
	nghttp2_session_callbacks_set_on_header_callback(c, http_on_header);
	nghttp2_session_callbacks_set_on_frame_recv_callback(c, http_on_frame);
	nghttp2_session_callbacks_set_on_data_chunk_recv_callback(c, http_on_data);
	nghttp2_session_callbacks_set_on_stream_close_callback(c, http_on_close);
	nghttp2_session_callbacks_set_on_frame_send_callback(c, http_on_frame_sent);
	nghttp2_session_callbacks_set_send_data_callback(c, http_send_data);
	if (h->side == HTTP_SERVER)
		return nghttp2_session_server_new2(&h->ng, c, h, o) == 0 ? 0 : -ENOMEM;
	return nghttp2_session_client_new2(&h->ng, c, h, o) == 0 ? 0 : -ENOMEM;
}

static int http_session_settle(struct http_session *h)
{
	static const nghttp2_settings_entry settings[] = {
		{ NGHTTP2_SETTINGS_ENABLE_PUSH, 0 }, /* clients only, so first */
		{ NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, HTTP_STREAMS_MAX },
		{ NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, HTTP_WINDOW },
		{ NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, HTTP_FIELDS_MAX },
	};
	size_t skip = h->side == HTTP_SERVER ? 1 : 0;

	if (nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, settings + skip,
				    ARRAY_SIZE(settings) - skip) != 0)
		return -ENOMEM;
	if (nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0,
						  (int32_t)HTTP_SESSION_WINDOW) != 0)
		return -ENOMEM;
	return 0;
}

static void http_session_freep(struct http_session **h)
{
	*h = http_session_free(*h);
}

int http_session_new(struct http_session **ret, enum http_side side, const struct http_ops *ops,
		     void *userdata)
{
	_cleanup_(http_session_freep) struct http_session *h = malloc(sizeof(*h));
	int r;

	if (!h)
		return -ENOMEM;
	*h = (struct http_session){
		.side = side,
		.ops = ops,
		.userdata = userdata,
		/* The preface of a client is no frame. */
		.left = side == HTTP_SERVER ? NGHTTP2_CLIENT_MAGIC_LEN : 0,
	};
	list_init(&h->streams);
	list_init(&h->drained);
	list_init(&h->taken);
	guard_init(&h->guard);
	r = http_session_open(h);
	if (r < 0)
		return r;
	r = http_session_settle(h);
	if (r < 0)
		return r;
	*ret = TAKE_PTR(h);
	return 0;
}

struct http_session *http_session_free(struct http_session *h)
{
	struct http_stream *s;

	if (!h)
		return NULL;
	h->out = NULL;
	for (;;) {
		s = list_first(&h->streams, struct http_stream, member);
		if (!s)
			break;
		/* Without this nghttp2 would hand out the freed stream once more. */
		if (h->ng)
			(void)nghttp2_session_set_stream_user_data(h->ng, s->id, NULL);
		http_stream_close(s, HTTP_CANCEL);
	}
	nghttp2_session_del(h->ng);
	free(h);
	return NULL;
}

int http_session_widen(struct http_session *h)
{
	static const nghttp2_settings_entry wide = { NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE,
						     HTTP_WINDOW_WIDE };

	if (nghttp2_submit_settings(h->ng, NGHTTP2_FLAG_NONE, &wide, 1) != 0 ||
	    nghttp2_session_set_local_window_size(h->ng, NGHTTP2_FLAG_NONE, 0,
						  (int32_t)HTTP_WINDOW_WIDE) != 0)
		return -ENOMEM;
	return 0;
}

void *http_session_userdata(const struct http_session *h)
{
	return h->userdata;
}

static int http_errno(ssize_t r)
{
	return r == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPROTO;
}

/* Looks at the head of a frame before nghttp2 does, which drops some without a word to us. */
static int http_session_check(struct http_session *h, size_t length)
{
	const uint8_t *head = h->head;
	int32_t id = (int32_t)((uint32_t)(head[5] & 0x7f) << 24 | (uint32_t)head[6] << 16 |
			       (uint32_t)head[7] << 8 | head[8]);
	enum guard_kind kind = guard_kind_of(head[3], head[4], length);
	uint32_t code = HTTP_NO_ERROR;

	if (kind != GUARD_KIND_COUNT && !guard_take(&h->guard, kind))
		return http_session_blame(h, HTTP_ENHANCE_YOUR_CALM);
	if (h->side != HTTP_SERVER)
		return 0;
	if (head[3] == NGHTTP2_HEADERS)
		code = guard_headers(&h->guard, id, http_find(h->ng, id) != NULL);
	else if (head[3] == NGHTTP2_DATA && !http_find(h->ng, id))
		code = guard_data(&h->guard, id);
	return code == HTTP_NO_ERROR ? 0 : http_session_blame(h, code);
}

/* How many of the bytes go on to nghttp2 together: at most to the end of a frame, whose head was
 * looked at. */
static int http_session_scan(struct http_session *h, const uint8_t *data, size_t len, size_t *ret)
{
	size_t n = 0, more;
	int r = 0;

	if (h->left == 0) {
		n = MIN(sizeof(h->head) - h->n_head, len);
		memcpy(h->head + h->n_head, data, n);
		h->n_head += n;
	}
	if (h->n_head == sizeof(h->head)) {
		h->n_head = 0;
		h->left = (size_t)h->head[0] << 16 | (size_t)h->head[1] << 8 | h->head[2];
		r = http_session_check(h, h->left);
	}
	more = MIN(h->left, len - n);
	h->left -= more;
	*ret = n + more;
	return r;
}

int http_session_receive(struct http_session *h, const uint8_t *data, size_t len)
{
	size_t n;
	ssize_t r;

	while (len > 0 && !h->over) {
		r = http_session_scan(h, data, len, &n);
		if (r == 0 && !h->over)
			r = nghttp2_session_mem_recv(h->ng, data, n);
		if (r < 0)
			return http_errno(r);
		data += n;
		len -= n;
	}
	return 0;
}

static void http_session_run_drained(struct http_session *h)
{
	struct http_stream *s;

	for (;;) {
		s = list_first(&h->drained, struct http_stream, drained);
		if (!s)
			return;
		list_remove(&s->drained);
		if (s->data)
			h->ops->drain(s);
	}
}

int http_session_pull(struct http_session *h, struct http_out *out, size_t max)
{
	const uint8_t *data;
	ssize_t n;
	int r;

	assert(!h->out);
	h->out = out;
	h->out_max = max;
	while (out->len < max) {
		n = nghttp2_session_mem_send(h->ng, &data);
		if (n < 0)
			return http_errno(n);
		if (n == 0)
			break;
		r = http_out_add(out, data, (size_t)n);
		if (r < 0)
			return r;
	}
	return h->out_lost ? -ENOMEM : 0;
}

static void http_stream_sent(struct http_stream *s)
{
	struct http_session *h = s->session;

	buf_consume(&s->queue, s->taken);
	h->queued -= s->taken;
	s->taken = 0;
	if (!s->full || s->queue.len > HTTP_QUEUE_LOW)
		return;
	s->full = false;
	if (s->data && list_empty(&s->drained))
		list_add_tail(&h->drained, &s->drained);
}

void http_session_pulled(struct http_session *h)
{
	struct http_stream *s;

	h->out = NULL;
	for (;;) {
		s = list_first(&h->taken, struct http_stream, taker);
		if (!s)
			break;
		list_remove(&s->taker);
		http_stream_sent(s);
	}
	http_session_run_drained(h);
}

bool http_session_wants_write(const struct http_session *h)
{
	return nghttp2_session_want_write(h->ng) != 0;
}

size_t http_session_queued(const struct http_session *h)
{
	return h->queued;
}

bool http_session_alive(const struct http_session *h)
{
	return nghttp2_session_want_read(h->ng) != 0 || nghttp2_session_want_write(h->ng) != 0;
}

bool http_session_accepts_requests(const struct http_session *h)
{
	return nghttp2_session_check_request_allowed(h->ng) != 0;
}

bool http_session_is_idle(const struct http_session *h)
{
	return list_empty(&h->streams);
}

void http_session_goaway(struct http_session *h)
{
	/* Without memory for the frame the peer only learns of it when the connection closes. */
	(void)nghttp2_submit_goaway(h->ng, NGHTTP2_FLAG_NONE,
				    nghttp2_session_get_last_proc_stream_id(h->ng),
				    NGHTTP2_NO_ERROR, NULL, 0);
}

void http_session_ping(struct http_session *h)
{
	/* Without memory for the frame the peer is asked in vain. */
	(void)nghttp2_submit_ping(h->ng, NGHTTP2_FLAG_NONE, NULL);
}

int http_session_request(struct http_session *h, const struct http_field *fields, size_t n,
			 void *data, struct http_stream **ret)
{
	nghttp2_nv nv[HTTP_FIELDS_OUT_MAX];
	nghttp2_data_provider provider = { .read_callback = http_read_queue };
	struct http_stream *s;
	int32_t id;

	if (!http_session_accepts_requests(h))
		return -EPIPE;
	s = http_stream_new(h);
	if (!s)
		return -ENOMEM;
	s->data = data;
	provider.source.ptr = s;
	id = nghttp2_submit_request(h->ng, NULL, nv, http_fields_convert(nv, fields, n), &provider,
				    s);
	if (id < 0) {
		http_stream_free(s);
		return id == NGHTTP2_ERR_NOMEM ? -ENOMEM : -EPIPE;
	}
	s->id = id;
	*ret = s;
	return 0;
}

/* ---- streams ---- */

void http_stream_attach(struct http_stream *s, void *data)
{
	s->data = data;
}

void *http_stream_data(const struct http_stream *s)
{
	return s->data;
}

struct http_session *http_stream_session(const struct http_stream *s)
{
	return s->session;
}

void http_stream_detach(struct http_stream *s)
{
	s->data = NULL;
}

bool http_stream_oversized(const struct http_stream *s)
{
	return s->oversized;
}

static void http_stream_wake(struct http_stream *s)
{
	if (!s->deferred)
		return;
	s->deferred = false;
	/* The only failures are those of a stream that is closing anyway. */
	http_session_noted(s->session, nghttp2_session_resume_data(s->session->ng, s->id));
}

int http_stream_respond(struct http_stream *s, const struct http_field *fields, size_t n, bool end)
{
	nghttp2_nv nv[HTTP_FIELDS_OUT_MAX];
	nghttp2_data_provider provider = { .source.ptr = s, .read_callback = http_read_queue };

	if (nghttp2_submit_response(s->session->ng, s->id, nv, http_fields_convert(nv, fields, n),
				    end ? NULL : &provider) != 0)
		return -ENOMEM;
	s->finished = end;
	return 0;
}

int http_stream_reserve(struct http_stream *s, size_t n, uint8_t **ret)
{
	assert(!s->finished);
	if (n > HTTP_QUEUE_MAX || s->session->queued > HTTP_QUEUE_MAX - n)
		return -ENOBUFS;
	/* The queue may move. */
	if (s->taken && http_out_own(s->session->out) < 0)
		return -ENOMEM;
	return buf_reserve(&s->queue, n, ret);
}

void http_stream_commit(struct http_stream *s, size_t n)
{
	buf_added(&s->queue, n);
	s->session->queued += n;
	if (s->queue.len >= HTTP_QUEUE_HIGH)
		s->full = true;
	http_stream_wake(s);
}

int http_stream_finish(struct http_stream *s, const struct http_field *trailers, size_t n)
{
	struct buf packed = BUF_INIT;
	int r = 0;

	assert(!s->finished && n <= HTTP_FIELDS_OUT_MAX);
	for (size_t i = 0; i < n && r == 0; i++) {
		r = buf_add(&packed, trailers[i].name, strlen(trailers[i].name) + 1);
		if (r == 0)
			r = buf_add(&packed, trailers[i].value, strlen(trailers[i].value) + 1);
	}
	if (r < 0) {
		buf_done(&packed);
		return r;
	}
	s->trailers = (char *)packed.base;
	s->n_trailers = n;
	s->finished = true;
	http_stream_wake(s);
	return 0;
}

void http_stream_reset(struct http_stream *s, uint32_t code)
{
	http_stream_drop_queue(s);
	http_session_noted(s->session, nghttp2_submit_rst_stream(s->session->ng, NGHTTP2_FLAG_NONE,
								 s->id, code));
}

void http_stream_consumed(struct http_stream *s, size_t n)
{
	if (n && !s->ended)
		http_session_noted(s->session,
				   nghttp2_session_consume_stream(s->session->ng, s->id, n));
}

size_t http_stream_queued(const struct http_stream *s)
{
	return s->queue.len;
}

bool http_stream_writable(const struct http_stream *s)
{
	return !s->full && !s->finished;
}
