/* SPDX-License-Identifier: Apache-2.0 */
#include "registry/transfer.h"

#include <assert.h>
#include <curl/curl.h>
#include <errno.h>
#include <openssl/ssl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "registry/header.h"
#include "registry/limits.h"
#include "wire/message/fetchmsg.h"

#define TRANSFER_BUFFER (256L << 10)

/* ---- headers of the answer ---- */

static void transfer_take_text(char *to, size_t size, const char *value)
{
	/* What does not fit is as good as not there: it is checked by whoever needs it. */
	if (!*to && str_is_clean(value) && str_copy(to, size, value) < 0)
		*to = '\0';
}

static int transfer_take_length(struct transfer_head *h, const char *value, struct error *err)
{
	h->has_length = header_number(value, FETCH_BYTES_MAX, &h->length);
	return h->has_length ? 0
			     : error_refuse(err, ERROR_INVALID, "Content-Length: \"%.40s\"", value);
}

static int transfer_take_challenge(struct transfer_head *h, const char *value, struct error *err)
{
	h->challenged = true;
	return challenge_add(&h->challenge, value, err);
}

static int transfer_header(struct transfer_head *h, const char *name, const char *value,
			   struct error *err)
{
	const struct {
		const char *name;
		char *to;
		size_t size;
	} texts[] = {
		{ "content-type", h->content_type, sizeof(h->content_type) },
		{ "docker-content-digest", h->digest, sizeof(h->digest) },
		{ "location", h->location, sizeof(h->location) },
		{ "range", h->range, sizeof(h->range) },
		{ "content-range", h->content_range, sizeof(h->content_range) },
		{ "retry-after", h->retry_after, sizeof(h->retry_after) },
		{ "oci-chunk-min-length", h->upload_minimum, sizeof(h->upload_minimum) },
		{ "oci-subject", h->subject, sizeof(h->subject) },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++)
		if (header_is(name, texts[i].name))
			transfer_take_text(texts[i].to, texts[i].size, value);
	if (header_is(name, "link") && !*h->next)
		(void)header_next_link(value, h->next, sizeof(h->next));
	if (header_is(name, "content-length"))
		return transfer_take_length(h, value, err);
	if (header_is(name, "www-authenticate") && h->status == 401)
		return transfer_take_challenge(h, value, err);
	return 0;
}

static int transfer_header_line(struct transfer *t, char *line, struct error *err)
{
	char *colon = strchr(line, ':');
	char *value, *end;
	unsigned status;

	if (str_has_prefix(line, "HTTP/")) {
		const char *space = strchr(line, ' ');
		uint64_t number = 0;
		char digits[4] = "";

		/* That of an interim answer (1xx) is followed by another. */
		if (space)
			(void)str_printf(digits, sizeof(digits), "%.3s", space + 1);
		if (!header_number(digits, 999, &number))
			return error_refuse(err, ERROR_INVALID, "no status in the answer");
		status = (unsigned)number;
		t->head = (struct transfer_head){ .status = status };
		return 0;
	}
	if (!colon)
		return 0;
	*colon = '\0';
	value = colon + 1 + strspn(colon + 1, " \t");
	end = value + strlen(value);
	while (end > value && strchr(" \t\r\n", end[-1]))
		*--end = '\0';
	return transfer_header(&t->head, line, value, err);
}

static int transfer_fail(struct transfer *t, int r, const struct error *err)
{
	if (!t->err.code)
		t->err = *err;
	if (!t->err.code)
		t->err.code = r;
	t->fault = TRANSFER_FAULT_OURS;
	return r;
}

/* A whole line each time, as curl promises. */
static size_t transfer_on_header(char *data, size_t size, size_t n, void *userdata)
{
	struct transfer *t = userdata;
	struct error err = ERROR_INIT;
	char line[URL_SIZE + 64];
	int r = 0;

	t->n_head += n;
	if (t->n_head > REGISTRY_HEADERS_MAX)
		r = error_refuse(&err, ERROR_EXHAUSTED,
				 "the answer has more than %d bytes of headers",
				 REGISTRY_HEADERS_MAX);
	else if (n < sizeof(line) && !memchr(data, '\0', n)) {
		memcpy(line, data, n);
		line[n] = '\0';
		r = transfer_header_line(t, line, &err);
	}
	if (r < 0)
		(void)transfer_fail(t, r, &err);
	return r < 0 ? 0 : n;
}

