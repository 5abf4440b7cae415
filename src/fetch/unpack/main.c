/* SPDX-License-Identifier: Apache-2.0 */

/*
 * nacre-fetch: the part of nacre that looks at archives made by strangers. The core starts it in
 * new namespaces, without a network, with three or four descriptors and one of these words:
 *
 *   nacre-fetch read     3: socket, 4: the archive (a file or a directory), 5: staging directory
 *   nacre-fetch unpack   3: socket, 4: a blob, 5: the directory of one layer, 6 (where the request
 *                        says `follow`): the pipe that tells how far the blob is there
 *   nacre-fetch unpack-apart   likewise, but 6: the mount namespace whose root is its own from then
 *                        on, 7: the pipe; it was started in the core's, and goes there before it
 *                        looks at the blob
 *   nacre-fetch export   3: socket, 4: the directory of the blobs, 5: a pipe, for the archive
 *   nacre-fetch profile  3: socket, 4: a seccomp profile, 5: where the filter goes
 *   nacre-fetch cdi      3: socket, 4: devices and files of vendors, 5: where the changes go
 *
 * What speaks to registries is another program (transfer.c): one of these starts for each layer,
 * and most libraries are for the network.
 */

#include <errno.h>
#include <fcntl.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/job/job.h"
#include "fetch/job/oci.h"
#include "fetch/job/sandbox.h"
#include "fetch/unpack/cdi.h"
#include "fetch/unpack/docker.h"
#include "fetch/unpack/export.h"
#include "fetch/unpack/profile.h"
#include "fetch/unpack/reading.h"
#include "fetch/unpack/roottar.h"
#include "fetch/unpack/source.h"
#include "fetch/unpack/unpack.h"

static void reading_done(struct reading *r)
{
	r->source = source_free(r->source);
	staging_done(&r->staging);
}

static int main_read_archive(struct reading *r, uint64_t max_bytes, struct error *err)
{
	int code = source_open(&r->source, JOB_FROM_FD, r->staging.dir_fd, max_bytes, err);

	if (code < 0)
		return code;
	/* An archive of a newer Docker is both; its OCI side says more. */
	if (source_has(r->source, "oci-layout") && source_has(r->source, "index.json"))
		return oci_read(r, err);
	if (source_has(r->source, "manifest.json"))
		return docker_read(r, err);
	return error_refuse(err, ERROR_INVALID,
			    "this is neither an OCI image layout (no oci-layout and index.json) "
			    "nor an archive of `docker save` (no manifest.json); the tar of a root "
			    "file system is imported with --root");
}

static int main_read(const struct fetchmsg *request, int to_fd, struct error *err)
{
	_cleanup_(reading_done) struct reading r = {
		.staging = { .dir_fd = to_fd,
			     .sock_fd = JOB_SOCK_FD,
			     .max_bytes = request->read.max_bytes,
			     .blobs = MAP_INIT },
		.sock_fd = JOB_SOCK_FD,
		.choice = CHOICE_INIT(request->read.ref, request->read.repository),
	};
	struct fetchmsg done = { .type = FETCHMSG_DONE };
	int code;

	(void)str_copy(r.architecture, sizeof(r.architecture), request->read.architecture);
	if (*request->read.config)
		code = roottar_read(&r, JOB_FROM_FD, request->read.config, err);
	else
		code = main_read_archive(&r, request->read.max_bytes, err);
	if (code < 0)
		return code;
	done.done.n_images = r.n_images;
	return channel_send(JOB_SOCK_FD, &done, err);
}

static int main_unpack(const struct fetchmsg *request, int pipe_fd, int to_fd, struct error *err)
{
	struct fetchmsg answer;
	int r;

	r = unpack_run(request, JOB_FROM_FD, request->unpack.follow ? pipe_fd : -1, to_fd,
		       JOB_SOCK_FD, &answer, err);
	return r == 0 ? channel_send(JOB_SOCK_FD, &answer, err) : r;
}

static int main_run_read(const struct fetchmsg *request, int to_fd, struct error *err)
{
	int r = sandbox_enter(SANDBOX_READ, to_fd, JOB_FROM_FD, request->read.max_bytes, err);

	return r == 0 ? main_read(request, to_fd, err) : r;
}

static int main_run_unpack(const struct fetchmsg *request, int to_fd, struct error *err)
{
	int r = sandbox_enter(SANDBOX_UNPACK, to_fd, JOB_FROM_FD, request->unpack.max_bytes, err);

	return r == 0 ? main_unpack(request, JOB_PIPE_FD, to_fd, err) : r;
}

static int main_run_unpack_apart(const struct fetchmsg *request, int to_fd, struct error *err)
{
	int r = sandbox_enter_apart(SANDBOX_UNPACK, JOB_ROOT_FD, to_fd, JOB_FROM_FD,
				    request->unpack.max_bytes, err);

	return r == 0 ? main_unpack(request, JOB_ROOT_PIPE_FD, to_fd, err) : r;
}

static int main_run_export(const struct fetchmsg *request, int to_fd, struct error *err)
{
	const struct fetchmsg copy = *request;
	_cleanup_fd_ int blobs_fd =
		sysio_openat(JOB_FROM_FD, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	int r;

	if (blobs_fd < 0)
		return error_set(err, -errno, "open the directory of the blobs");
	r = sandbox_enter(SANDBOX_EXPORT, -1, blobs_fd, 0, err);
	return r == 0 ? export_run(JOB_SOCK_FD, &copy, blobs_fd, to_fd, err) : r;
}

static int main_run_profile(const struct fetchmsg *request, int to_fd, struct error *err)
{
	struct profile_place place;
	int r = profile_find_place(&place, request->profile.caps, err);

	if (r == 0)
		r = sandbox_enter(SANDBOX_EXPORT, -1, JOB_FROM_FD,
				  FETCH_INSNS_MAX * sizeof(struct sock_filter), err);
	return r == 0 ? profile_run(&place, JOB_FROM_FD, to_fd, JOB_SOCK_FD, err) : r;
}

static int main_run_cdi(const struct fetchmsg *request, int to_fd, struct error *err)
{
	int r = sandbox_enter(SANDBOX_EXPORT, -1, JOB_FROM_FD, CDI_ANSWER_MAX, err);

	(void)request;
	return r == 0 ? cdi_run(JOB_FROM_FD, to_fd, JOB_SOCK_FD, err) : r;
}

static const struct job_command commands[] = {
	{ "read", FETCHMSG_READ, main_run_read, false },
	{ "unpack", FETCHMSG_UNPACK, main_run_unpack, false },
	{ "unpack-apart", FETCHMSG_UNPACK, main_run_unpack_apart, false },
	{ "export", FETCHMSG_EXPORT, main_run_export, true },
	{ "profile", FETCHMSG_PROFILE, main_run_profile, true },
	{ "cdi", FETCHMSG_CDI, main_run_cdi, true },
};

int main(int argc, char **argv)
{
	return job_main(&(struct job_program){ .name = "nacre-fetch",
					       .commands = commands,
					       .n_commands = ARRAY_SIZE(commands) },
			argc, argv);
}
