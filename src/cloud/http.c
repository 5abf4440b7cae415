/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/random.h>

#include "base/file/fd.h"
#include "base/text/str.h"
#include "base/time/clock.h"

#define HTTP_CONNECT_MS 10000L
#define HTTP_HEAD_MAX (64 << 10)
#define HTTP_PAUSE_FIRST_MS 100
#define HTTP_PAUSE_MAX_MS 5000
#define HTTP_AUTHORITIES "/etc/ssl/certs/ca-certificates.crt"
#define HTTP_AUTHORITIES_MAX (16 << 20)

struct http_transfer {
	struct buf *body;
	size_t max, n_head;
	bool too_long;
};

int http_begin(struct error *err)
{
	return curl_global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK
		       ? 0
		       : error_set(err, -ENOMEM, "start libcurl");
}

int http_init(struct http *h, const struct buf *authorities, struct error *err)
{
	*h = (struct http){ .curl = curl_easy_init(), .authorities = authorities };
	return h->curl ? 0 : error_set(err, -ENOMEM, "start libcurl");
}

void http_done(struct http *h)
{
	curl_easy_cleanup(h->curl);
	h->curl = NULL;
}

static size_t http_on_body(char *data, size_t size, size_t n, void *userdata)
{
	struct http_transfer *t = userdata;

	n *= size;
	if (n > t->max - t->body->len) {
		t->too_long = true;
		return 0;
	}
	return buf_add(t->body, data, n) == 0 ? n : 0;
}

static size_t http_on_head(char *data, size_t size, size_t n, void *userdata)
{
	struct http_transfer *t = userdata;

	(void)data;
	t->n_head += size * n;
	t->too_long = t->too_long || t->n_head > HTTP_HEAD_MAX;
	return t->too_long ? 0 : size * n;
}

static struct curl_slist *http_headers(const struct http_request *q)
{
	struct curl_slist *list = NULL;

	for (size_t i = 0; i <= q->n_headers; i++) {
		/* libcurl would wait for a word of the server in front of a long body. */
		struct curl_slist *more =
			curl_slist_append(list, i < q->n_headers ? q->headers[i] : "Expect:");

		if (!more) {
			curl_slist_free_all(list);
			return NULL;
		}
		list = more;
	}
	return list;
}

static void http_prepare(const struct http *h, const struct http_request *q,
			 struct http_transfer *t, char *reason)
{
	curl_easy_reset(h->curl);
	(void)curl_easy_setopt(h->curl, CURLOPT_URL, q->url);
	(void)curl_easy_setopt(h->curl, CURLOPT_PROTOCOLS_STR,
			       h->authorities ? "http,https" : "http");
	(void)curl_easy_setopt(h->curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(h->curl, CURLOPT_PROXY, "");
	(void)curl_easy_setopt(h->curl, CURLOPT_FRESH_CONNECT, (long)q->fresh);
	(void)curl_easy_setopt(h->curl, CURLOPT_CONNECTTIMEOUT_MS, HTTP_CONNECT_MS);
	(void)curl_easy_setopt(h->curl, CURLOPT_TIMEOUT_MS, q->timeout_ms);
	(void)curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, reason);
	(void)curl_easy_setopt(h->curl, CURLOPT_USERAGENT, "nacre/" NACRE_VERSION);
	(void)curl_easy_setopt(h->curl, CURLOPT_WRITEFUNCTION, http_on_body);
	(void)curl_easy_setopt(h->curl, CURLOPT_WRITEDATA, t);
	(void)curl_easy_setopt(h->curl, CURLOPT_HEADERFUNCTION, http_on_head);
	(void)curl_easy_setopt(h->curl, CURLOPT_HEADERDATA, t);
	(void)curl_easy_setopt(h->curl, CURLOPT_SSLVERSION, (long)CURL_SSLVERSION_TLSv1_2);
	if (h->authorities && h->authorities->len) {
		struct curl_blob blob = { .data = (void *)(uintptr_t)buf_data(h->authorities),
					  .len = h->authorities->len,
					  .flags = CURL_BLOB_NOCOPY };

		(void)curl_easy_setopt(h->curl, CURLOPT_CAINFO_BLOB, &blob);
	}
	if (str_eq(q->method, "POST")) {
		(void)curl_easy_setopt(h->curl, CURLOPT_POSTFIELDSIZE_LARGE,
				       (curl_off_t)q->body_len);
		(void)curl_easy_setopt(h->curl, CURLOPT_POSTFIELDS, q->body);
	} else if (!str_eq(q->method, "GET")) {
		(void)curl_easy_setopt(h->curl, CURLOPT_CUSTOMREQUEST, q->method);
	}
}

static int64_t http_date(const struct http *h)
{
	struct curl_header *date;

	return curl_easy_header(h->curl, "Date", 0, CURLH_HEADER, -1, &date) == CURLHE_OK
		       ? MAX(curl_getdate(date->value, NULL), 0)
		       : 0;
}

int http_ask(struct http *h, const struct http_request *q, struct http_answer *a, struct buf *body,
	     struct error *err)
{
	struct curl_slist *headers = http_headers(q);
	struct http_transfer t = { .body = body, .max = q->answer_max };
	char reason[CURL_ERROR_SIZE] = "";
	CURLcode code;
	long status = 0;

	if (!headers)
		return error_set(err, -ENOMEM, "ask %.200s", q->url);
	http_prepare(h, q, &t, reason);
	(void)curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, headers);
	code = curl_easy_perform(h->curl);
	(void)curl_easy_getinfo(h->curl, CURLINFO_RESPONSE_CODE, &status);
	(void)curl_easy_setopt(h->curl, CURLOPT_HTTPHEADER, NULL);
	(void)curl_easy_setopt(h->curl, CURLOPT_ERRORBUFFER, NULL);
	curl_slist_free_all(headers);
	if (t.too_long)
		return error_refuse(err, ERROR_UNAVAILABLE, "%.200s answers with too much", q->url);
	if (code != CURLE_OK)
		return error_refuse(err, ERROR_UNAVAILABLE, "%.200s: %s", q->url,
				    *reason ? reason : curl_easy_strerror(code));
	*a = (struct http_answer){ .status = (int)status, .date = http_date(h) };
	return 0;
}

int http_open_endpoint(struct url *ret, const char *text, struct error *err)
{
	int r = url_parse(ret, text, err);

	if (r < 0)
		return error_wrap(err, r, "the endpoint of the cloud");
	if (ret->tls || url_reach(ret) == URL_LOOPBACK)
		return 0;
	return error_refuse(err, ERROR_INVALID,
			    "the endpoint of the cloud, %.200s: keys are shown over https alone, "
			    "and over http to a loopback address",
			    text);
}

int http_open_authorities(struct buf *ret, const char *variable, struct error *err)
{
	const char *path = getenv(variable);
	int r;

	if (str_empty(path))
		path = HTTP_AUTHORITIES;
	r = fd_read_file(AT_FDCWD, path, HTTP_AUTHORITIES_MAX, ret);
	return r < 0 && r != -ENOENT ? error_set(err, r, "read %s", path) : 0;
}

void http_rest(int *ms)
{
	uint32_t random;

	*ms = *ms ? MIN(*ms * 2, HTTP_PAUSE_MAX_MS) : HTTP_PAUSE_FIRST_MS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)clock_mono();
	(void)poll(NULL, 0, *ms / 2 + (int)(random % (uint32_t)(*ms / 2 + 1)));
}