static int transfer_begin(struct transfer *t, struct error *err)
{
	if (t->begun)
		return 0;
	t->begun = true;
	return t->ops->on_head(t, err);
}

static size_t transfer_on_data(char *data, size_t size, size_t n, void *userdata)
{
	struct transfer *t = userdata;
	struct error err = ERROR_INIT;
	int r;

	r = transfer_begin(t, &err);
	if (r == 0)
		r = t->ops->on_data(t, data, n, &err);
	if (r < 0)
		(void)transfer_fail(t, r, &err);
	return r < 0 ? 0 : n;
}

/* ---- the body of the request ---- */

static size_t transfer_read(char *to, size_t size, size_t n, void *userdata)
{
	struct transfer *t = userdata;
	size_t len = (size_t)MIN((uint64_t)size * n, t->body_left);
	ssize_t got = (ssize_t)len;

	if (len == 0)
		return 0;
	if (t->body_fd >= 0) {
		do {
			got = sysio_pread(t->body_fd, to, len, (off_t)t->body_at);
		} while (got < 0 && errno == EINTR);
	} else {
		memcpy(to, t->body + t->body_at, len);
	}
	if (got <= 0) {
		struct error err = ERROR_INIT;

		(void)error_set(&err, got < 0 ? -errno : -EIO, "read what is to be sent");
		(void)transfer_fail(t, err.code, &err);
		return CURL_READFUNC_ABORT;
	}
	t->body_at += (uint64_t)got;
	t->body_left -= (uint64_t)got;
	t->n_sent += (uint64_t)got;
	return (size_t)got;
}

/* Where a connection that was kept turns out to be closed, curl begins again. */
static int transfer_seek(void *userdata, curl_off_t offset, int origin)
{
	struct transfer *t = userdata;

	if (origin != SEEK_SET || offset < 0 || (uint64_t)offset > t->body_len)
		return CURL_SEEKFUNC_FAIL;
	t->body_at = t->body_begin + (uint64_t)offset;
	t->body_left = t->body_len - (uint64_t)offset;
	t->n_sent = (uint64_t)offset;
	return CURL_SEEKFUNC_OK;
}

/* ---- sockets ---- */

/*
 * Should: keep a URL that a stranger wrote from reaching what only this machine may reach, also
 * where a name of his leads there.
 */
static curl_socket_t transfer_socket(void *userdata, curlsocktype purpose, struct curl_sockaddr *a)
{
	struct transfer *t = userdata;

	if (t->stranger && !*t->proxy) {
		enum url_reach reach = url_reach_of(&a->addr, a->addrlen);

		if (reach == URL_LINK_LOCAL || (reach == URL_LOOPBACK && !t->loopback_ok)) {
			t->kept_out = true;
			return CURL_SOCKET_BAD;
		}
	}
	return sysio_socket(a->family, a->socktype | SOCK_CLOEXEC, a->protocol);
}

/* ---- start ---- */

static struct curl_blob transfer_blob(const struct buf *b)
{
	/* Copied by curl; it only reads it. */
	return (struct curl_blob){ .data = b->base + b->head,
				   .len = b->len,
				   .flags = CURL_BLOB_COPY };
}

