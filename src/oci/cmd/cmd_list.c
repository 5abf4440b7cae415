/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/file/sysio.h"
#include "base/memory/buf.h"
#include "base/text/json.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "oci/cmd/handlers.h"
#include "oci/cmd/report.h"
#include "oci/config/given.h"
#include "oci/launch/container.h"

int oci_state(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	enum container_status status;
	int r;

	(void)args;
	r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	status = container_status(&c);
	container_write_state(&c, status, status == CONTAINER_STOPPED ? 0 : c.pid, false, stdout);
	return EXIT_SUCCESS;
}

static int want_json(const struct args *args, bool *ret, struct error *err)
{
	const char *format = args_value(args, "format") ?: "table";

	*ret = str_eq(format, "json");
	if (*ret || str_eq(format, "table"))
		return 0;
	return error_refuse(err, ERROR_INVALID, "--format is table or json, not %.40s", format);
}

/* ---- list ---- */

static void list_json(struct json *j, const struct container *c, enum container_status status)
{
	json_put_object(j, NULL);
	json_put_string(j, "ociVersion", c->config ? c->config->version : "");
	json_put_string(j, "id", c->id);
	json_put_integer(j, "pid", status == CONTAINER_STOPPED ? 0 : c->pid);
	json_put_string(j, "status", container_status_name(status));
	json_put_string(j, "bundle", c->bundle ? c->bundle : "");
	json_put_string(j, "rootfs", c->rootfs ? c->rootfs : "");
	json_put_string(j, "created", c->created ? c->created : "");
	json_put_object(j, "annotations");
	for (size_t i = 0; c->config && i < c->config->n_annotations; i++)
		json_put_string(j, c->config->annotations[i].name, c->config->annotations[i].value);
	json_put_end(j);
	json_put_string(j, "owner", "root");
	json_put_end(j);
}

static void list_row(const struct container *c, enum container_status status)
{
	(void)printf("%-24s %-8d %-8s %-32s %s\n", c->id,
		     status == CONTAINER_STOPPED ? 0 : (int)c->pid, container_status_name(status),
		     c->created ? c->created : "-", c->bundle ? c->bundle : "-");
}

/* A container that goes away meanwhile is left out, one that cannot be read is told. */
static void list_one(const struct oci *oci, const char *id, struct json *j, bool quiet)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	struct error err = ERROR_INIT;
	enum container_status status;

	if (container_check_id(id, NULL) < 0)
		return;
	if (container_open(&c, oci->root, id, &err) < 0) {
		if (err.kind != ERROR_NOT_FOUND)
			report_warning("%s: %s", id, error_text(&err));
		return;
	}
	status = container_status(&c);
	if (quiet)
		(void)printf("%s\n", c.id);
	else if (j)
		list_json(j, &c, status);
	else
		list_row(&c, status);
}

static int list_compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int oci_list(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_fd_ int fd = given_open(oci->root, O_RDONLY | O_DIRECTORY, 0);
	struct json j = { .to = stdout, .compact = true };
	bool json = false, quiet = args_flag(args, "quiet");
	_cleanup_strv_ char **names = NULL;
	int r;

	r = want_json(args, &json, err);
	if (r < 0)
		return r;
	if (fd < 0 && fd != -ENOENT)
		return error_set(err, fd, "open %s", oci->root);
	r = fd < 0 ? 0 : fd_list_dir(fd, &names);
	if (r < 0)
		return error_set(err, r, "list %s", oci->root);
	if (names)
		qsort(names, strv_len(names), sizeof(*names), list_compare);
	if (json && !quiet)
		json_put_array(&j, NULL);
	else if (!quiet)
		(void)printf("%-24s %-8s %-8s %-32s %s\n", "ID", "PID", "STATUS", "CREATED",
			     "BUNDLE");
	for (size_t i = 0; names && names[i]; i++)
		list_one(oci, names[i], json ? &j : NULL, quiet);
	if (json && !quiet)
		json_put_end(&j);
	return EXIT_SUCCESS;
}

/* ---- ps ---- */

/* The command line with blanks, or the name where it has none. */
static void ps_row(const struct container *c, pid_t pid)
{
	_cleanup_(buf_done) struct buf line = BUF_INIT;
	char name[32];
	uint8_t *data;

	(void)str_printf(name, sizeof(name), "%d/cmdline", (int)pid);
	(void)fd_read_file(c->proc_fd, name, 4096, &line);
	if (line.len == 0) {
		(void)str_printf(name, sizeof(name), "%d/comm", (int)pid);
		(void)fd_read_file(c->proc_fd, name, 4096, &line);
	}
	data = line.len ? line.base + line.head : NULL;
	for (size_t i = 0; i < line.len; i++)
		if (data[i] < 0x20 || data[i] == 0x7f)
			data[i] = ' ';
	(void)printf("%-8d %.*s\n", (int)pid, (int)line.len, data ? (const char *)data : "");
}

int oci_ps(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	struct json j = { .to = stdout, .compact = true };
	_cleanup_fd_ int group = -1;
	bool json = false;
	pid_t *pids = NULL;
	size_t n = 0;
	int r;

	r = want_json(args, &json, err);
	if (r == 0)
		r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	group = container_cgroup(&c, err);
	if (group < 0 && group != -ENOENT)
		return group;
	r = group < 0 ? 0 : cgroup_pids(group, true, &pids, &n, err);
	if (r < 0)
		return r;
	if (json)
		json_put_array(&j, NULL);
	else
		(void)printf("%-8s %s\n", "PID", "COMMAND");
	for (size_t i = 0; i < n; i++) {
		if (json)
			json_put_integer(&j, NULL, pids[i]);
		else
			ps_row(&c, pids[i]);
	}
	if (json)
		json_put_end(&j);
	free(pids);
	return EXIT_SUCCESS;
}
