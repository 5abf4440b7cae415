/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/transfer/policy.h"

#include <errno.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "fetch/transfer/signature.h"
#include "unit.h"

/* The text of a test is made with what differs: a key in base64, where one is due. */
#define TEXT_SIZE 16384

static const char digest[] =
	"sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
static const char other[] =
	"sha256:fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210";

/* NULL where it is refused: then with the reason in err, or without memory. */
static struct policy *read_text(const char *text, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct policy *p = NULL;

	if (buf_add(&b, text, strlen(text)) < 0)
		return NULL;
	return policy_read(&p, &b, "policy.json", err) < 0 ? NULL : p;
}

static void check_refused(const char *text, const char *why)
{
	struct error err = ERROR_INIT;
	_cleanup_policy_ struct policy *p = read_text(text, &err);

	CHECK(!p);
	if (!err.code || err.code == -ENOMEM || strstr(err.text, "memory"))
		return;
	CHECK(err.kind == ERROR_INVALID);
	CHECK(strstr(err.text, why) != NULL);
	if (!strstr(err.text, why))
		printf("# %s\n# not: %s\n", err.text, why);
}

static void refuses_what_it_does_not_know(void)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{ "", "empty" },
		{ "[]", "no JSON object" },
		{ "{}", "\"default\"" },
		{ "{\"default\":[]}", "at least one rule" },
		{ "{\"default\":{}}", "at least one rule" },
		{ "{\"default\":[{}]}", "type" },
		{ "{\"default\":[1]}", "rule 1: not an object" },
		{ "{\"default\":[{\"type\":\"reject\"}],\"more\":1}", "\"more\" is not known" },
		{ "{\"default\":[{\"type\":\"reject\"}],\"default\":[]}", "duplicate" },
		{ "{\"default\":[{\"type\":\"reject\",\"a\":1}]}", "\"a\" is not known" },
		{ "{\"default\":[{\"type\":\"signedBy\",\"keyPath\":\"/a\"}]}", "signedBy" },
		{ "{\"default\":[{\"type\":\"sigstoreSigned\"}]}", "names no key" },
		{ "{\"default\":[{\"type\":\"sigstoreSigned\",\"fulcio\":{}}]}", "\"fulcio\"" },
		{ "{\"default\":[{\"type\":\"sigstoreSigned\",\"keyPath\":\"a\"}]}", "absolute" },
		{ "{\"default\":[{\"type\":\"sigstoreSigned\",\"keyData\":\"AAAA\"}]}", "PEM" },
		{ "{\"default\":[{\"type\":\"sigstoreSigned\",\"keyData\":\"AA=A\"}]}", "base64" },
		{ "{\"default\":[{\"type\":\"sigstoreSigned\",\"keyDatas\":[1]}]}", "not a text" },
		{ "{\"default\":[{\"type\":\"reject\"}],\"transports\":{\"docker\":[]}}",
		  "not an object" },
		{ "{\"default\":[{\"type\":\"reject\"}],\"transports\":{\"docker\":{\"a.b\":[]}}}",
		  "\"docker\": \"a.b\": not a list" },
		{ "{\"default\":[{\"type\":\"reject\"}],\"transports\":{\"oci\":{\"\":[{}]}}}",
		  "\"oci\"" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++)
		check_refused(wrong[i].text, wrong[i].why);
}

static const char scopes[] =
	"{\"default\":[{\"type\":\"insecureAcceptAnything\"}],\"transports\":{"
	"\"docker-daemon\":{\"\":[{\"type\":\"reject\"}]},\"docker\":{"
	"\"q.io\":[{\"type\":\"reject\"}],"
	"\"q.io/a\":[{\"type\":\"reject\"}],"
	"\"q.io/a/b\":[{\"type\":\"reject\"}],"
	"\"q.io/a/b:1\":[{\"type\":\"reject\"}],"
	"\"q.io/a/b@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\":"
	"[{\"type\":\"reject\"}],"
	"\"*.r.io\":[{\"type\":\"reject\"}],"
	"\"*.x.r.io\":[{\"type\":\"reject\"}],"
	"\"h:5000\":[{\"type\":\"reject\"}]}}}";

static void check_scope(const struct policy *p, const char *text, const char *scope)
{
	struct reference ref;

	CHECK_INT(reference_parse(&ref, text, NULL), 0);
	CHECK_STR(policy_find(p, &ref)->name, scope);
}

