/* SPDX-License-Identifier: Apache-2.0 */
#include "image/transfer/incoming.h"

#include <errno.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "unit.h"

#define HEX_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define HEX_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define HEX_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"
#define CONFIG "sha256:" HEX_A
#define MANIFEST "sha256:" HEX_B
#define LAYER "sha256:" HEX_C

#define BLOB(d, n)                                                                                 \
	{                                                                                          \
		.type = FETCHMSG_BLOB, .blob = {.digest = d, .size = n }                           \
	}
#define IMAGE                                                                                      \
	{                                                                                          \
		.type = FETCHMSG_IMAGE, .image = {                                                 \
			.id = CONFIG,                                                              \
			.digest = MANIFEST,                                                        \
			.user = "u",                                                               \
			.working_dir = "/w",                                                       \
			.stop_signal = ""                                                          \
		}                                                                                  \
	}
#define WORD(l, t)                                                                                 \
	{                                                                                          \
		.type = FETCHMSG_WORD, .word = {.list = l, .text = t }                             \
	}
#define LAYER_OF(n)                                                                                \
	{                                                                                          \
		.type = FETCHMSG_LAYER, .layer = {                                                 \
			.digest = LAYER,                                                           \
			.diff_id = CONFIG,                                                         \
			.size = n,                                                                 \
			.compression = FETCH_GZIP                                                  \
		}                                                                                  \
	}
#define END(w, l)                                                                                  \
	{                                                                                          \
		.type = FETCHMSG_IMAGE_END, .image_end = {.n_words = w, .n_layers = l }            \
	}
#define DONE(n)                                                                                    \
	{                                                                                          \
		.type = FETCHMSG_DONE, .done = {.n_images = n }                                    \
	}

/* The first refusal of incoming_take(), or what incoming_check() says. */
static int story(struct incoming *in, const struct fetchmsg *m, size_t n, struct error *err)
{
	incoming_init(in);
	for (size_t i = 0; i < n; i++) {
		int r = incoming_take(in, &m[i], err);

		if (r < 0)
			return r;
	}
	return incoming_check(in, err);
}

static void whole(void)
{
	static const struct fetchmsg told[] = {
		BLOB(CONFIG, 10),
		BLOB(MANIFEST, 20),
		BLOB(LAYER, 300),
		IMAGE,
		LAYER_OF(300),
		WORD(FETCH_NAME, "x/y:1"),
		WORD(FETCH_ENV, "A=1"),
		WORD(FETCH_ENV, "B=2"),
		END(3, 1),
		DONE(1),
	};
	struct error err = ERROR_INIT;
	struct incoming in;
	const struct incoming_image *image;
	const struct incoming_blob *b;

	CHECK_INT(story(&in, told, ARRAY_SIZE(told), &err), 0);
	CHECK_INT(in.n_images, 1);
	image = list_first(&in.images, struct incoming_image, link);
	CHECK_STR(image->id, CONFIG);
	CHECK_STR(image->user, "u");
	CHECK_STR(image->working_dir, "/w");
	CHECK_INT(strv_len(image->words[FETCH_ENV]), 2);
	CHECK_STR(image->words[FETCH_ENV][1], "B=2");
	CHECK(!image->words[FETCH_CMD]);
	CHECK_INT(incoming_size(&in, image), 330);
	list_for_each (b, &in.blobs, struct incoming_blob, link)
		CHECK(b->wanted);
	incoming_done(&in);
}

