/* SPDX-License-Identifier: Apache-2.0 */
#include "stream/spdy_dictionary.h"

#include <pthread.h>
#include <string.h>

#include "base/macros.h"

/*
 * Theory of operation. The dictionary is words as headers have them, each behind its length in four
 * bytes, and then text without lengths. It is put together once.
 */

static const char *const dictionary_words[] = {
	"options",
	"head",
	"post",
	"put",
	"delete",
	"trace",
	"accept",
	"accept-charset",
	"accept-encoding",
	"accept-language",
	"accept-ranges",
	"age",
	"allow",
	"authorization",
	"cache-control",
	"connection",
	"content-base",
	"content-encoding",
	"content-language",
	"content-length",
	"content-location",
	"content-md5",
	"content-range",
	"content-type",
	"date",
	"etag",
	"expect",
	"expires",
	"from",
	"host",
	"if-match",
	"if-modified-since",
	"if-none-match",
	"if-range",
	"if-unmodified-since",
	"last-modified",
	"location",
	"max-forwards",
	"pragma",
	"proxy-authenticate",
	"proxy-authorization",
	"range",
	"referer",
	"retry-after",
	"server",
	"te",
	"trailer",
	"transfer-encoding",
	"upgrade",
	"user-agent",
	"vary",
	"via",
	"warning",
	"www-authenticate",
	"method",
	"get",
	"status",
	"200 OK",
	"version",
	"HTTP/1.1",
	"url",
	"public",
	"set-cookie",
	"keep-alive",
	"origin",
};

static const char dictionary_text[] =
	"100101201202205206300302303304305306307402405406407408409410411412413414415416417502504"
	"505203 Non-Authoritative Information204 No Content301 Moved Permanently400 Bad Request"
	"401 Unauthorized403 Forbidden404 Not Found500 Internal Server Error501 Not Implemented"
	"503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec 00:00:00 Mon, "
	"Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,"
	"application/xml,application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age="
	"gzip,deflate,sdchcharset=utf-8charset=iso-8859-1,utf-,*,enq=0.";

static uint8_t dictionary[1536];
static size_t dictionary_len;

static void dictionary_make(void)
{
	uint8_t *to = dictionary;

	for (size_t i = 0; i < ARRAY_SIZE(dictionary_words); i++) {
		size_t n = strlen(dictionary_words[i]);
		const uint8_t head[4] = { 0, 0, 0, (uint8_t)n };

		memcpy(to, head, sizeof(head));
		memcpy(to + sizeof(head), dictionary_words[i], n);
		to += sizeof(head) + n;
	}
	memcpy(to, dictionary_text, sizeof(dictionary_text) - 1);
	dictionary_len = (size_t)(to - dictionary) + sizeof(dictionary_text) - 1;
}

const uint8_t *spdy_dictionary(size_t *ret_len)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	(void)pthread_once(&once, dictionary_make);
	*ret_len = dictionary_len;
	return dictionary;
}
