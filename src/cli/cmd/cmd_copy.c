/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/copy/copy.h"
#include "cli/output/alloc.h"
#include "cli/output/text.h"
#include "cli/table/command.h"
#include "loop/loop.h"

/* Exit status where something was left out. */
#define COPY_PARTIAL 1

static int copy_report(const struct cli *cli, const struct copy *c)
{
	struct json j = JSON_INIT(stdout);

	if (cli->json) {
		json_put_object(&j, NULL);
		json_put_unsigned(&j, "entries", c->n_entries);
		json_put_unsigned(&j, "bytes", c->n_bytes);
		json_put_unsigned(&j, "left_out", c->n_left_out);
		json_put_end(&j);
	}
	return c->n_left_out ? COPY_PARTIAL : 0;
}

static int copy_check(const struct cli *cli, const struct copy_place *from,
		      const struct copy_place *to, struct error *err)
{
	if (!from->target == !to->target)
		return error_refuse(
			err, ERROR_INVALID,
			"cp: one of the two is a path in a container (TARGET:/PATH), the other "
			"one of this system, or - for a tar archive");
	if (to->stream && cli->json)
		return error_refuse(err, ERROR_INVALID,
				    "cp: standard output cannot have both a tar archive and JSON");
	return 0;
}

int cmd_cp(const struct cli *cli, const struct args *args)
{
	_cleanup_(copy_place_done) struct copy_place from = { .path = NULL };
	_cleanup_(copy_place_done) struct copy_place to = { .path = NULL };
	struct copy c = { .archive = args_flag(args, "archive"),
			  .follow = args_flag(args, "follow-link"),
			  .quiet = args_flag(args, "quiet"),
			  .archive_fd = STDOUT_FILENO };
	_cleanup_client_ struct client *client = NULL;
	int r;

	r = copy_place_init(&from, args->operands[0], &c.err);
	if (r == 0)
		r = copy_place_init(&to, args->operands[1], &c.err);
	if (r == 0)
		r = copy_check(cli, &from, &to, &c.err);
	if (r < 0)
		return cli_fail(&c.err);
	client = client_open(&cli->daemon, &c.err);
	if (!client)
		return cli_fail(&c.err);
	c.client = client;
	progress_init(&c.progress);
	r = from.target ? copy_from(&c, &from, &to) : copy_to(&c, &from, &to);
	progress_done(&c.progress);
	free(c.file);
	return r < 0 ? cli_fail(&c.err) : copy_report(cli, &c);
}

/* ---- export ---- */

/* The file gets its name when all of it is there. */
struct copy_export {
	struct copy copy;
	struct loop_signal signals;
	int signal; /* that came */
	const char *path;
	char *partial; /* NULL: it is written to as it stands */
	int fd;
};

static void copy_export_signal(struct loop_signal *source, int sig, pid_t sender)
{
	struct copy_export *x = container_of(source, struct copy_export, signals);

	x->signal = sig;
	x->copy.call.done = true;
}

static int copy_export_open(struct copy_export *x)
{
	if (str_eq(x->path, "-")) {
		x->fd = fd_copy(STDOUT_FILENO);
	} else {
		x->partial = xformat("%s.%d.partial", x->path, (int)getpid());
		x->fd = sysio_openat(AT_FDCWD, x->partial,
				     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
	}
	if (x->fd < 0)
		return error_set(&x->copy.err, -errno, "open %s for writing", x->path);
	x->copy.archive_fd = x->fd;
	return 0;
}

static int copy_export_run(struct copy_export *x, char *target, char *container)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	char all[] = "/.", stream[] = "-";
	const struct copy_place from = { .target = target, .container = container, .path = all };
	const struct copy_place to = { .path = stream, .stream = true };
	int r;

	r = loop_signal_init(&x->signals, client_loop(x->copy.client), signals, ARRAY_SIZE(signals),
			     copy_export_signal);
	if (r < 0)
		return error_set(&x->copy.err, r, "listen for signals");
	r = copy_export_open(x);
	if (r < 0)
		return r;
	progress_init(&x->copy.progress);
	r = copy_from(&x->copy, &from, &to);
	progress_done(&x->copy.progress);
	if (r == 0 && !x->signal && x->partial &&
	    sysio_renameat(AT_FDCWD, x->partial, AT_FDCWD, x->path) < 0)
		r = error_set(&x->copy.err, -errno, "give the file the name %s", x->path);
	if ((r < 0 || x->signal) && x->partial)
		(void)sysio_unlinkat(AT_FDCWD, x->partial, 0);
	return r;
}

static int copy_export(const struct cli *cli, const char *path, char *volume, char *target,
		       char *container)
{
	struct copy_export x = { .copy = { .one_mount = true, .archive = true, .volume = volume },
				 .path = path ? path : "-",
				 .fd = -1 };
	_cleanup_client_ struct client *client = NULL;
	int status;

	if (cli->json && str_eq(x.path, "-"))
		return cli_complain("export: standard output cannot have both an archive and JSON");
	client = client_open(&cli->daemon, &x.copy.err);
	if (!client)
		return cli_fail(&x.copy.err);
	x.copy.client = client;
	if (copy_export_run(&x, target, container) < 0 && !x.signal)
		status = cli_fail(&x.copy.err);
	else
		status = x.signal ? 128 + x.signal : copy_report(cli, &x.copy);
	loop_signal_done(&x.signals);
	(void)fd_close(x.fd);
	free(x.partial);
	free(x.copy.file);
	return status;
}

int cmd_export(const struct cli *cli, const struct args *args)
{
	char *container = args_value(args, "container"), none[] = "";

	return copy_export(cli, args_value(args, "file"), NULL, args->operands[0],
			   container ? container : none);
}

/* ---- volumes ---- */

int cmd_volume_export(const struct cli *cli, const struct args *args)
{
	char none[] = "";

	return copy_export(cli, args_value(args, "file"), args->operands[0], none, none);
}

/* The reader of archives reads standard input. */
static int copy_read_file(const char *path, struct error *err)
{
	_cleanup_fd_ int fd = -1;

	if (str_eq(path, "-"))
		return 0;
	fd = sysio_openat(AT_FDCWD, path, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0 || dup3(fd, STDIN_FILENO, 0) < 0)
		return error_set(err, -errno, "open %s", path);
	return 0;
}

int cmd_volume_import(const struct cli *cli, const struct args *args)
{
	char none[] = "", stream[] = "-";
	const struct copy_place from = { .path = stream, .stream = true }, to = { .path = none };
	struct copy c = { .archive = true, .volume = args->operands[0] };
	_cleanup_client_ struct client *client = NULL;
	int r = copy_read_file(args->operands[1], &c.err);

	if (r < 0)
		return cli_fail(&c.err);
	client = client_open(&cli->daemon, &c.err);
	if (!client)
		return cli_fail(&c.err);
	c.client = client;
	progress_init(&c.progress);
	r = copy_to(&c, &from, &to);
	progress_done(&c.progress);
	free(c.file);
	return r < 0 ? cli_fail(&c.err) : copy_report(cli, &c);
}
