/* SPDX-License-Identifier: Apache-2.0 */

/*
 * The daemon gives a tar; what becomes of it is decided here, with the rights of whoever asks. A
 * file gets its name when all of it is there; a directory, or part of a file, that did not become
 * whole is taken away.
 */

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/cmd/pull.h"
#include "cli/images/layout.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/progress.h"
#include "cli/output/text.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"
#include "loop/loop.h"

enum export_form { EXPORT_OCI_DIR, EXPORT_OCI_ARCHIVE, EXPORT_DOCKER_ARCHIVE, EXPORT_FORM_COUNT };

static const struct {
	const char *name;
	char format[8]; /* of the request */
} export_forms[EXPORT_FORM_COUNT] = {
	[EXPORT_OCI_DIR] = { "oci-dir", "oci" },
	[EXPORT_OCI_ARCHIVE] = { "oci-archive", "oci" },
	[EXPORT_DOCKER_ARCHIVE] = { "docker-archive", "docker" },
};

struct export
{
	struct client_call call;
	struct progress progress;
	struct loop_signal signals;
	int signal; /* that came */
	enum export_form form;
	const char *path;
	char *partial; /* of a file, until it is whole; NULL: it is written to as it stands */
	int fd;
	struct layout layout;
	uint64_t n_bytes;
	Nacre__V1__ExportedImage **images; /* for JSON */
	size_t n_images;
	struct error err;
};

static void export_fail(struct export *x, int r)
{
	if (r < 0)
		x->call.done = true;
}

static void export_keep_image(struct export *x, const Nacre__V1__ExportedImage *image)
{
	size_t len = nacre__v1__exported_image__get_packed_size(image);
	uint8_t *packed = xrealloc(NULL, len + 1, 1);

	(void)nacre__v1__exported_image__pack(image, packed);
	x->images = xrealloc(x->images, x->n_images + 1, sizeof(Nacre__V1__ExportedImage *));
	x->images[x->n_images] = nacre__v1__exported_image__unpack(NULL, len, packed);
	free(packed);
	if (x->images[x->n_images])
		x->n_images++;
}

static void export_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct export *x = container_of(call, struct export, call);
	const Nacre__V1__ExportResponse *m = (const Nacre__V1__ExportResponse *)message;
	char size[TEXT_SIZE];
	int r = 0;

	if (m->image)
		export_keep_image(x, m->image);
	if (!m->data.len)
		return;
	if (x->form == EXPORT_OCI_DIR)
		r = layout_add(&x->layout, m->data.data, m->data.len, &x->err);
	else
		r = fd_write_full(x->fd, m->data.data, m->data.len);
	if (r < 0 && !x->err.code)
		(void)error_set(&x->err, r, "write %s", x->path);
	export_fail(x, r);
	x->n_bytes += m->data.len;
	text_bytes(size, x->n_bytes);
	progress_tell(&x->progress, "%s written", size);
}

static void export_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct export *x = container_of(source, struct export, signals);

	x->signal = sig;
	x->call.done = true;
}

/* ---- where it goes ---- */

/* Whether the path names something that is written to as it stands: a pipe, a device. */
static bool export_is_special(const char *path)
{
	_cleanup_fd_ int fd = sysio_openat(AT_FDCWD, path, O_PATH | O_CLOEXEC, 0);
	struct stat st;

	return fd >= 0 && fstat(fd, &st) == 0 && !S_ISREG(st.st_mode) && !S_ISDIR(st.st_mode);
}

