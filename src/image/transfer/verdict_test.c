/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/verdict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

#define DIGEST "sha256:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define OTHER "sha256:bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"

#define SIGNER(k)                                                                                  \
	{                                                                                          \
		.type = FETCHMSG_SIGNER, .signer = { k, DIGEST, "a.b/c:1" }                        \
	}
#define VERDICT(v, n)                                                                              \
	{                                                                                          \
		.type = FETCHMSG_VERDICT, .verdict = { OTHER, v, "a.b", "", n }                    \
	}

static const struct fetchmsg annotation = { .type = FETCHMSG_ANNOTATION,
					    .annotation = { "by", "us" } };

/* The first refusal of verdict_take(). */
static int story(struct verdict *v, const struct fetchmsg *m, size_t n, struct error *err)
{
	verdict_init(v);
	for (size_t i = 0; i < n; i++) {
		int r = verdict_take(v, &m[i], err);

		if (r < 0)
			return r;
	}
	return 0;
}

static void takes_what_was_said(void)
{
	const struct fetchmsg all[] = { SIGNER("/a.pub"), annotation, SIGNER("/b.pub"),
					VERDICT(FETCH_VERDICT_SIGNED, 2) };
	struct error err = ERROR_INIT;
	struct verdict v;

	if (story(&v, all, ARRAY_SIZE(all), &err) == 0) {
		CHECK(v.done);
		CHECK_STR(v.said.digest, OTHER);
		CHECK_INT(v.said.kind, IMAGE_VERDICT_SIGNED);
		CHECK_STR(v.said.scope, "a.b");
		CHECK_INT(v.said.n_signers, 2);
		CHECK_STR(v.said.signers[1].key, "/b.pub");
		CHECK_INT(v.said.signers[0].n_annotations, 1);
		CHECK_STR(v.said.signers[0].annotations[0].value, "us");
		CHECK_INT(v.said.signers[1].n_annotations, 0);
	} else {
		CHECK_INT(err.code, -ENOMEM);
	}
	verdict_done(&v);
}

static void refuses_what_cannot_be(void)
{
	const struct fetchmsg early[] = { annotation };
	const struct fetchmsg count[] = { SIGNER("/a.pub"), VERDICT(FETCH_VERDICT_SIGNED, 2) };
	const struct fetchmsg twice[] = { VERDICT(FETCH_VERDICT_ACCEPTED, 0),
					  VERDICT(FETCH_VERDICT_ACCEPTED, 0) };
	const struct fetchmsg late[] = { VERDICT(FETCH_VERDICT_ACCEPTED, 0), SIGNER("/a.pub") };
	static struct fetchmsg many[FETCH_SIGNERS_MAX + 1], more[FETCH_ANNOTATIONS_MAX + 2];
	const struct {
		const struct fetchmsg *m;
		size_t n;
	} rows[] = { { early, 1 },
		     { count, 2 },
		     { twice, 2 },
		     { late, 2 },
		     { many, ARRAY_SIZE(many) },
		     { more, ARRAY_SIZE(more) } };

	for (size_t i = 0; i < ARRAY_SIZE(many); i++)
		many[i] = (struct fetchmsg)SIGNER("/a.pub");
	more[0] = many[0];
	for (size_t i = 1; i < ARRAY_SIZE(more); i++)
		more[i] = annotation;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct error err = ERROR_INIT;
		struct verdict v;
		int r = story(&v, rows[i].m, rows[i].n, &err);

		CHECK(r == -EPROTO || r == -ENOMEM);
		verdict_done(&v);
	}
}

#define LINE "a.b/c:1\n" DIGEST "\nsigned\n7\n\n/a.pub\n" OTHER "\na.b/c\n"

static void goes_into_a_line_and_comes_back(void)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT;
	const struct image_signer signer = { .key = "/a.pub",
					     .fingerprint = OTHER,
					     .identity = "a.b/c" };
	const struct image_verdict v = { .reference = "a.b/c:1",
					 .digest = DIGEST,
					 .kind = IMAGE_VERDICT_SIGNED,
					 .scope = "",
					 .at = 7,
					 .signers = &signer,
					 .n_signers = 1 };
	_cleanup_str_ char *line = verdict_line(&v);
	struct image_verdict back;
	int r;

	if (!line)
		return;
	CHECK_STR(line, LINE);
	r = verdict_read(&back, &a, line);
	CHECK(r == 0 || r == -ENOMEM);
	if (r < 0)
		return;
	CHECK_STR(back.reference, v.reference);
	CHECK_STR(back.digest, v.digest);
	CHECK_INT(back.kind, v.kind);
	CHECK_STR(back.scope, "");
	CHECK_STR(back.reason, "");
	CHECK_INT(back.at, 7);
	CHECK_INT(back.n_signers, 1);
	CHECK_STR(back.signers[0].key, "/a.pub");
	CHECK_STR(back.signers[0].fingerprint, OTHER);
	CHECK_STR(back.signers[0].identity, "a.b/c");
}