static void takes_the_longest_that_fits(void)
{
	struct error err = ERROR_INIT;
	_cleanup_policy_ struct policy *p = read_text(scopes, &err);
	char text[256], scope[256];

	if (!p)
		return;
	(void)str_printf(text, sizeof(text), "q.io/a/b:1@%s", digest);
	(void)str_printf(scope, sizeof(scope), "q.io/a/b@%s", digest);
	check_scope(p, text, scope);
	check_scope(p, "q.io/a/b:1", "q.io/a/b:1");
	check_scope(p, "q.io/a/b:2", "q.io/a/b");
	check_scope(p, "q.io/a/bc:1", "q.io/a");
	check_scope(p, "q.io/ab/c", "q.io");
	check_scope(p, "q.io.evil/a/b:1", "default");
	check_scope(p, "x.r.io/a", "*.r.io");
	check_scope(p, "y.x.r.io:5000/a", "*.x.r.io");
	check_scope(p, "r.io/a", "default");
	check_scope(p, "xr.io/a", "default");
	check_scope(p, "h:5000/a", "h:5000");
	check_scope(p, "busybox", "default");
}

static void rejects_by_name(void)
{
	struct error err = ERROR_INIT;
	_cleanup_policy_ struct policy *p = read_text(scopes, &err);
	struct reference ref;

	if (!p)
		return;
	CHECK_INT(reference_parse(&ref, "q.io/c", NULL), 0);
	CHECK(policy_refuses(policy_find(p, &ref), &ref, &err) < 0);
	CHECK(err.kind == ERROR_PRECONDITION);
	CHECK(str_has_prefix(err.text, "SignatureValidationFailed: "));
	CHECK(strstr(err.text, "q.io/c (scope \"q.io\")") != NULL);
	CHECK_INT(reference_parse(&ref, "busybox", NULL), 0);
	CHECK_INT(policy_refuses(policy_find(p, &ref), &ref, &err), 0);
	CHECK(!policy_wants_signatures(policy_find(p, &ref)));
}

/* ---- signatures ---- */

/* With sanitizers, where each test runs hundreds of times (--failmalloc). */
static bool is_slow(void)
{
	return failmalloc_begin != NULL;
}

static EVP_PKEY *make_key(const char *kind)
{
	if (str_eq(kind, "ed25519"))
		return EVP_PKEY_Q_keygen(NULL, NULL, "ED25519");
	if (str_has_prefix(kind, "rsa"))
		return EVP_RSA_gen((unsigned)strtoul(kind + 3, NULL, 10));
	return EVP_EC_gen(kind);
}

static char *encode(const void *data, size_t len)
{
	char *text = malloc(len / 3 * 4 + 8);

	CHECK(text != NULL);
	(void)EVP_EncodeBlock((unsigned char *)text, data, (int)len);
	return text;
}

static char *key_data(EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *pem, *text;
	long len;

	CHECK(bio && PEM_write_bio_PUBKEY(bio, key) == 1);
	len = BIO_get_mem_data(bio, &pem);
	text = encode(pem, (size_t)len);
	BIO_free(bio);
	return text;
}

static char *sign(EVP_PKEY *key, const char *payload)
{
	const EVP_MD *md = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? NULL : EVP_sha256();
	EVP_MD_CTX *context = EVP_MD_CTX_new();
	unsigned char proof[1024];
	size_t len = sizeof(proof);

	CHECK(context && EVP_DigestSignInit(context, NULL, md, NULL, key) == 1);
	CHECK(EVP_DigestSign(context, proof, &len, (const unsigned char *)payload,
			     strlen(payload)) == 1);
	EVP_MD_CTX_free(context);
	return encode(proof, len);
}

static void make_payload(char ret[1024], const char *name, const char *of)
{
	(void)str_printf(ret, 1024,
			 "{\"critical\":{\"identity\":{\"docker-reference\":\"%s\"},\"image\":"
			 "{\"docker-manifest-digest\":\"%s\"},\"type\":\"cosign container image "
			 "signature\"},\"optional\":null}",
			 name, of);
}

static struct policy *signed_policy(const char *key, const char *identity, struct error *err)
{
	_cleanup_str_ char *text = malloc(TEXT_SIZE);

	CHECK(text != NULL);
	(void)str_printf(text, TEXT_SIZE,
			 "{\"default\":[{\"type\":\"sigstoreSigned\",\"keyData\":\"%s\"%s%s}]}",
			 key, *identity ? ",\"signedIdentity\":" : "", identity);
	return read_text(text, err);
}

