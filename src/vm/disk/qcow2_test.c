/* SPDX-License-Identifier: Apache-2.0 */
#include "vm/disk/qcow2.h"

#include <stdlib.h>
#include <string.h>

#include "base/macros.h"
#include "unit.h"

#define HEAD_FILE (4U << 16) /* bytes of a file that begins so */

/* A head of version 3 without anything in particular. */
static void make_head(uint8_t head[QCOW2_HEAD_MAX])
{
	memset(head, 0, QCOW2_HEAD_MAX);
	memcpy(head, "QFI\xfb\0\0\0\3", 8);
	head[23] = 16;
	head[28] = 0x10; /* 256 MiB */
	head[39] = 1;    /* entries of the first table, which begins at 0x30000 */
	head[45] = 3;
	head[53] = 1; /* that of reference counts, one cluster at 0x10000 */
	head[59] = 1;
	head[103] = 104;
}

static void check_refused(const uint8_t *head, size_t len, const char *why)
{
	struct error err = ERROR_INIT;
	struct qcow2 q;

	CHECK(qcow2_look(&q, head, len, HEAD_FILE, &err) < 0);
	CHECK(err.kind == ERROR_INVALID);
	CHECK(strstr(err.text, why) != NULL);
}

static void takes_what_is_whole(void)
{
	uint8_t head[QCOW2_HEAD_MAX];
	struct error err = ERROR_INIT;
	struct qcow2 q = { 0 };

	make_head(head);
	CHECK_INT(qcow2_look(&q, head, sizeof(head), HEAD_FILE, &err), 0);
	CHECK_INT(q.version, 3);
	CHECK(q.bytes == 256U << 20);
	head[79] = 1; /* dirty: QEMU mends it */
	CHECK_INT(qcow2_look(&q, head, sizeof(head), HEAD_FILE, &err), 0);
	head[7] = 2;
	head[79] = 0xff; /* there are no features in version 2 */
	CHECK_INT(qcow2_look(&q, head, 72, HEAD_FILE, &err), 0);
}

static void refuses_what_names_another(void)
{
	static const struct {
		size_t at;
		uint8_t value;
		const char *why;
	} heads[] = {
		{ 15, 200, "backing file" },
		{ 19, 5, "backing file" },
		{ 35, 2, "encrypted" },
		{ 79, 4, "data in another file" },
		{ 79, 2, "corrupt" },
		{ 79, 32, "not known here" },
		{ 72, 1, "not known here" },
		{ 7, 4, "version 4" },
		{ 3, 0, "does not begin as" },
		{ 23, 8, "clusters of no size" },
		{ 23, 22, "clusters of no size" },
		{ 24, 1, "larger than 16 TiB" },
		{ 28, 0, "of no size" },
		{ 103, 103, "cut off" },
		{ 39, 0, "shorter than its disk needs" },
		{ 27, 1, "shorter than its disk needs" },
		{ 45, 4, "not where its head says" },
		{ 45, 0, "not where its head says" },
		{ 40, 0xff, "not where its head says" },
		{ 47, 1, "not where its head says" },
		{ 53, 4, "not where its head says" },
		{ 59, 0, "not where its head says" },
	};
	uint8_t head[QCOW2_HEAD_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++) {
		make_head(head);
		head[heads[i].at] = heads[i].value;
		check_refused(head, sizeof(head), heads[i].why);
	}
	make_head(head);
	check_refused(head, 103, "cut off");
	check_refused(head, 71, "does not begin as");
	check_refused(head, 0, "does not begin as");
}

static void makes_what_it_takes(void)
{
	static const uint64_t sizes[] = { 512, 1 << 20, (uint64_t)512 << 20,
					  ((uint64_t)512 << 20) + 512, QCOW2_BYTES_MAX };
	struct error err = ERROR_INIT;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++) {
		uint8_t *head = NULL;
		uint64_t file = 0;
		size_t len = 0;
		struct qcow2 q = { 0 };

		CHECK_INT(qcow2_make(&head, &len, &file, sizes[i], "", "raw", &err), 0);
		if (!head)
			return;
		CHECK_INT(qcow2_look(&q, head, len, file, &err), 0);
		CHECK(q.bytes == sizes[i]);
		CHECK(file >= len + 65536 && file % 65536 == 0);
		/* Each cluster that there is, is counted once. */
		for (uint64_t n = 0; n <= file / 65536; n++)
			CHECK_INT(head[131072 + 2 * n + 1], n < file / 65536);
		free(head);
	}
}

static void names_what_shows_through(void)
{
	struct error err = ERROR_INIT;
	uint8_t *head = NULL;
	uint64_t file = 0;
	size_t len = 0;

	CHECK_INT(qcow2_make(&head, &len, &file, 1 << 20, "/a/base", "qcow2", &err), 0);
	if (!head)
		return;
	CHECK(memcmp(head + 104, "\xe2\x79\x2a\xca\0\0\0\5qcow2\0\0\0\0\0\0\0\0\0\0\0/a/base",
		     31) == 0);
	check_refused(head, len, "backing file");
	free(head);
}

static void refuses_no_size(void)
{
	static const uint64_t sizes[] = { 0, 511, 513, QCOW2_BYTES_MAX + 512 };
	char name[QCOW2_NAME_MAX + 2];
	struct error err = ERROR_INIT;
	uint8_t *head;
	uint64_t file;
	size_t len;

	for (size_t i = 0; i < ARRAY_SIZE(sizes); i++)
		CHECK(qcow2_make(&head, &len, &file, sizes[i], "", "raw", &err) < 0);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	CHECK(qcow2_make(&head, &len, &file, 512, name, "raw", &err) < 0);
	CHECK(strstr(err.text, "too long") != NULL);
}

UNIT_MAIN({ "takes what is whole", takes_what_is_whole },
	  { "refuses what names another", refuses_what_names_another },
	  { "makes what it takes", makes_what_it_takes },
	  { "names what shows through", names_what_shows_through },
	  { "refuses no size", refuses_no_size })
