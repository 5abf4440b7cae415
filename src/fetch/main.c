/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-fetch: the part of nacre that looks at images made by strangers. The core starts it in new
 * namespaces with two to four descriptors and one of these words:
 *
 *   nacre-fetch read     3: socket, 4: the archive (a file or a directory), 5: staging directory
 *   nacre-fetch unpack   3: socket, 4: a blob, 5: the directory of one layer, 6 (where the request
 *                        says `follow`): the pipe that tells how far the blob is there
 *
 *   nacre-fetch export   3: socket, 4: the directory of the blobs, 5: a pipe, for the archive
 *
 *   nacre-fetch pull     3: socket, 5: staging directory; with the machine's network
 *   nacre-fetch push     the same, with a directory that stays as it is
 *   nacre-fetch list     the same, with a directory that stays as it is
 *
 * It waits for its request (wire/fetchmsg.h), closes the sandbox around itself, answers, and ends.
 * What it says is checked by the core; what it needs of the machine is in those descriptors.
 */

#include <errno.h>
#include <fcntl.h>
#include <locale.h>
#include <malloc.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/fd.h"
#include "base/str.h"
#include "base/sysio.h"
#include "fetch/channel.h"
#include "fetch/docker.h"
#include "fetch/export.h"
#include "fetch/hash.h"
#include "fetch/list.h"
#include "fetch/network.h"
#include "fetch/oci.h"
#include "fetch/pull.h"
#include "fetch/push.h"
#include "fetch/reading.h"
#include "fetch/sandbox.h"
#include "fetch/source.h"
#include "fetch/unpack.h"

enum { FETCH_SOCK_FD = 3, FETCH_FROM_FD = 4, FETCH_TO_FD = 5, FETCH_PIPE_FD = 6 };

static void reading_done(struct reading *r)
{
	r->source = source_free(r->source);
	staging_done(&r->staging);
}

static int main_read(const struct fetchmsg *request, int to_fd, struct error *err)
{
	_cleanup_(reading_done) struct reading r = {
		.staging = { .dir_fd = to_fd,
			     .sock_fd = FETCH_SOCK_FD,
			     .max_bytes = request->read.max_bytes,
			     .blobs = MAP_INIT },
		.sock_fd = FETCH_SOCK_FD,
	};
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	int code;

	(void)str_copy(r.architecture, sizeof(r.architecture), request->read.architecture);
	code = source_open(&r.source, FETCH_FROM_FD, to_fd, request->read.max_bytes, err);
	if (code < 0)
		return code;
	/* An archive of a newer Docker is both; its OCI side says more. */
	if (source_has(r.source, "oci-layout") && source_has(r.source, "index.json"))
		code = oci_read(&r, err);
	else if (source_has(r.source, "manifest.json"))
		code = docker_read(&r, err);
	else
		code = error_refuse(
			err, ERROR_INVALID,
			"this is neither an OCI image layout (no oci-layout and index.json) nor "
			"an archive of `docker save` (no manifest.json)");
	if (code < 0)
		return code;
	done.done.n_images = r.n_images;
	return channel_send(FETCH_SOCK_FD, &done, err);
}

static int main_unpack(const struct fetchmsg *request, int to_fd, struct error *err)
{
	struct fetchmsg answer;
	int r;

	r = unpack_run(request, FETCH_FROM_FD, request->unpack.follow ? FETCH_PIPE_FD : -1, to_fd,
		       &answer, err);
	return r == 0 ? channel_send(FETCH_SOCK_FD, &answer, err) : r;
}

/* What the machine is needed for comes first, then the sandbox closes, then strangers are heard. */
static int main_network(const struct fetchmsg *request, int to_fd, struct error *err)
{
	static struct network n;
	const enum fetchmsg_type type = request->type;
	int r;

	r = network_open(&n, FETCH_SOCK_FD, request, err);
	if (r == 0)
		r = sandbox_enter(SANDBOX_NETWORK, to_fd, -1, FETCH_BYTES_MAX, err);
	if (r == 0 && type == FETCHMSG_PULL)
		r = pull_run(&n, to_fd, err);
	else if (r == 0 && type == FETCHMSG_PUSH)
		r = push_run(&n, err);
	else if (r == 0)
		r = list_run(&n, err);
	network_close(&n);
	return r;
}