static CURLcode transfer_set_trust(CURL *c, const struct transfer_request *q)
{
	const struct endpoint *e = q->endpoint;
	bool own = !q->stranger;
	struct curl_blob cert = transfer_blob(&e->cert), key = transfer_blob(&e->key);
	_cleanup_(buf_done) struct buf all = BUF_INIT;
	CURLcode code = CURLE_OK;

	if (!q->url->tls)
		return CURLE_OK;
	code = curl_easy_setopt(c, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (code)
		return code;
	if (q->system_ca->len && buf_add(&all, buf_data(q->system_ca), q->system_ca->len) < 0)
		return CURLE_OUT_OF_MEMORY;
	if (e->ca.len && buf_add(&all, buf_data(&e->ca), e->ca.len) < 0)
		return CURLE_OUT_OF_MEMORY;
	if (all.len) {
		struct curl_blob ca = transfer_blob(&all);

		code = curl_easy_setopt(c, CURLOPT_CAINFO_BLOB, &ca);
	}
	if (!code && own && e->insecure)
		code = curl_easy_setopt(c, CURLOPT_SSL_VERIFYPEER, 0L);
	if (!code && own && e->insecure)
		code = curl_easy_setopt(c, CURLOPT_SSL_VERIFYHOST, 0L);
	if (!code && own && e->cert.len)
		code = curl_easy_setopt(c, CURLOPT_SSLCERT_BLOB, &cert);
	if (!code && own && e->key.len)
		code = curl_easy_setopt(c, CURLOPT_SSLKEY_BLOB, &key);
	return code;
}

static CURLcode transfer_set_limits(CURL *c, const struct transfer_request *q)
{
	uint32_t connect = q->endpoint->dial_ms ? q->endpoint->dial_ms : q->connect_ms;
	CURLcode code;

	code = curl_easy_setopt(c, CURLOPT_CONNECTTIMEOUT_MS, (long)connect);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_LOW_SPEED_LIMIT, (long)MAX(q->min_rate, 1U));
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_LOW_SPEED_TIME,
					((long)q->stall_ms + 999) / 1000);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_TIMEOUT_MS, (long)q->total_ms);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_BUFFERSIZE, TRANSFER_BUFFER);
	return code;
}

/* Host and port of "[scheme://][user:password@]host:port[/]". */
static void transfer_name_proxy(struct transfer *t, const char *proxy)
{
	const char *from = strstr(proxy, "://");
	const char *host = from ? from + 3 : proxy;
	size_t len = strcspn(host, "/?#");
	const char *at = memrchr(host, '@', len);

	if (at) {
		len -= (size_t)(at + 1 - host);
		host = at + 1;
	}
	if (len == 0 || str_printf(t->proxy, sizeof(t->proxy), "%.*s", (int)len, host) < 0)
		(void)str_copy(t->proxy, sizeof(t->proxy), "of the environment");
}

static CURLcode transfer_set_proxy(CURL *c, struct transfer *t, const struct transfer_request *q)
{
	const char *proxy = q->proxy ?: "";
	CURLcode code;

	if (*proxy)
		transfer_name_proxy(t, proxy);
	/* "" keeps curl from its environment. */
	code = curl_easy_setopt(c, CURLOPT_PROXY, proxy);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_NOPROXY, "");
	return code;
}

static CURLcode transfer_set_body(CURL *c, struct transfer *t, const struct transfer_request *q)
{
	CURLcode code;

	if (str_eq(q->method, "HEAD"))
		return curl_easy_setopt(c, CURLOPT_NOBODY, 1L);
	if (!q->has_body)
		return CURLE_OK;
	t->body_fd = q->body_fd;
	t->body = q->body;
	t->body_at = t->body_begin = q->body_at;
	t->body_left = t->body_len = q->body_len;
	code = curl_easy_setopt(c, CURLOPT_UPLOAD, 1L);
	/* On a kept connection that ends without an answer curl would send all of it again by
	 * itself, behind what was taken; who uploads asks how far that is. */
	if (!code && q->body_fd >= 0)
		code = curl_easy_setopt(c, CURLOPT_FRESH_CONNECT, 1L);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_INFILESIZE_LARGE, (curl_off_t)q->body_len);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_UPLOAD_BUFFERSIZE, TRANSFER_BUFFER);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_READFUNCTION, transfer_read);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_READDATA, t);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_SEEKFUNCTION, transfer_seek);
	return code ? code : curl_easy_setopt(c, CURLOPT_SEEKDATA, t);
}

static CURLcode transfer_set_calls(CURL *c, struct transfer *t)
{
	CURLcode code;

	code = curl_easy_setopt(c, CURLOPT_PRIVATE, t);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_ERRORBUFFER, t->text);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_HEADERFUNCTION, transfer_on_header);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_HEADERDATA, t);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_WRITEFUNCTION, transfer_on_data);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_WRITEDATA, t);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_OPENSOCKETFUNCTION, transfer_socket);
	return code ? code : curl_easy_setopt(c, CURLOPT_OPENSOCKETDATA, t);
}

