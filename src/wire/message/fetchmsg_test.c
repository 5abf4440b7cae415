/* SPDX-License-Identifier: Apache-2.0 */
#include "wire/message/fetchmsg.h"

#include <assert.h>
#include <errno.h>

#include "base/text/str.h"
#include "unit.h"

#define HEX "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define DIGEST "sha256:" HEX

static uint8_t packet[FETCHMSG_SIZE_MAX];

static const struct fetchmsg good[] = {
	{ .type = FETCHMSG_READ, .read = { 5, "amd64", "", "1.27", "nginx" } },
	{ .type = FETCHMSG_UNPACK, .unpack = { DIGEST, DIGEST, 1, FETCH_ZSTD, 2, 3, 1 } },
	{ .type = FETCHMSG_BLOB, .blob = { DIGEST, FETCH_BYTES_MAX } },
	{ .type = FETCHMSG_IMAGE, .image = { DIGEST, DIGEST, "me", "/w", "" } },
	{ .type = FETCHMSG_WORD, .word = { FETCH_NAME, "docker.io/library/x:1" } },
	{ .type = FETCHMSG_WORD, .word = { FETCH_ENV, "A=\n\303\244" } },
	{ .type = FETCHMSG_WORD, .word = { FETCH_CMD, "" } },
	{ .type = FETCHMSG_LAYER, .layer = { DIGEST, DIGEST, 7, FETCH_GZIP } },
	{ .type = FETCHMSG_IMAGE_END, .image_end = { 1, FETCH_LAYERS_MAX } },
	{ .type = FETCHMSG_DONE, .done = { 1 } },
	{ .type = FETCHMSG_UNPACKED, .unpacked = { 1, 2, 3 } },
	{ .type = FETCHMSG_ERROR, .error = { ERROR_INVALID, EINVAL, "no" } },
	{ .type = FETCHMSG_PULL,
	  .pull = { "docker.io/library/x:1@" DIGEST, "linux", "arm", "v7", 9, FETCH_PULL_FLAGS,
		    1 } },
	{ .type = FETCHMSG_PUSH, .push = { "localhost:5000/x:1", 0 } },
	{ .type = FETCHMSG_LIST, .list = { "a.b/x:1", FETCH_LIST_TAGS, FETCH_TAGS_MAX, 3 } },
	{ .type = FETCHMSG_NETWORK,
	  .network = { FETCH_CONNECTIONS_MAX, 1, UINT32_MAX, 4, 5, 6, 7 } },
	{ .type = FETCHMSG_PROXY, .proxy = { "", "http://p:3128", "a,.b" } },
	{ .type = FETCHMSG_REGISTRY_DIR, .registry_dir = { "/etc/nacre/certs.d" } },
	{ .type = FETCHMSG_POLICY, .policy = { "/etc/nacre/policy.json" } },
	{ .type = FETCHMSG_ENDPOINT,
	  .endpoint = { "docker.io", "https://m:5000", FETCH_CAN_FLAGS, 1 } },
	{ .type = FETCHMSG_AUTH, .auth = { "a.b:5000", FETCH_AUTH_PASSWORD, "me", "p:w" } },
	{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_PASSWORD, "me", "" } },
	{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_IDENTITY, "", "t" } },
	{ .type = FETCHMSG_MOUNT, .mount = { "a.b/c" } },
	{ .type = FETCHMSG_PUSH_BLOB, .push_blob = { DIGEST, 5, 1 } },
	{ .type = FETCHMSG_GO },
	{ .type = FETCHMSG_RESOLVED, .resolved = { DIGEST, 5, "a/b", "https://a.b" } },
	{ .type = FETCHMSG_REFERRER, .referrer = { DIGEST, 5, "a/b", "", 1, 2 } },
	{ .type = FETCHMSG_CONTENT, .content = { DIGEST, 5, "a/b" } },
	{ .type = FETCHMSG_CONTENT_END, .content_end = { FETCH_CONTENTS_MAX } },
	{ .type = FETCHMSG_FETCH, .fetch = { DIGEST, 5, 5, 1 } },
	{ .type = FETCHMSG_SKIP, .skip = { DIGEST } },
	{ .type = FETCHMSG_PROGRESS, .progress = { DIGEST, 4 } },
	{ .type = FETCHMSG_NOTE, .note = { "mirror a: refused" } },
	{ .type = FETCHMSG_RESTART, .restart = { DIGEST, "another digest" } },
	{ .type = FETCHMSG_PUSHED, .pushed = { DIGEST, FETCH_PUSHED_MOUNTED } },
	{ .type = FETCHMSG_TAG, .tag = { "v1.0_x-Y" } },
	{ .type = FETCHMSG_EXPORT, .export = { FETCH_EXPORT_DOCKER, FETCH_IMAGES_MAX } },
	{ .type = FETCHMSG_EXPORT_IMAGE, .export_image = { DIGEST, DIGEST, "a.b/c:1 a.b/d:2" } },
	{ .type = FETCHMSG_PROFILE, .profile = { UINT64_MAX } },
	{ .type = FETCHMSG_FILTER, .filter = { FETCH_INSNS_MAX, 2 } },
	{ .type = FETCHMSG_CDI },
	{ .type = FETCHMSG_EDITS, .edits = { FETCH_EDITS_MAX } },
	{ .type = FETCHMSG_COPY, .copy = { "a.b/c:1", "d.e/f@" DIGEST, "arm", "v7", 9 } },
	{ .type = FETCHMSG_WANT, .want = { DIGEST, 5 } },
	{ .type = FETCHMSG_MEMORY, .memory = { 5 } },
	{ .type = FETCHMSG_VERIFY, .verify = { "a.b/c:1", DIGEST, "-----\nx", 1 } },
	{ .type = FETCHMSG_SIGNER, .signer = { "/a.pub", DIGEST, "a.b/c" } },
	{ .type = FETCHMSG_ANNOTATION, .annotation = { "a", "b\nc" } },
	{ .type = FETCHMSG_VERDICT, .verdict = { DIGEST, FETCH_VERDICT_REFUSED, "", "no", 0 } },
	{ .type = FETCHMSG_LOGIN, .login = { "a.b:5000" } },
};
static_assert(ARRAY_SIZE(good) == FETCHMSG_TYPE_COUNT + 4,
	      "one of each, of words and of auths three");