/* Of a database that somebody else has written to. */
static void reads_no_other_line(void)
{
	static const char *const wrong[] = {
		"",
		"\n",
		"a.b/c:1",
		"c:1\n" DIGEST "\nsigned\n7\n\n",
		"a.b/c:1\nsha256:1\nsigned\n7\n\n",
		"a.b/c:1\n" DIGEST "\nbest\n7\n\n",
		"a.b/c:1\n" DIGEST "\nsigned\n-7\n\n",
		"a.b/c:1\n" DIGEST "\nsigned\n7\n",
		"a.b/c:1\n" DIGEST "\nsigned\n7\n\n/a.pub\n" OTHER "\n",
		"a.b/c:1\n" DIGEST "\nsigned\n7\n\n/a.pub\nb\na.b/c\n",
		"a.b/c:1\n" DIGEST "\nsigned\n7\n\n/a.pub\n" OTHER "\na.b/c",
	};

	for (size_t i = 0; i < ARRAY_SIZE(wrong); i++) {
		_cleanup_(arena_done) struct arena a = ARENA_INIT;
		struct image_verdict v;
		int r = verdict_read(&v, &a, wrong[i]);

		CHECK(r == -EINVAL || r == -ENOMEM);
		if (r == 0)
			printf("# case %zu\n", i);
	}
}

static void reads_as_many_signers_as_there_can_be(void)
{
	for (size_t n = FETCH_SIGNERS_MAX; n <= FETCH_SIGNERS_MAX + 1; n++) {
		_cleanup_(arena_done) struct arena a = ARENA_INIT;
		struct image_verdict v;
		char line[8192];
		size_t len;
		int r;

		(void)str_copy(line, sizeof(line), "a.b/c:1\n" DIGEST "\nsigned\n7\n\n");
		for (size_t i = 0; i < n; i++) {
			len = strlen(line);
			(void)str_copy(line + len, sizeof(line) - len, "k\n" OTHER "\ni\n");
		}
		r = verdict_read(&v, &a, line);
		CHECK(r == -ENOMEM || r == (n > FETCH_SIGNERS_MAX ? -EINVAL : 0));
	}
}

#define SIMPLE(reference) reference "\n" DIGEST "\naccepted\n7\ndefault\n"

static void one_line_for_each_reference(void)
{
	_cleanup_strv_ char **lines = strv_copy(NULL);
	char name[] = "a.b/d:1";
	char *const names[] = { name, NULL };
	bool ok;

	if (!lines)
		return;
	ok = verdicts_put(&lines, SIMPLE("a.b/c:1")) == 0 &&
	     verdicts_put(&lines, SIMPLE("a.b/c:10")) == 0 &&
	     verdicts_put(&lines, SIMPLE("a.b/d:1")) == 0 &&
	     verdicts_put(&lines, SIMPLE("a.b/e@" DIGEST)) == 0 && verdicts_put(&lines, LINE) == 0;
	if (!ok)
		return;
	CHECK_INT(strv_len(lines), 4);
	CHECK_STR(verdicts_find(lines, "a.b/c:1"), LINE);
	CHECK(!verdicts_find(lines, "a.b/c"));
	verdicts_drop(lines, "a.b/c:1");
	CHECK(!verdicts_find(lines, "a.b/c:1"));
	CHECK(verdicts_find(lines, "a.b/c:10") != NULL);
	verdicts_keep(lines, names);
	CHECK_INT(strv_len(lines), 2);
	CHECK(verdicts_find(lines, "a.b/d:1") != NULL);
	CHECK(verdicts_find(lines, "a.b/e@" DIGEST) != NULL);
}

static void the_oldest_go(void)
{
	_cleanup_strv_ char **lines = strv_copy(NULL);

	for (unsigned i = 0; lines && i < 300; i++) {
		char line[256];

		(void)str_printf(line, sizeof(line), "a.b/c:%u\n" DIGEST "\naccepted\n7\n\n", i);
		if (verdicts_put(&lines, line) < 0)
			return;
	}
	if (!lines)
		return;
	CHECK_INT(strv_len(lines), 256);
	CHECK(!verdicts_find(lines, "a.b/c:43"));
	CHECK(verdicts_find(lines, "a.b/c:44") != NULL);
	CHECK(verdicts_find(lines, "a.b/c:299") != NULL);
}

UNIT_MAIN({ "takes what was said", takes_what_was_said },
	  { "refuses what cannot be", refuses_what_cannot_be },
	  { "goes into a line and comes back", goes_into_a_line_and_comes_back },
	  { "reads no other line", reads_no_other_line },
	  { "reads as many signers as there can be", reads_as_many_signers_as_there_can_be },
	  { "one line for each reference", one_line_for_each_reference },
	  { "the oldest go", the_oldest_go })