/* Whether the policy takes what the key has signed under that name for that digest. */
static bool takes(EVP_PKEY *signer, EVP_PKEY *trusted, const char *identity, const char *wanted,
		  const char *name, const char *of, const char *why)
{
	_cleanup_str_ char *data = key_data(trusted);
	struct error err = ERROR_INIT;
	_cleanup_policy_ struct policy *p = signed_policy(data, identity, &err);
	_cleanup_str_ char *proof = NULL;
	struct reference ref;
	char payload[1024];
	struct signature s;
	int r;

	CHECK(p != NULL);
	if (!p)
		return false;
	make_payload(payload, name, of);
	proof = sign(signer, payload);
	s = (struct signature){ payload, strlen(payload), proof };
	CHECK_INT(reference_parse(&ref, wanted, NULL), 0);
	CHECK(policy_wants_signatures(policy_find(p, &ref)));
	r = signature_judge(policy_find(p, &ref), &ref, digest, &s, 1, NULL, &err);
	if (r < 0) {
		CHECK(err.kind == ERROR_PRECONDITION);
		CHECK(str_has_prefix(err.text, "SignatureValidationFailed: "));
		CHECK(why && strstr(err.text, why) != NULL);
		if (!why || !strstr(err.text, why))
			printf("# %s\n", err.text);
	}
	return r == 0;
}

static void takes_each_kind_of_key(void)
{
	static const char *const kinds[] = { "P-256", "ed25519", "P-384", "P-521", "rsa2048" };
	static const char *const weak[] = { "P-224", "rsa1024" };

	for (size_t i = 0; i < (is_slow() ? 2 : ARRAY_SIZE(kinds)); i++) {
		EVP_PKEY *key = make_key(kinds[i]), *stranger = make_key(kinds[i]);

		CHECK(takes(key, key, "", "q.io/a:1", "q.io/a:1", digest, NULL));
		CHECK(!takes(stranger, key, "", "q.io/a:1", "q.io/a:1", digest,
			     "none of the keys"));
		EVP_PKEY_free(key);
		EVP_PKEY_free(stranger);
	}
	for (size_t i = 0; i < (is_slow() ? 1 : ARRAY_SIZE(weak)); i++) {
		EVP_PKEY *key = make_key(weak[i]);
		_cleanup_str_ char *data = key_data(key);
		struct error err = ERROR_INIT;

		CHECK(!signed_policy(data, "", &err));
		CHECK(strstr(err.text, "not taken") != NULL);
		EVP_PKEY_free(key);
	}
}

#define REPOSITORY "{\"type\":\"matchRepository\"}"
#define EXACT "{\"type\":\"matchExact\"}"