static int export_open_file(struct export *x)
{
	if (str_eq(x->path, "-")) {
		if (isatty(STDOUT_FILENO))
			return error_refuse(&x->err, ERROR_INVALID,
					    "an archive is not for a terminal: name a file");
		x->fd = fd_copy(STDOUT_FILENO);
	} else if (export_is_special(x->path)) {
		x->fd = sysio_openat(AT_FDCWD, x->path, O_WRONLY | O_NOCTTY | O_CLOEXEC, 0);
	} else {
		x->partial = xformat("%s.%d.partial", x->path, (int)getpid());
		x->fd = sysio_openat(AT_FDCWD, x->partial,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	}
	if (x->fd >= 0)
		return 0;
	if (x->partial) {
		free(x->partial);
		x->partial = NULL;
	}
	return error_set(&x->err, -errno, "open %s for writing", x->path);
}

static int export_open(struct export *x)
{
	return x->form == EXPORT_OCI_DIR ? layout_open(&x->layout, x->path, &x->err)
					 : export_open_file(x);
}

/* All has come: it gets its name. */
static int export_commit(struct export *x)
{
	if (x->form == EXPORT_OCI_DIR)
		return layout_finish(&x->layout, &x->err);
	if (x->partial && sysio_renameat(AT_FDCWD, x->partial, AT_FDCWD, x->path) < 0)
		return error_set(&x->err, -errno, "give the file the name %s", x->path);
	return 0;
}

static void export_undo(struct export *x)
{
	if (x->form == EXPORT_OCI_DIR)
		layout_undo(&x->layout);
	else if (x->partial)
		(void)sysio_unlinkat(AT_FDCWD, x->partial, 0);
}

static void export_done(struct export *x)
{
	loop_signal_done(&x->signals);
	layout_done(&x->layout);
	(void)fd_close(x->fd);
	free(x->partial);
	for (size_t i = 0; i < x->n_images; i++)
		nacre__v1__exported_image__free_unpacked(x->images[i], NULL);
	free(x->images);
}

/* ---- */

static void export_show(const struct export *x)
{
	struct json j = JSON_INIT(stdout);

	json_put_object(&j, NULL);
	json_put_string(&j, "format", export_forms[x->form].name);
	json_put_string(&j, "path", x->path);
	json_put_unsigned(&j, "bytes", x->n_bytes);
	json_put_array(&j, "images");
	for (size_t i = 0; i < x->n_images; i++) {
		json_put_object(&j, NULL);
		json_put_string(&j, "id", x->images[i]->id);
		json_put_string(&j, "digest", x->images[i]->digest);
		json_put_array(&j, "names");
		for (size_t k = 0; k < x->images[i]->n_names; k++)
			json_put_string(&j, NULL, x->images[i]->names[k]);
		json_put_end(&j);
		json_put_end(&j);
	}
	json_put_end(&j);
	json_put_end(&j);
}

/* Of the image that is not there the error names the position. */
static void export_hint(struct export *x, const Nacre__V1__ExportRequest *request)
{
	for (size_t i = 0; i < request->n_images; i++) {
		char field[32];

		(void)str_printf(field, sizeof(field), "images[%zu]", i);
		if (str_eq(x->err.field, field))
			pull_hint(&x->err, request->images[i]);
	}
}

static int export_run(struct export *x, struct client *client, const ProtobufCMessage *request)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	int r;

	r = loop_signal_init(&x->signals, client_loop(client), signals, ARRAY_SIZE(signals),
			     export_signal);
	if (r < 0)
		return error_set(&x->err, r, "listen for signals");
	r = export_open(x);
	if (r < 0)
		return r;
	progress_init(&x->progress);
	client_call_start(client, &x->call, "/nacre.v1.ImageService/Export", request);
	(void)client_call_wait(client, &x->call);
	progress_done(&x->progress);
	if (!x->err.code)
		(void)error_copy(&x->err, &x->call.err);
	client_call_done(&x->call);
	if (!x->err.code && !x->signal)
		(void)export_commit(x);
	if (x->err.code || x->signal)
		export_undo(x);
	return x->err.code;
}

/* What there is, or how the name ends, says what is meant where nobody does. */
static int export_choose(struct export *x, const char *word)
{
	_cleanup_fd_ int dir_fd = -1;
	size_t len = strlen(x->path);

	for (size_t i = 0; word && i < EXPORT_FORM_COUNT; i++) {
		if (!str_eq(export_forms[i].name, word))
			continue;
		x->form = (enum export_form)i;
		return x->form == EXPORT_OCI_DIR && str_eq(x->path, "-")
			       ? error_refuse(&x->err, ERROR_INVALID, "oci-dir needs a directory")
			       : 0;
	}
	if (word)
		return error_refuse(&x->err, ERROR_INVALID,
				    "--format: \"%.40s\" is none of oci-dir, oci-archive, "
				    "docker-archive",
				    word);
	dir_fd = sysio_openat(AT_FDCWD, x->path, O_PATH | O_DIRECTORY | O_CLOEXEC, 0);
	x->form = dir_fd >= 0 || (len && x->path[len - 1] == '/') ? EXPORT_OCI_DIR
								  : EXPORT_DOCKER_ARCHIVE;
	return 0;
}

int cmd_image_export(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ExportRequest request = NACRE__V1__EXPORT_REQUEST__INIT;
	struct export x = {
		.call = { .type = &nacre__v1__export_response__descriptor,
			  .on_message = export_message },
		.path = args->operands[args->n_operands - 1],
		.fd = -1,
		.layout = { .dir_fd = -1, .file_fd = -1 },
		.err = ERROR_INIT,
	};
	_cleanup_client_ struct client *client = NULL;
	char format[sizeof(export_forms[0].format)];
	int status = 0;

	if (export_choose(&x, args_value(args, "format")) < 0)
		return cli_fail(&x.err);
	(void)str_copy(format, sizeof(format), export_forms[x.form].format);
	request.format = format;
	request.images = args->operands;
	request.n_images = args->n_operands - 1;
	client = client_open(&cli->daemon, &x.err);
	if (!client)
		return cli_fail(&x.err);
	if (export_run(&x, client, &request.base) < 0) {
		export_hint(&x, &request);
		status = cli_fail(&x.err);
	} else if (x.signal)
		status = 128 + x.signal;
	else if (cli->json && !str_eq(x.path, "-"))
		export_show(&x);
	export_done(&x);
	return status;
}
