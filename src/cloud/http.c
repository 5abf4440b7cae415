/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/http.h"

#include <curl/curl.h>
#include <errno.h>
#include <fcntl.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
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

/* In place of all that is checked of a certificate otherwise. */
static int http_on_certificate(X509_STORE_CTX *c, void *userdata)
{
	const uint8_t *pinned = userdata;
	X509 *certificate = X509_STORE_CTX_get0_cert(c);
	uint8_t digest[EVP_MAX_MD_SIZE];
	unsigned len = 0;
	bool same = certificate && X509_digest(certificate, EVP_sha256(), digest, &len) == 1 &&
		    len == HTTP_PIN_SIZE && memcmp(digest, pinned, len) == 0;

	X509_STORE_CTX_set_error(c, same ? X509_V_OK : X509_V_ERR_CERT_UNTRUSTED);
	return same;
}

static CURLcode http_on_tls(CURL *curl, void *ssl_ctx, void *userdata)
{
	(void)curl;
	SSL_CTX_set_verify(ssl_ctx, SSL_VERIFY_PEER, NULL);
	SSL_CTX_set_cert_verify_callback(ssl_ctx, http_on_certificate, userdata);
	return CURLE_OK;
}

/* The check of the server's certificate: a pin, authorities of a file, or those of the system. */
static void http_prepare_trust(const struct http *h)
{
	if (h->pinned) {
		(void)curl_easy_setopt(h->curl, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)curl_easy_setopt(h->curl, CURLOPT_SSL_VERIFYHOST, 0L);
		(void)curl_easy_setopt(h->curl, CURLOPT_SSL_CTX_FUNCTION, http_on_tls);
		(void)curl_easy_setopt(h->curl, CURLOPT_SSL_CTX_DATA, (void *)(uintptr_t)h->pinned);
	} else if (h->authorities && h->authorities->len) {
		struct curl_blob blob = { .data = (void *)(uintptr_t)buf_data(h->authorities),
					  .len = h->authorities->len,
					  .flags = CURL_BLOB_NOCOPY };

		(void)curl_easy_setopt(h->curl, CURLOPT_CAINFO_BLOB, &blob);
	}
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
	http_prepare_trust(h);
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

bool http_header(struct http *h, const char *name, size_t at, char *to, size_t size)
{
	struct curl_header *found;

	return curl_easy_header(h->curl, name, at, CURLH_HEADER, -1, &found) == CURLHE_OK &&
	       str_copy(to, size, found->value) >= 0;
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

int http_open_authorities(struct buf *ret, const char *variable, const char *path,
			  struct error *err)
{
	bool named = *path;
	int r;

	if (!named)
		path = getenv(variable);
	if (str_empty(path))
		path = HTTP_AUTHORITIES;
	r = fd_read_file(AT_FDCWD, path, HTTP_AUTHORITIES_MAX, ret);
	return r < 0 && (named || r != -ENOENT) ? error_set(err, r, "read %s", path) : 0;
}

bool http_read_pin(uint8_t ret[HTTP_PIN_SIZE], const char *text)
{
	for (size_t i = 0; i < HTTP_PIN_SIZE; i++, text += 3) {
		char digits[] = { text[0], text[0] ? text[1] : '\0', '\0' };

		if (strspn(digits, "0123456789abcdefABCDEF") != 2 ||
		    text[2] != (i + 1 < HTTP_PIN_SIZE ? ':' : '\0'))
			return false;
		ret[i] = (uint8_t)strtoul(digits, NULL, 16);
	}
	return true;
}

void http_rest(int *ms)
{
	uint32_t random;

	*ms = *ms ? MIN(*ms * 2, HTTP_PAUSE_MAX_MS) : HTTP_PAUSE_FIRST_MS;
	if (getrandom(&random, sizeof(random), GRND_NONBLOCK) != sizeof(random))
		random = (uint32_t)clock_mono();
	(void)poll(NULL, 0, *ms / 2 + (int)(random % (uint32_t)(*ms / 2 + 1)));
}