static void goes_and_comes(void)
{
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct error err = ERROR_INIT;
		struct fetchmsg m;
		int n = fetchmsg_encode(&good[i], packet, &err);

		CHECK(n > 0);
		CHECK_STR(err.text, "");
		CHECK_INT(fetchmsg_decode(&m, packet, (size_t)n, &err), 0);
		CHECK_INT(m.type, good[i].type);
		if (m.type == FETCHMSG_WORD)
			CHECK_STR(m.word.text, good[i].word.text);
		if (m.type == FETCHMSG_UNPACK) {
			CHECK_STR(m.unpack.diff_id, DIGEST);
			CHECK_INT(m.unpack.max_entries, 3);
			CHECK_INT(m.unpack.compression, FETCH_ZSTD);
			CHECK_INT(m.unpack.follow, 1);
		}
		if (m.type == FETCHMSG_PULL) {
			CHECK_STR(m.pull.variant, "v7");
			CHECK_INT(m.pull.flags, FETCH_PULL_FLAGS);
			CHECK_INT(m.pull.host_flags, 1);
		}
	}
}

static void refuses_filters(void)
{
	const struct fetchmsg none = { .type = FETCHMSG_FILTER, .filter = { 0, 0 } };
	const struct fetchmsg long_one = { .type = FETCHMSG_FILTER,
					   .filter = { FETCH_INSNS_MAX + 1, 0 } };

	CHECK_INT(fetchmsg_encode(&none, packet, NULL), -EINVAL);
	CHECK_INT(fetchmsg_encode(&long_one, packet, NULL), -EINVAL);
}

static void refuses_hosts(void)
{
	static const char *const hosts[] = { "", "a", "a.b/c", "a.b@c", "a.b:x", "A b.c" };

	for (size_t i = 0; i < ARRAY_SIZE(hosts); i++)
		CHECK_INT(fetchmsg_encode(&(struct fetchmsg){ .type = FETCHMSG_LOGIN,
							      .login = { hosts[i] } },
					  packet, NULL),
			  -EINVAL);
}

