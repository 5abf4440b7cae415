/* SPDX-License-Identifier: Apache-2.0 */

/*
 * What registries and their configuration say, by the first byte: a URL and a Location on it, a
 * challenge, other headers, hosts.toml, small documents. A URL that was taken apart is put together
 * to one that means the same.
 */

#include "base/text/str.h"
#include "fuzz.h"
#include "registry/answer.h"
#include "registry/challenge.h"
#include "registry/header.h"
#include "registry/hosts.h"
#include "registry/url.h"

static void fuzz_url(struct fuzz_input in)
{
	char *base = fuzz_str(fuzz_until(&in, '\n'));
	char *location = fuzz_str(in);
	static char text[URL_SIZE], again[URL_SIZE];
	static struct url u, v;

	if (url_parse(&u, base, NULL) == 0 && url_join(&v, &u, location, NULL) == 0) {
		url_format(&v, text);
		fuzz_need(url_parse(&u, text, NULL) == 0 && url_same_origin(&u, &v));
		url_format(&u, again);
		fuzz_need(str_eq(text, again));
		fuzz_need(url_same_owner(&u, &v) && url_reach(&u) == url_reach(&v));
	}
	free(base);
	free(location);
}

static void fuzz_challenge(struct fuzz_input in)
{
	struct challenge c = { .basic = false };
	char *text = fuzz_str(in);

	(void)challenge_add(&c, text, NULL);
	fuzz_need(c.bearer || (!*c.realm && !*c.service && !*c.scope));
	free(text);
}

static void fuzz_headers(struct fuzz_input in)
{
	char *text = fuzz_str(in);
	struct header_range range;
	char small[64];
	uint64_t n;

	(void)header_next_link(text, small, sizeof(small));
	header_media_type(text, small, sizeof(small));
	fuzz_need(!*small || strchr(small, '/') != NULL);
	if (header_retry_after(text, UINT64_C(784111777000000000), 30000, &n))
		fuzz_need(n <= 30000);
	if (header_content_range(text, &range))
		fuzz_need(range.first <= range.last && range.last < range.total);
	(void)header_upload_range(text, &n);
	free(text);
}

static void fuzz_hosts(struct fuzz_input in)
{
	struct arena arena = ARENA_INIT_LIMIT(1 << 20);
	struct hosts h;

	if (hosts_parse(&h, &arena, (const char *)in.at, in.len, NULL) == 0)
		for (size_t i = 0; i < h.n_entries; i++)
			fuzz_need(h.entries[i].url != NULL && h.entries[i].n_client % 2 == 0);
	arena_done(&arena);
}

static void fuzz_answers(struct fuzz_input in)
{
	struct arena arena = ARENA_INIT_LIMIT(1 << 20);
	char reason[ANSWER_REASON_SIZE];
	struct answer_token token;
	struct answer_tags tags;

	if (answer_token(&token, &arena, in.at, in.len, NULL) == 0)
		fuzz_need(*token.token != '\0' && !strpbrk(token.token, " \r\n"));
	(void)answer_tags(&tags, &arena, in.at, in.len, NULL);
	answer_reason(reason, in.at, in.len);
	fuzz_need(str_is_clean(reason) && str_is_utf8(reason, strlen(reason)));
	arena_done(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static void (*const targets[])(struct fuzz_input in) = { fuzz_url, fuzz_challenge,
								 fuzz_headers, fuzz_hosts,
								 fuzz_answers };
	struct fuzz_input in = { .at = data, .len = size };

	if (size > 0)
		targets[fuzz_byte(&in) % 5](in);
	return 0;
}