static int main_run_read(const struct fetchmsg *request, int to_fd, struct error *err)
{
	int r = sandbox_enter(SANDBOX_READ, to_fd, FETCH_FROM_FD, request->read.max_bytes, err);

	return r == 0 ? main_read(request, to_fd, err) : r;
}

static int main_run_unpack(const struct fetchmsg *request, int to_fd, struct error *err)
{
	int r = sandbox_enter(SANDBOX_UNPACK, to_fd, FETCH_FROM_FD, request->unpack.max_bytes, err);

	return r == 0 ? main_unpack(request, to_fd, err) : r;
}

static int main_run_export(const struct fetchmsg *request, int to_fd, struct error *err)
{
	const struct fetchmsg copy = *request;
	_cleanup_fd_ int blobs_fd =
		sysio_openat(FETCH_FROM_FD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (blobs_fd < 0)
		return error_set(err, -errno, "open the directory of the blobs");
	r = sandbox_enter(SANDBOX_EXPORT, -1, blobs_fd, 0, err);
	return r == 0 ? export_run(FETCH_SOCK_FD, &copy, blobs_fd, to_fd, err) : r;
}

static const struct {
	const char *name;
	enum fetchmsg_type request;
	int (*run)(const struct fetchmsg *request, int to_fd, struct error *err);
	bool to_pipe; /* in place of a directory */
} commands[] = {
	{ "read", FETCHMSG_READ, main_run_read, false },
	{ "unpack", FETCHMSG_UNPACK, main_run_unpack, false },
	{ "export", FETCHMSG_EXPORT, main_run_export, true },
	{ "pull", FETCHMSG_PULL, main_network, false },
	{ "push", FETCHMSG_PUSH, main_network, false },
	{ "list", FETCHMSG_LIST, main_network, false },
};

static int main_run(const char *word, struct error *err)
{
	_cleanup_fd_ int to_fd = -1;
	struct fetchmsg request;
	size_t i = 0;
	int r;

	while (i < ARRAY_SIZE(commands) && !str_eq(commands[i].name, word))
		i++;
	if (i == ARRAY_SIZE(commands))
		return error_refuse(err, ERROR_INVALID, "unknown command \"%.32s\"", word);
	r = channel_receive(FETCH_SOCK_FD, &request, err);
	if (r < 0)
		return r;
	if (request.type != commands[i].request)
		return error_refuse(err, ERROR_INVALID, "the wrong request came for \"%s\"", word);
	if (commands[i].to_pipe)
		return commands[i].run(&request, FETCH_TO_FD, err);
	/* A detached mount comes as an O_PATH descriptor. */
	to_fd = sysio_openat(FETCH_TO_FD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (to_fd < 0)
		return error_set(err, -errno, "open the directory");
	return commands[i].run(&request, to_fd, err);
}

int main(int argc, char **argv)
{
	struct error err = ERROR_INIT;
	int r;

	if (argc != 2) {
		(void)fputs("nacre-fetch is started by nacre\n", stderr);
		return EXIT_FAILURE;
	}
	(void)umask(0);
	/* A heap for each thread would reserve more addresses than the limit. */
	(void)mallopt(M_ARENA_MAX, 1);
	/* So that libarchive hands names through as they are. */
	(void)setlocale(LC_CTYPE, "C.UTF-8");
	r = hash_prepare();
	if (r < 0)
		(void)error_set(&err, r, "start libcrypto");
	else
		r = main_run(argv[1], &err);
	if (r < 0)
		channel_send_error(FETCH_SOCK_FD, &err);
	return r < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