static void refuses_to_send(void)
{
	static char long_word[FETCH_WORD_MAX + 2];
	const struct fetchmsg longest = { .type = FETCHMSG_WORD, .word = { FETCH_CMD, long_word } };
	const struct fetchmsg bad[] = {
		{ .type = FETCHMSG_READ, .read = { FETCH_BYTES_MAX + 1, "amd64", "", "", "" } },
		{ .type = FETCHMSG_READ, .read = { 1, "amd\n64", "", "", "" } },
		{ .type = FETCHMSG_EXPORT, .export = { FETCH_EXPORT_COUNT, 1 } },
		{ .type = FETCHMSG_EXPORT, .export = { 0, FETCH_IMAGES_MAX + 1 } },
		{ .type = FETCHMSG_EXPORT_IMAGE, .export_image = { DIGEST, DIGEST, "a\nb" } },
		{ .type = FETCHMSG_BLOB, .blob = { "sha256:../../x", 1 } },
		{ .type = FETCHMSG_WORD, .word = { FETCH_LIST_COUNT, "x" } },
		{ .type = FETCHMSG_WORD, .word = { FETCH_NAME, "x" } },
		{ .type = FETCHMSG_WORD, .word = { FETCH_NAME, "docker.io/library/x@" DIGEST } },
		{ .type = FETCHMSG_WORD, .word = { FETCH_ENV, "novalue" } },
		{ .type = FETCHMSG_WORD, .word = { FETCH_ENV, "=x" } },
		{ .type = FETCHMSG_WORD, .word = { FETCH_CMD, "\377" } },
		longest,
		{ .type = FETCHMSG_LAYER, .layer = { DIGEST, DIGEST, 7, FETCH_COMPRESSION_COUNT } },
		{ .type = FETCHMSG_DONE, .done = { FETCH_IMAGES_MAX + 1 } },
		{ .type = FETCHMSG_ERROR, .error = { ERROR_KIND_COUNT, 1, "x" } },
		{ .type = FETCHMSG_ERROR, .error = { ERROR_FAULT, 0, "x" } },
		{ .type = FETCHMSG_ERROR, .error = { ERROR_FAULT, 1, "" } },
		{ .type = FETCHMSG_PULL, .pull = { "x", "linux", "amd64", "", 1, 0, 0 } },
		{ .type = FETCHMSG_PULL, .pull = { "a.b/x:1", "", "amd64", "", 1, 0, 0 } },
		{ .type = FETCHMSG_PULL,
		  .pull = { "a.b/x:1", "linux", "amd64", "", 1, FETCH_PULL_FLAGS + 1, 0 } },
		{ .type = FETCHMSG_PUSH, .push = { "x:1", 0 } },
		{ .type = FETCHMSG_COPY, .copy = { "x:1", "a.b/c:1", "", "", 1 } },
		{ .type = FETCHMSG_COPY, .copy = { "a.b/c:1", "x:1", "", "", 1 } },
		{ .type = FETCHMSG_COPY, .copy = { "a.b/c:1", "a.b/d:1", "", "v7", 1 } },
		{ .type = FETCHMSG_LIST, .list = { "a.b/x:1", FETCH_LISTING_COUNT, 1, 0 } },
		{ .type = FETCHMSG_LIST, .list = { "a.b/x:1", 0, FETCH_TAGS_MAX + 1, 0 } },
		{ .type = FETCHMSG_NETWORK,
		  .network = { FETCH_CONNECTIONS_MAX + 1, 0, 0, 0, 0, 0, 0 } },
		{ .type = FETCHMSG_REGISTRY_DIR, .registry_dir = { "etc" } },
		{ .type = FETCHMSG_POLICY, .policy = { "policy.json" } },
		{ .type = FETCHMSG_ENDPOINT, .endpoint = { "", "https://m", 1, 0 } },
		{ .type = FETCHMSG_ENDPOINT, .endpoint = { "a.b", "https://m", 0, 0 } },
		{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_PASSWORD, "", "s" } },
		{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_TOKEN, "", "" } },
		{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_PASSWORD, "a:b", "s" } },
		{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_PASSWORD, "a", "s\n" } },
		{ .type = FETCHMSG_AUTH, .auth = { "a.b", FETCH_AUTH_TOKEN, "a", "s" } },
		{ .type = FETCHMSG_AUTH, .auth = { "", FETCH_AUTH_TOKEN, "", "s" } },
		{ .type = FETCHMSG_CONTENT_END, .content_end = { FETCH_CONTENTS_MAX + 1 } },
		{ .type = FETCHMSG_FETCH, .fetch = { DIGEST, 5, 6, 0 } },
		{ .type = FETCHMSG_FETCH, .fetch = { DIGEST, 5, 5, 2 } },
		{ .type = FETCHMSG_TAG, .tag = { "" } },
		{ .type = FETCHMSG_TAG, .tag = { "../x" } },
		{ .type = FETCHMSG_TAG, .tag = { "a@" DIGEST } },
		{ .type = FETCHMSG_VERIFY, .verify = { "c:1", "", "", 0 } },
		{ .type = FETCHMSG_VERIFY, .verify = { "a.b/c:1", "sha256:0", "", 0 } },
		{ .type = FETCHMSG_SIGNER, .signer = { "", DIGEST, "a.b/c" } },
		{ .type = FETCHMSG_SIGNER, .signer = { "/a\nb", DIGEST, "a.b/c" } },
		{ .type = FETCHMSG_SIGNER, .signer = { "/a", DIGEST, "" } },
		{ .type = FETCHMSG_ANNOTATION, .annotation = { "", "b" } },
		{ .type = FETCHMSG_VERDICT, .verdict = { DIGEST, FETCH_VERDICT_COUNT, "", "", 0 } },
		{ .type = FETCHMSG_VERDICT,
		  .verdict = { DIGEST, FETCH_VERDICT_REFUSED, "", "", 0 } },
		{ .type = FETCHMSG_VERDICT,
		  .verdict = { DIGEST, FETCH_VERDICT_ACCEPTED, "", "no", 0 } },
		{ .type = FETCHMSG_VERDICT,
		  .verdict = { DIGEST, FETCH_VERDICT_SIGNED, "", "", 0 } },
		{ .type = FETCHMSG_VERDICT,
		  .verdict = { DIGEST, FETCH_VERDICT_ACCEPTED, "", "", 1 } },
	};

	memset(long_word, 'x', sizeof(long_word) - 1);
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		int r = fetchmsg_encode(&bad[i], packet, NULL);

		CHECK_INT(r, -EINVAL);
		if (r >= 0)
			printf("# case %zu\n", i);
	}
	/* One byte less is none too many. */
	long_word[FETCH_WORD_MAX] = '\0';
	CHECK(fetchmsg_encode(&longest, packet, NULL) > 0);
}