static void asks_for_the_name(void)
{
	EVP_PKEY *key = make_key("P-256");
	static const struct {
		const char *identity, *wanted, *name, *why;
	} rows[] = {
		{ "", "q.io/a:1", "q.io/a:1", NULL },
		{ "", "q.io/a:1", "q.io/a:2", "not q.io/a:1" },
		{ "", "q.io/a:1", "q.io/a", "matchRepository" },
		{ "", "q.io/a:latest", "q.io/a", "matchRepository" },
		{ "", "q.io/a:1", "q.io/b:1", "not q.io/a:1" },
		{ REPOSITORY, "q.io/a:1", "q.io/a", NULL },
		{ REPOSITORY, "q.io/a:1", "q.io/a:2", NULL },
		{ REPOSITORY, "q.io/a:1", "q.io/ab", "not q.io/a" },
		{ EXACT, "q.io/a:1", "q.io/a:1", NULL },
		{ EXACT, "q.io/a:1", "q.io/a", "matchRepository" },
		{ "{\"type\":\"exactReference\",\"dockerReference\":\"q.io/o:7\"}", "q.io/a:1",
		  "q.io/o:7", NULL },
		{ "{\"type\":\"exactReference\",\"dockerReference\":\"q.io/o:7\"}", "q.io/a:1",
		  "q.io/a:1", "not q.io/o:7" },
		{ "{\"type\":\"exactRepository\",\"dockerRepository\":\"q.io/o\"}", "q.io/a:1",
		  "q.io/o:9", NULL },
		{ "{\"type\":\"exactRepository\",\"dockerRepository\":\"q.io/o\"}", "q.io/a:1",
		  "q.io/a:1", "not q.io/o" },
		{ "{\"type\":\"remapIdentity\",\"prefix\":\"m.io\",\"signedPrefix\":\"q.io\"}",
		  "m.io/a:1", "q.io/a:1", NULL },
		{ "{\"type\":\"remapIdentity\",\"prefix\":\"m.io\",\"signedPrefix\":\"q.io\"}",
		  "m.io/a:1", "m.io/a:1", "not q.io/a:1" },
		{ "{\"type\":\"remapIdentity\",\"prefix\":\"m.i\",\"signedPrefix\":\"q.io\"}",
		  "m.io/a:1", "m.io/a:1", NULL },
		{ "", "q.io/a:1", "Not A Name", "Not A Name" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		CHECK(takes(key, key, rows[i].identity, rows[i].wanted, rows[i].name, digest,
			    rows[i].why) == !rows[i].why);
	CHECK(!takes(key, key, "", "q.io/a:1", "q.io/a:1", other, "for another image"));
	EVP_PKEY_free(key);
}

static void asks_for_the_repository_of_a_digest(void)
{
	EVP_PKEY *key = make_key("P-256");
	char wanted[256];

	(void)str_printf(wanted, sizeof(wanted), "q.io/a@%s", digest);
	CHECK(takes(key, key, "", wanted, "q.io/a:7", digest, NULL));
	CHECK(takes(key, key, "", wanted, "q.io/a", digest, NULL));
	CHECK(!takes(key, key, "", wanted, "q.io/b:7", digest, "not q.io/a"));
	CHECK(!takes(key, key, EXACT, wanted, "q.io/a:7", digest, "not q.io/a@"));
	EVP_PKEY_free(key);
}

/* Each bit of it, and of what it stands for. */
static void notices_each_change(void)
{
	EVP_PKEY *key = make_key("ed25519");
	_cleanup_str_ char *data = key_data(key);
	struct error err = ERROR_INIT;
	_cleanup_policy_ struct policy *p = signed_policy(data, "", &err);
	_cleanup_str_ char *proof = NULL;
	struct reference ref;
	char payload[1024];
	struct signature s;

	CHECK(p != NULL);
	make_payload(payload, "q.io/a:1", digest);
	proof = sign(key, payload);
	s = (struct signature){ payload, strlen(payload), proof };
	CHECK_INT(reference_parse(&ref, "q.io/a:1", NULL), 0);
	for (size_t i = 0; p && i < strlen(payload); i += is_slow() ? 41 : 1) {
		payload[i] ^= 1;
		CHECK(signature_judge(policy_find(p, &ref), &ref, digest, &s, 1, NULL, &err) < 0);
		payload[i] ^= 1;
	}
	for (size_t i = 0; p && i + 2 < strlen(proof); i += is_slow() ? 41 : 1) {
		char is = proof[i];

		proof[i] = is == 'A' ? 'B' : 'A';
		CHECK(signature_judge(policy_find(p, &ref), &ref, digest, &s, 1, NULL, &err) < 0);
		proof[i] = is;
	}
	CHECK(!p || signature_judge(policy_find(p, &ref), &ref, digest, &s, 1, NULL, NULL) == 0);
	CHECK(!p || signature_judge(policy_find(p, &ref), &ref, digest, &s, 0, NULL, &err) < 0);
	EVP_PKEY_free(key);
}

/* ---- who has signed ---- */

#define PEM_SIZE 1024

static void key_pem(char ret[PEM_SIZE], EVP_PKEY *key)
{
	BIO *bio = BIO_new(BIO_s_mem());
	char *pem;
	long len;

	CHECK(bio && PEM_write_bio_PUBKEY(bio, key) == 1);
	len = BIO_get_mem_data(bio, &pem);
	(void)str_printf(ret, PEM_SIZE, "%.*s", (int)len, pem);
	BIO_free(bio);
}

/* Of a policy whose rules want both keys; *ret_policy has what the signers point to. */
static bool judge_both(EVP_PKEY *a, EVP_PKEY *b, const struct signature *all, size_t n,
		       struct signature_signers *ret, struct policy **ret_policy)
{
	_cleanup_str_ char *text = malloc(TEXT_SIZE), *one = key_data(a), *two = key_data(b);
	struct error err = ERROR_INIT;
	struct reference ref;

	CHECK(text != NULL);
	(void)str_printf(text, TEXT_SIZE,
			 "{\"default\":[{\"type\":\"sigstoreSigned\",\"keyData\":\"%s\"},"
			 "{\"type\":\"insecureAcceptAnything\"},"
			 "{\"type\":\"sigstoreSigned\",\"keyDatas\":[\"%s\",\"%s\"]}]}",
			 one, two, two);
	CHECK_INT(reference_parse(&ref, "q.io/a:1", NULL), 0);
	*ret_policy = read_text(text, &err);
	return *ret_policy && signature_judge(policy_find(*ret_policy, &ref), &ref, digest, all, n,
					      ret, &err) == 0;
}

static void tells_who_signed_for_each_rule(void)
{
	EVP_PKEY *a = make_key("ed25519"), *b = make_key("ed25519");
	_cleanup_policy_ struct policy *p = NULL, *q = NULL;
	_cleanup_str_ char *by_a = NULL, *by_b = NULL;
	struct signature_signers signers = { .n = 7 };
	struct signature all[2];
	char payload[1024];

	make_payload(payload, "q.io/a:1", digest);
	by_a = sign(a, payload);
	by_b = sign(b, payload);
	all[0] = (struct signature){ payload, strlen(payload), by_b };
	all[1] = (struct signature){ payload, strlen(payload), by_a };
	CHECK(!judge_both(a, b, all, 1, &signers, &q));
	if (judge_both(a, b, all, 2, &signers, &p)) {
		CHECK_INT(signers.n, 2);
		CHECK(signers.list[0].signature == &all[1] && signers.list[1].signature == &all[0]);
		CHECK_STR(signers.list[0].identity, "q.io/a:1");
		CHECK_STR(signers.list[1].key->name, "keyData");
		CHECK(strncmp(signers.list[0].key->fingerprint, "sha256:", 7) == 0);
		CHECK(!str_eq(signers.list[0].key->fingerprint, signers.list[1].key->fingerprint));
	}
	EVP_PKEY_free(a);
	EVP_PKEY_free(b);
}

/* Of the key of 32 bytes of 1, as `openssl pkey -outform DER | sha256sum` has it. */
static void shows_a_key_as_others_do(void)
{
	static const char pem[] = "-----BEGIN PUBLIC KEY-----\n"
				  "MCowBQYDK2VwAyEAiojj3XQJ8ZX9UtstPLpdcspnCb8dlBIb83SIAbQPb1w=\n"
				  "-----END PUBLIC KEY-----\n";
	struct error err = ERROR_INIT;
	_cleanup_policy_ struct policy *p = NULL;
	const struct policy_scope *scope;
	struct reference ref;

	CHECK_INT(reference_parse(&ref, "q.io/a:1", NULL), 0);
	if (policy_read_key(&p, pem, &err) < 0)
		return;
	scope = policy_find(p, &ref);
	CHECK(scope->of_key);
	CHECK(policy_wants_signatures(scope));
	CHECK_STR(list_first(&scope->rules, struct policy_rule, link)->keys[0].fingerprint,
		  "sha256:fd110d301d2f077de1414b8f99f441b1403fab207b2052fbd2c065e4ee8e7dc2");
}

static void a_key_takes_the_place_of_a_policy(void)
{
	EVP_PKEY *key = make_key("P-256"), *stranger = make_key("P-256");
	static const struct {
		const char *wanted, *name;
		bool taken;
	} rows[] = { { "q.io/a:1", "q.io/a", true },
		     { "q.io/a:1", "q.io/a:2", true },
		     { "q.io/a:1", "q.io/b:1", false } };
	_cleanup_policy_ struct policy *p = NULL, *none = NULL;
	struct error err = ERROR_INIT;
	char pem[PEM_SIZE];

	key_pem(pem, key);
	CHECK(policy_read_key(&none, "x", &err) < 0 && !none);
	err = (struct error)ERROR_INIT;
	if (policy_read_key(&p, pem, &err) < 0)
		CHECK(err.code == -ENOMEM || strstr(err.text, "PEM"));
	for (size_t i = 0; p && i < 2 * ARRAY_SIZE(rows); i++) {
		bool ours = i < ARRAY_SIZE(rows);
		_cleanup_str_ char *proof = NULL;
		struct reference ref;
		char payload[1024];
		struct signature s;
		int r;

		err = (struct error)ERROR_INIT;
		make_payload(payload, rows[i % ARRAY_SIZE(rows)].name, digest);
		proof = sign(ours ? key : stranger, payload);
		s = (struct signature){ payload, strlen(payload), proof };
		CHECK_INT(reference_parse(&ref, rows[i % ARRAY_SIZE(rows)].wanted, NULL), 0);
		r = signature_judge(policy_find(p, &ref), &ref, digest, &s, 1, NULL, &err);
		CHECK(r == 0 ? ours && rows[i % ARRAY_SIZE(rows)].taken
			     : !ours || !rows[i % ARRAY_SIZE(rows)].taken ||
				       strstr(err.text, "memory") || err.code == -ENOMEM);
		CHECK(r == 0 || err.code == -ENOMEM || strstr(err.text, "by the given key"));
	}
	EVP_PKEY_free(key);
	EVP_PKEY_free(stranger);
}

struct annotations {
	char text[4096];
	unsigned n;
};

static int take_annotation(void *userdata, const char *name, const char *value, struct error *err)
{
	struct annotations *a = userdata;
	size_t len = strlen(a->text);

	(void)err;
	a->n++;
	(void)str_printf(a->text + len, sizeof(a->text) - len, "%s=%s;", name, value);
	return a->n == 80 ? -ECANCELED : 0;
}

static void tells_what_was_signed_beside_it(void)
{
	static const struct {
		const char *optional, *told;
	} rows[] = {
		{ "null", "" },
		{ "{}", "" },
		{ "7", "" },
		{ "[\"a\"]", "" },
		{ "{\"by\":\"us\"}", "by=us;" },
		{ "{\"by\":\"us\",\"n\":7}", "by=us;n=7;" },
		{ "{\"o\":{\"b\":[1,null],\"a\":true}}", "o={\"a\":true,\"b\":[1,null]};" },
		{ "{\"\":\"x\",\"a\\nb\":\"x\",\"c\":\"d\\ne\"}", "c=d\ne;" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct annotations got = { .text = "" };
		struct error err = ERROR_INIT;
		char payload[1024];
		struct signature s;
		int r;

		(void)str_printf(
			payload, sizeof(payload),
			"{\"critical\":{\"identity\":{\"docker-reference\":\"a\"},\"image\":"
			"{\"docker-manifest-digest\":\"%s\"},\"type\":\"cosign container "
			"image signature\"},\"optional\":%s}",
			digest, rows[i].optional);
		s = (struct signature){ payload, strlen(payload), "" };
		r = signature_each_annotation(&s, take_annotation, &got, &err);
		if (r == 0)
			CHECK_STR(got.text, rows[i].told);
	}
}

static void tells_no_more_than_is_allowed(void)
{
	static char payload[SIGNATURE_PAYLOAD_MAX];
	struct annotations got = { .text = "" };
	struct error err = ERROR_INIT;
	struct signature s;
	size_t len;

	(void)str_printf(payload, sizeof(payload),
			 "{\"critical\":{\"identity\":{\"docker-reference\":\"a\"},\"image\":"
			 "{\"docker-manifest-digest\":\"%s\"},\"type\":\"cosign container "
			 "image signature\"},\"optional\":{\"long\":\"%05000d\"",
			 digest, 0);
	for (unsigned i = 0; i < 70; i++) {
		len = strlen(payload);
		(void)str_printf(payload + len, sizeof(payload) - len, ",\"a%u\":\"b\"", i);
	}
	len = strlen(payload);
	(void)str_copy(payload + len, sizeof(payload) - len, "}}");
	s = (struct signature){ payload, strlen(payload), "" };
	if (signature_each_annotation(&s, take_annotation, &got, &err) == 0)
		CHECK_INT(got.n, 64);
	CHECK(!strstr(got.text, "long"));
}

UNIT_MAIN({ "refuses what it does not know", refuses_what_it_does_not_know },
	  { "takes the longest that fits", takes_the_longest_that_fits },
	  { "rejects by name", rejects_by_name },
	  { "takes each kind of key", takes_each_kind_of_key },
	  { "asks for the name", asks_for_the_name },
	  { "asks for the repository of a digest", asks_for_the_repository_of_a_digest },
	  { "notices each change", notices_each_change },
	  { "tells who signed for each rule", tells_who_signed_for_each_rule },
	  { "shows a key as others do", shows_a_key_as_others_do },
	  { "a key takes the place of a policy", a_key_takes_the_place_of_a_policy },
	  { "tells what was signed beside it", tells_what_was_signed_beside_it },
	  { "tells no more than is allowed", tells_no_more_than_is_allowed })
