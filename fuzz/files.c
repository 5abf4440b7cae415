/* SPDX-License-Identifier: Apache-2.0 */

/* PutFiles with any bytes, twice: what is written stays in its directory, and what is in force is
 * whole. */

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/instance.pb-c.h"
#include "base/file/fd.h"
#include "base/file/rootfd.h"
#include "base/file/tree_list.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "fuzz.h"
#include "fuzz_tmpfs.h"
#include "isolate/mount/generations.h"
#include "keeper/message/convert_tree.h"
#include "rpc/exchange/client.h"

static void check_outside(int top_fd)
{
	_cleanup_strv_ char **names = NULL;
	struct stat st;

	fuzz_need(fd_list_dir(top_fd, &names) == 0 && strv_len(names) == 2);
	fuzz_need(fstatat(top_fd, "outside", &st, AT_SYMLINK_NOFOLLOW) == 0);
	fuzz_need(st.st_mode == (S_IFREG | 0400) && st.st_size == 0 && st.st_uid == geteuid());
}

/* The link leads to the last one. */
static void check_inside(int root_fd, const struct tree_list *tree, uint64_t number)
{
	char expected[32], link[32] = "";
	struct stat st;

	(void)str_printf(expected, sizeof(expected), "..g%llu", (unsigned long long)number);
	fuzz_need(readlinkat(root_fd, "..data", link, sizeof(link) - 1) > 0 &&
		  str_eq(link, expected));
	fuzz_need(fstatat(root_fd, "..data", &st, 0) == 0 && S_ISDIR(st.st_mode));
	fuzz_need(tree->n <= VOLUME_FILES_MAX + 1 && tree->bytes <= VOLUME_BYTES_MAX);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_fd_ int top_fd = fuzz_tmpfs(), fd = -1, root_fd = -1;
	ProtobufCMessage *m = rpc_decode(&nacre__instance__v1__put_files_request__descriptor, data,
					 size, NULL, NULL);
	struct tree_list tree = TREE_LIST_INIT;
	struct error err = ERROR_INIT;
	uint64_t number = 0;

	if (!m)
		return 0;
	fd = openat(top_fd, "outside", O_WRONLY | O_CREAT | O_CLOEXEC, 0400);
	fuzz_need(fd >= 0 && mkdirat(top_fd, "own", 0700) == 0);
	root_fd = openat(top_fd, "own", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (convert_files_back(&tree, (const void *)m, &err) == 0) {
		for (uint64_t n = 1; n <= 2; n++)
			if (generations_put_at(root_fd, &tree, &number, &err) == 0)
				check_inside(root_fd, &tree, n);
	}
	check_outside(top_fd);
	tree_list_done(&tree);
	protobuf_c_message_free_unpacked(m, NULL);
	return 0;
}
