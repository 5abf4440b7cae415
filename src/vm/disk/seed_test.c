/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/seed.h"

#include <errno.h>

#include "base/macros.h"
#include "unit.h"

static uint8_t *make(const struct seed_file *files, size_t n)
{
	struct error err = ERROR_INIT;
	uint8_t *image = NULL;

	CHECK(seed_make(&image, files, n, &err) == 0);
	CHECK_STR(err.text, "");
	return image;
}

/* What the kernel makes of it is in tests/vm/test_machine.py. */
static void has_a_label_and_files(void)
{
	static const struct seed_file files[] = { { "meta-data", "instance-id: a\n", 15 },
						  { "user-data", "", 0 } };
	uint8_t *image = make(files, ARRAY_SIZE(files));

	if (!image)
		return;
	CHECK(memcmp(image + 54, "FAT12   ", 8) == 0);
	CHECK(image[510] == 0x55 && image[511] == 0xaa);
	CHECK(memcmp(image + 13 * 512, "CIDATA     ", 11) == 0);
	CHECK(memcmp(image + 17 * 512, "instance-id: a\n", 15) == 0);
	/* Both tables are the same. */
	CHECK(memcmp(image + 512, image + 7 * 512, 6 * 512) == 0);
	CHECK(memcmp(image + 512, "\xf8\xff\xff\xff\x0f", 5) == 0);
	free(image);
}

static void refused(const struct seed_file *files, size_t n, const char *why)
{
	struct error err = ERROR_INIT;
	uint8_t *image = NULL;

	CHECK(seed_make(&image, files, n, &err) == -EINVAL);
	CHECK_STR(err.text, why);
}

static void keeps_to_its_limits(void)
{
	static char much[SEED_DATA_MAX + 1];
	struct seed_file many[SEED_FILES_MAX + 1];
	char names[SEED_FILES_MAX + 1][SEED_NAME_MAX + 2];
	uint8_t *image;

	for (size_t i = 0; i < ARRAY_SIZE(many); i++) {
		memset(names[i], 'a' + (int)i, SEED_NAME_MAX);
		names[i][SEED_NAME_MAX] = '\0';
		many[i] = (struct seed_file){ names[i], "x", 1 };
	}
	image = make(many, SEED_FILES_MAX);
	free(image);
	refused(many, SEED_FILES_MAX + 1, "a seed disk has at most 8 files");
	many[0].data = much;
	many[0].len = SEED_DATA_MAX;
	image = make(many, 1);
	free(image);
	refused(many, 2, "the files of a seed disk are larger than 983040 bytes");
	many[0].len++;
	many[0].name = "a";
	refused(many, 1, "\"a\" is larger than a seed disk");
	many[0].len = 1;
	memset(names[0], 'x', SEED_NAME_MAX + 1);
	names[0][SEED_NAME_MAX + 1] = '\0';
	many[0].name = names[0];
	refused(many, 1,
		"\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\" is no name for a file of a seed "
		"disk");
	many[0].name = "a/b";
	refused(many, 1, "\"a/b\" is no name for a file of a seed disk");
	many[0].name = "Name";
	many[1].name = "name";
	refused(many, 2, "a seed disk has \"name\" once");
}

UNIT_MAIN({ "has a label and files", has_a_label_and_files },
	  { "keeps to its limits", keeps_to_its_limits })