/* Every length of every message but its own, and every value of every byte of it. */
static void survives_other_bytes(void)
{
	static uint8_t other[1024];
	unsigned n_accepted = 0;

	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		int n = fetchmsg_encode(&good[i], packet, NULL);
		struct fetchmsg m;

		CHECK(n > 0 && (size_t)n + 8 < sizeof(other));
		for (size_t len = 0; len < (size_t)n + 8; len++) {
			memset(other, 0, sizeof(other));
			memcpy(other, packet, MIN(len, (size_t)n));
			if (len != (size_t)n)
				CHECK_INT(fetchmsg_decode(&m, other, len, NULL), -EBADMSG);
		}
		for (size_t at = 0; at < (size_t)n; at++) {
			memcpy(other, packet, (size_t)n);
			for (int value = 0; value < 256; value++) {
				other[at] = (uint8_t)value;
				n_accepted += fetchmsg_decode(&m, other, (size_t)n, NULL) == 0;
			}
		}
	}
	CHECK(n_accepted > 0);
}

static void refuses_hidden_text(void)
{
	const struct fetchmsg word = { .type = FETCHMSG_WORD, .word = { FETCH_CMD, "abcd" } };
	int n = fetchmsg_encode(&word, packet, NULL);
	struct fetchmsg m;

	CHECK(n > 5);
	packet[n - 3] = '\0';
	CHECK_INT(fetchmsg_decode(&m, packet, (size_t)n, NULL), -EBADMSG);
	packet[n - 3] = 'c';
	packet[n - 1] = 'e';
	CHECK_INT(fetchmsg_decode(&m, packet, (size_t)n, NULL), -EBADMSG);
}

UNIT_MAIN({ "goes_and_comes", goes_and_comes }, { "refuses_filters", refuses_filters },
	  { "refuses_hosts", refuses_hosts }, { "refuses_to_send", refuses_to_send },
	  { "survives_other_bytes", survives_other_bytes },
	  { "refuses_hidden_text", refuses_hidden_text })