static CURLcode transfer_set_request(CURL *c, struct transfer *t, const struct transfer_request *q)
{
	struct curl_slist *list = NULL;
	char url[URL_SIZE];
	CURLcode code;

	for (char *const *h = q->headers; h && *h; h++) {
		struct curl_slist *longer = curl_slist_append(list, *h);

		if (!longer) {
			curl_slist_free_all(list);
			return CURLE_OUT_OF_MEMORY;
		}
		list = longer;
	}
	t->headers = list;
	url_format(q->url, url);
	code = curl_easy_setopt(c, CURLOPT_URL, url);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_CUSTOMREQUEST, q->method);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_HTTPHEADER, list);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_USERAGENT, "nacre/" NACRE_VERSION);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_PROTOCOLS_STR, q->url->tls ? "https" : "http");
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_HTTP_VERSION, CURL_HTTP_VERSION_2TLS);
	/* Signals are the whole program's. The path is what was checked, dots and all. */
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_NOSIGNAL, 1L);
	if (!code)
		code = curl_easy_setopt(c, CURLOPT_SUPPRESS_CONNECT_HEADERS, 1L);
	return code ? code : curl_easy_setopt(c, CURLOPT_PATH_AS_IS, 1L);
}

int transfer_start(struct transfer *t, struct transfers *all, const struct transfer_request *q,
		   const struct transfer_ops *ops, struct error *err)
{
	CURL *c = curl_easy_init();
	CURLcode code;

	*t = (struct transfer){ .ops = ops,
				.owner = all,
				.easy = c,
				.body_fd = -1,
				.stranger = q->stranger,
				.loopback_ok = q->loopback_ok,
				.err = ERROR_INIT };
	if (!c)
		return error_set(err, -ENOMEM, "start a transfer");
	code = transfer_set_request(c, t, q);
	if (!code)
		code = transfer_set_calls(c, t);
	if (!code)
		code = transfer_set_limits(c, q);
	if (!code)
		code = transfer_set_proxy(c, t, q);
	if (!code)
		code = transfer_set_trust(c, q);
	if (!code)
		code = transfer_set_body(c, t, q);
	if (code || curl_multi_add_handle(all->multi, c) != CURLM_OK) {
		curl_slist_free_all(t->headers);
		curl_easy_cleanup(c);
		t->easy = NULL;
		t->headers = NULL;
		return error_set(err, code == CURLE_OUT_OF_MEMORY ? -ENOMEM : -EIO,
				 "start a transfer (%s)", curl_easy_strerror(code));
	}
	all->n++;
	return 0;
}

void transfer_stop(struct transfer *t)
{
	if (!t->easy)
		return;
	(void)curl_multi_remove_handle(t->owner->multi, t->easy);
	curl_easy_cleanup(t->easy);
	curl_slist_free_all(t->headers);
	t->easy = NULL;
	t->headers = NULL;
	t->owner->n--;
}

/* ---- the end ---- */

/* What TLS says no to it says no to again; a connection that ends meanwhile may not. */
static bool transfer_is_alert(const struct transfer *t)
{
	return strstr(t->text, "SSL routines") && !strstr(t->text, "unexpected eof");
}

static enum transfer_fault transfer_fault_of(const struct transfer *t, CURLcode code)
{
	switch ((int)code) {
	case CURLE_PEER_FAILED_VERIFICATION:
	case CURLE_SSL_CERTPROBLEM:
	case CURLE_SSL_CACERT_BADFILE:
	case CURLE_SSL_ISSUER_ERROR:
		return TRANSFER_FAULT_TRUST;
	case CURLE_SSL_CONNECT_ERROR:
		return transfer_is_alert(t) ? TRANSFER_FAULT_TRUST : TRANSFER_FAULT_CONNECT;
	case CURLE_OUT_OF_MEMORY:
		return TRANSFER_FAULT_OURS;
	case CURLE_COULDNT_RESOLVE_HOST:
	case CURLE_COULDNT_RESOLVE_PROXY:
	case CURLE_COULDNT_CONNECT:
	case CURLE_PROXY:
		return TRANSFER_FAULT_CONNECT;
	default:
		/* With TLS 1.3 a server may refuse our certificate behind the handshake. */
		if (!t->head.status && transfer_is_alert(t))
			return TRANSFER_FAULT_TRUST;
		return t->head.status ? TRANSFER_FAULT_CUT : TRANSFER_FAULT_CONNECT;
	}
}

