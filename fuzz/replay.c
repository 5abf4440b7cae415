/* SPDX-License-Identifier: Apache-2.0 */

/* Gives each file of a folder to a fuzz target: PROGRAM FOLDER. One test, in TAP. */

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "fuzz.h"

#define REPLAY_MAX (1 << 20)

static void replay_file(int dir_fd, const char *name)
{
	_cleanup_fd_ int fd = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	struct buf b = BUF_INIT;
	uint8_t *exact;

	fuzz_need(fd >= 0 && fd_read_all(fd, REPLAY_MAX, &b) == 0);
	printf("# begin %s\n", name);
	/* Of the very length, so that a sanitizer sees the end. */
	exact = malloc(b.len > 0 ? b.len : 1);
	fuzz_need(exact != NULL);
	if (b.len > 0)
		memcpy(exact, buf_data(&b), b.len);
	(void)LLVMFuzzerTestOneInput(exact, b.len);
	free(exact);
	buf_done(&b);
}

int main(int argc, char **argv)
{
	struct dirent **names;
	unsigned n_files = 0;
	int fd, n;

	(void)setvbuf(stdout, NULL, _IOLBF, 0);
	printf("1..1\n");
	if (argc != 2)
		return EXIT_FAILURE;
	fd = open(argv[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	n = fd < 0 ? -1 : scandir(argv[1], &names, NULL, alphasort);
	for (int i = 0; i < n; i++) {
		if (names[i]->d_name[0] != '.') {
			replay_file(fd, names[i]->d_name);
			n_files++;
		}
		free(names[i]);
	}
	if (n >= 0)
		free(names);
	(void)fd_close(fd);
	printf("%sok 1 - %u inputs\n", n_files ? "" : "not ", n_files);
	return n_files ? EXIT_SUCCESS : EXIT_FAILURE;
}