static void out_of_order(void)
{
	static const struct {
		struct fetchmsg told[8];
		size_t n;
		const char *what;
	} table[] = {
		{ { DONE(0) }, 1, "the count of images is wrong" },
		{ { BLOB(CONFIG, 1) }, 1, "it ended too early" },
		{ { BLOB(CONFIG, 1), BLOB(CONFIG, 1) }, 2, "a blob twice, or too many" },
		{ { WORD(FETCH_ENV, "A=1") }, 1, "a word outside of an image, or too many" },
		{ { LAYER_OF(1) }, 1, "a layer outside of an image, or too many" },
		{ { END(0, 0) }, 1, "the counts of an image are wrong" },
		{ { IMAGE, IMAGE }, 2, "an image within an image, or too many" },
		{ { IMAGE, END(1, 0) }, 2, "the counts of an image are wrong" },
		{ { IMAGE, END(0, 1) }, 2, "the counts of an image are wrong" },
		{ { IMAGE, END(0, 0), WORD(FETCH_ENV, "A=1") },
		  3,
		  "a word outside of an image, or too many" },
		{ { IMAGE, DONE(1) }, 2, "the count of images is wrong" },
		{ { IMAGE, END(0, 0), DONE(2) }, 3, "the count of images is wrong" },
		{ { IMAGE, END(0, 0), DONE(1), DONE(1) },
		  4,
		  "a message that does not belong here" },
		{ { { .type = FETCHMSG_UNPACKED } }, 1, "a message that does not belong here" },
		{ { IMAGE, END(0, 0), DONE(1) }, 3, "an image names a blob that did not come" },
		{ { BLOB(CONFIG, 1), IMAGE, END(0, 0), DONE(1) },
		  4,
		  "an image names a blob that did not come" },
		{ { BLOB(CONFIG, 1), BLOB(MANIFEST, 1), IMAGE, LAYER_OF(1), END(0, 1), DONE(1) },
		  6,
		  "an image names a blob that did not come" },
		{ { BLOB(CONFIG, 1), BLOB(MANIFEST, 1), BLOB(LAYER, 2), IMAGE, LAYER_OF(1),
		    END(0, 1), DONE(1) },
		  7,
		  "an image names a blob that did not come" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(table); i++) {
		struct error err = ERROR_INIT;
		struct incoming in;
		char text[128];

		CHECK_INT(story(&in, table[i].told, table[i].n, &err), -EPROTO);
		(void)str_printf(text, sizeof(text), "nacre-fetch: %s: Protocol error",
				 table[i].what);
		CHECK_STR(err.text, text);
		incoming_done(&in);
	}
}

/* As many as each limit says are taken, one more is not. */
static void limits(void)
{
	static const struct fetchmsg image = IMAGE, end = END(0, 0), layer = LAYER_OF(1),
				     word = WORD(FETCH_CMD, "w");
	struct fetchmsg blob = BLOB(CONFIG, 1);
	struct error err = ERROR_INIT;
	struct incoming in;

	incoming_init(&in);
	for (int i = 0; i < FETCH_BLOBS_MAX; i++) {
		(void)str_printf(blob.blob.digest, sizeof(blob.blob.digest), "sha256:%064x", i);
		CHECK_INT(incoming_take(&in, &blob, &err), 0);
	}
	CHECK_INT(incoming_take(&in, &(struct fetchmsg)BLOB(LAYER, 1), &err), -EPROTO);
	for (int i = 1; i < FETCH_IMAGES_MAX; i++) {
		CHECK_INT(incoming_take(&in, &image, &err), 0);
		CHECK_INT(incoming_take(&in, &end, &err), 0);
	}
	CHECK_INT(incoming_take(&in, &image, &err), 0);
	for (int i = 0; i < FETCH_LAYERS_MAX; i++)
		CHECK_INT(incoming_take(&in, &layer, &err), 0);
	CHECK_INT(incoming_take(&in, &layer, &err), -EPROTO);
	for (int i = 0; i < FETCH_WORDS_MAX; i++)
		CHECK_INT(incoming_take(&in, &word, &err), 0);
	CHECK_INT(incoming_take(&in, &word, &err), -EPROTO);
	CHECK_INT(incoming_take(&in,
				&(struct fetchmsg)END(FETCH_WORDS_MAX + 1, FETCH_LAYERS_MAX + 1),
				&err),
		  0);
	CHECK_INT(incoming_take(&in, &image, &err), -EPROTO);
	incoming_done(&in);
}

/* Words that are small one by one may not fill the memory together, in whichever image. */
static void memory(void)
{
	static const struct fetchmsg image = IMAGE, end = END(1024, 0);
	const int n_words = INCOMING_MEMORY_MAX / FETCH_WORD_MAX;
	_cleanup_str_ char *text = calloc(1, FETCH_WORD_MAX);
	struct fetchmsg word = WORD(FETCH_ENV, NULL);
	struct error err = ERROR_INIT;
	struct incoming in;

	CHECK(text != NULL);
	for (int i = 0; i < FETCH_WORD_MAX - 1; i++)
		text[i] = 'x';
	word.word.text = text;
	incoming_init(&in);
	for (int i = 0; i < n_words; i++) {
		if (i % 1024 == 0)
			CHECK_INT(incoming_take(&in, &image, &err), 0);
		CHECK_INT(incoming_take(&in, &word, &err), 0);
		if (i % 1024 == 1023)
			CHECK_INT(incoming_take(&in, &end, &err), 0);
	}
	CHECK_INT(incoming_take(&in, &image, &err), 0);
	word.word.text = "";
	CHECK_INT(incoming_take(&in, &word, &err), -EPROTO);
	CHECK_STR(err.text,
		  "nacre-fetch: more bytes of words than the memory for them: Protocol error");
	incoming_done(&in);
}

UNIT_MAIN({ "a whole archive", whole }, { "out of order", out_of_order }, { "limits", limits },
	  { "memory", memory })
