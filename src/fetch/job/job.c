/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"

#define JOB_MMAP (256 * 1024)

static int job_run(const struct job_program *program, const char *word, struct error *err)
{
	_cleanup_fd_ int to_fd = -1;
	struct fetchmsg request;
	size_t i = 0;
	int r;

	while (i < program->n_commands && !str_eq(program->commands[i].name, word))
		i++;
	if (i == program->n_commands)
		return error_refuse(err, ERROR_INVALID, "unknown command \"%.32s\"", word);
	r = channel_receive(JOB_SOCK_FD, &request, err);
	if (r < 0)
		return r;
	if (request.type != program->commands[i].request)
		return error_refuse(err, ERROR_INVALID, "the wrong request came for \"%s\"", word);
	if (program->commands[i].to_pipe)
		return program->commands[i].run(&request, JOB_TO_FD, err);
	/* A detached mount comes as an O_PATH descriptor. */
	to_fd = sysio_openat(JOB_TO_FD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (to_fd < 0)
		return error_set(err, -errno, "open the directory");
	return program->commands[i].run(&request, to_fd, err);
}

int job_main(const struct job_program *program, int argc, char **argv)
{
	struct error err = ERROR_INIT;

	if (fd_open_standard(program->name) < 0)
		return EXIT_FAILURE;
	if (argc != 2) {
		(void)fprintf(stderr, "%s is started by nacre\n", program->name);
		return EXIT_FAILURE;
	}
	(void)umask(0);
	/* A heap for each thread would reserve more addresses than the limit. */
	(void)mallopt(M_ARENA_MAX, 1);
	/* What is long goes back to the kernel when it is freed, however long that was before. */
	(void)mallopt(M_MMAP_THRESHOLD, JOB_MMAP);
	/* So that libarchive hands names through as they are. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	if (job_run(program, argv[1], &err) == 0)
		return EXIT_SUCCESS;
	channel_send_error(JOB_SOCK_FD, &err);
	return EXIT_FAILURE;
}