/* curl keeps to itself why nobody could be connected to. */
static const char *transfer_reason(const struct transfer *t, CURLcode code)
{
	long number = 0;

	if (code != CURLE_COULDNT_CONNECT ||
	    curl_easy_getinfo(t->easy, CURLINFO_OS_ERRNO, &number) != CURLE_OK)
		return NULL;
	return number > 0 ? strerrordesc_np((int)number) : NULL;
}

static void transfer_judge(struct transfer *t, CURLcode code)
{
	const char *what, *why;
	bool late;

	if (t->err.code)
		return;
	if (code == CURLE_OK) {
		int r = transfer_begin(t, &t->err);

		if (r < 0)
			(void)transfer_fail(t, r, &t->err);
		return;
	}
	t->fault = transfer_fault_of(t, code);
	if (code == CURLE_OUT_OF_MEMORY) {
		(void)error_set(&t->err, -ENOMEM, "transfer");
		return;
	}
	what = *t->text ? t->text : curl_easy_strerror(code);
	if (code == CURLE_COULDNT_CONNECT && t->kept_out) {
		t->fault = TRANSFER_FAULT_TRUST;
		(void)error_refuse(&t->err, ERROR_DENIED,
				   "%.200s: it is an address of this machine or link", what);
		return;
	}
	why = transfer_reason(t, code);
	late = code == CURLE_OPERATION_TIMEDOUT;
	(void)error_refuse(&t->err, ERROR_UNAVAILABLE, "%s%.200s%s%s%s%s%s",
			   late ? "no progress (" : "", what, late ? ")" : "", why ? ": " : "",
			   why ?: "", *t->proxy ? ", by the proxy " : "", t->proxy);
}

static unsigned transfers_collect(struct transfers *all)
{
	unsigned n = 0;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(all->multi, &left)) != NULL) {
		CURLcode code = m->data.result;
		struct transfer *t = NULL;
		struct error err;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, (char **)&t);
		transfer_judge(t, code);
		transfer_stop(t);
		err = t->err;
		t->ops->on_end(t, err.code ? &err : NULL);
		n++;
	}
	return n;
}

int transfers_prepare(struct error *err)
{
	/* libssl would read its configuration, and what that names, at its first use. */
	if (OPENSSL_init_ssl(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1 ||
	    curl_global_init(CURL_GLOBAL_DEFAULT) != CURLE_OK)
		return error_set(err, -ENOMEM, "start libcurl");
	return 0;
}

int transfers_init(struct transfers *all, struct error *err)
{
	*all = (struct transfers){ .multi = curl_multi_init() };
	if (!all->multi)
		return error_set(err, -ENOMEM, "start libcurl");
	/* A connection for each download: many of them share no window, and no loss. */
	(void)curl_multi_setopt(all->multi, CURLMOPT_PIPELINING, CURLPIPE_NOTHING);
	return 0;
}

void transfers_done(struct transfers *all)
{
	if (all->multi)
		(void)curl_multi_cleanup(all->multi);
	all->multi = NULL;
}

int transfers_turn(struct transfers *all, int fd, int wait_ms, bool *ret_readable,
		   struct error *err)
{
	struct curl_waitfd other = { .fd = fd, .events = CURL_WAIT_POLLIN };
	CURLMcode code;
	int running;

	code = curl_multi_perform(all->multi, &running);
	/* What has ended may be all that somebody waits for. */
	if (transfers_collect(all) > 0)
		wait_ms = 0;
	if (code == CURLM_OK)
		code = curl_multi_poll(all->multi, &other, fd >= 0 ? 1 : 0, wait_ms, NULL);
	if (code != CURLM_OK)
		return error_set(err, code == CURLM_OUT_OF_MEMORY ? -ENOMEM : -EIO,
				 "transfers (%s)", curl_multi_strerror(code));
	*ret_readable = other.revents != 0;
	return 0;
}
