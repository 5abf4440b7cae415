/* SPDX-License-Identifier: Apache-2.0 */
#include "image/content/store_bed_test.h"

static void on_space(void *userdata, const struct image_space *space, const struct error *err)
{
	struct stage *s = userdata;

	if (err)
		memset(&s->space, 0, sizeof(s->space));
	else
		s->space = *space;
	on_done(s, err);
}

static uint64_t count_inodes(struct stage *s)
{
	struct error err = ERROR_INIT;
	unsigned n = s->n_done;

	CHECK_INT(image_store_space(s->images, on_space, s, &err), 0);
	CHECK_INT(s->n_done, n);
	wait_done(s, n + 1);
	CHECK_STR(s->err.text, "");
	return s->space.images.n_inodes;
}

/* A layer is counted once; what can change is counted each time, and for all who ask at once. */
static void counts(void)
{
	struct error err = ERROR_INIT;
	struct stage s;
	uint64_t n;

	stage_init(&s);
	put(&s, 'a', 1, two_names);
	stage_again(&s);
	n = count_inodes(&s);
	CHECK(n > 0 && s.space.containers.n_inodes == 1);
	make(&s, "layers/1/late", false);
	make(&s, "containers/c", true);
	CHECK_INT(count_inodes(&s), n);
	CHECK_INT(s.space.containers.n_inodes, 2);
	make(&s, "partial/e" HEX_63, false);
	for (unsigned i = 0; i < 20; i++)
		CHECK_INT(image_store_space(s.images, on_space, &s, &err), 0);
	wait_done(&s, s.n_done + 20);
	CHECK_INT(s.space.images.n_inodes, n + 1);
	CHECK_INT(image_store_remove(s.images, "a00000", on_done, &s, &err), 0);
	wait_done(&s, s.n_done + 1);
	CHECK(count_inodes(&s) < n);
	/* A store that ends does not wait for it. */
	CHECK_INT(image_store_space(s.images, on_space, &s, &err), 0);
	CHECK_INT(image_store_space(s.images, on_space, &s, &err), 0);
	stage_done(&s);
}

UNIT_MAIN({ "counts", counts })
