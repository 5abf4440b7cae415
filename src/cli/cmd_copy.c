/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/fd.h"
#include "base/str.h"
#include "base/tree.h"
#include "cli/alloc.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/handlers.h"
#include "base/json.h"
#include "cli/progress.h"
#include "cli/text.h"
#include "loop/loop.h"

/*
 * A tree travels as entries and data, and is read and written on this side by what the daemon uses
 * on its own (base/tree.h): what a container sends cannot leave the directory that the user named.
 */

#define COPY_PIECE ((size_t)256 * 1024)
/* Exit status where something was left out. */
#define COPY_PARTIAL 1

/* One side of the copy: TARGET[:CONTAINER]:PATH, or a path of this system. */
struct copy_place {
	char *target, *container; /* NULL: here */
	char *path;               /* absolute */
};

struct copy {
	struct client_call call;
	struct progress progress;
	struct tree_source *source;
	struct tree_sink *sink;
	bool archive;
	uint8_t *piece;
	uint64_t n_entries, n_bytes, n_left_out;
	bool in_file;
	uint64_t due; /* bytes of the file in hand that have not come */
	char *file;   /* its path */
	struct error err;
};

static void copy_place_done(struct copy_place *p)
{
	free(p->target);
	free(p->container);
	free(p->path);
	*p = (struct copy_place){ .path = NULL };
}

static void copy_place_local(struct copy_place *p, const char *word)
{
	_cleanup_str_ char *cwd = *word == '/' ? xstrdup("") : getcwd(NULL, 0);

	p->path = xformat("%s%s%s", cwd ? cwd : "", *word == '/' ? "" : "/", word);
}

/* "web:/etc/passwd", "shop:db:/etc"; a word that begins with '/' or '.' is a path of this system,
 * and so is one without ":/". */
static int copy_place_init(struct copy_place *p, const char *word, struct error *err)
{
	const char *path = strstr(word, ":/");
	const char *colon;

	*p = (struct copy_place){ .path = NULL };
	if (!*word)
		return error_refuse(err, ERROR_INVALID, "cp: an empty path");
	if (*word == '/' || *word == '.' || !path) {
		colon = strchr(word, ':');
		if (colon && *word != '/' && *word != '.' && !strchr(word, '/'))
			return error_refuse(
				err, ERROR_INVALID,
				"cp: \"%s\": a path in a container begins with '/' (a file of "
				"this name is \"./%s\")",
				word, word);
		copy_place_local(p, word);
		return 0;
	}
	colon = memchr(word, ':', (size_t)(path - word));
	if (path == word || colon == word || (colon && colon + 1 == path))
		return error_refuse(err, ERROR_INVALID,
				    "cp: \"%s\" is not TARGET:PATH or TARGET:CONTAINER:PATH", word);
	p->target = xformat("%.*s", (int)((colon ? colon : path) - word), word);
	p->container = colon ? xformat("%.*s", (int)(path - colon - 1), colon + 1) : xstrdup("");
	p->path = xstrdup(path + 1);
	return 0;
}

static void copy_warn(struct copy *c, const char *path, const char *why)
{
	progress_done(&c->progress);
	(void)cli_complain("cp: %s is left out: %s", path, why);
	c->n_left_out++;
}

static void copy_tell(struct copy *c)
{
	char bytes[TEXT_SIZE];

	text_bytes(bytes, c->n_bytes);
	progress_tell(&c->progress, "%" PRIu64 " %s, %s: %s", c->n_entries,
		      c->n_entries == 1 ? "entry" : "entries", bytes, c->file ? c->file : "");
}

static void copy_set_file(struct copy *c, const char *path)
{
	free(c->file);
	c->file = xstrdup(path);
}

/* ---- out of a container ---- */

/* Less has come than was told: it has shrunk. */
static void copy_from_check(struct copy *c)
{
	if (c->in_file && c->due > 0)
		copy_warn(c, c->file, "its end, it became shorter while it was read");
	c->in_file = false;
}

static int copy_from_entry(struct copy *c, const Nacre__V1__CopyEntry *m)
{
	static const enum tree_type types[] = { TREE_OTHER, TREE_FILE, TREE_DIRECTORY, TREE_LINK };
	_cleanup_str_ char *path = xformat("%.*s", (int)m->path.len, (const char *)m->path.data);
	_cleanup_str_ char *target =
		xformat("%.*s", (int)m->link_target.len, (const char *)m->link_target.data);
	const struct tree_entry e = {
		.type = (size_t)m->type < ARRAY_SIZE(types) ? types[m->type] : TREE_OTHER,
		.path = path,
		/* Who may become whom is not a stranger's to say. */
		.mode = (mode_t)m->mode & (c->archive ? 07777 : 0777),
		.uid = m->uid,
		.gid = m->gid,
		.mtime = m->mtime,
		.target = target,
	};

	copy_from_check(c);
	copy_set_file(c, path);
	if (e.type == TREE_OTHER) {
		copy_warn(c, path, *m->reason ? m->reason : "it is of an unknown kind");
		return 0;
	}
	c->n_entries++;
	c->in_file = e.type == TREE_FILE;
	c->due = m->size;
	return tree_sink_entry(c->sink, &e, c->archive, &c->err);
}

static void copy_from_message(struct client_call *call, const ProtobufCMessage *message)
{
	struct copy *c = container_of(call, struct copy, call);
	const Nacre__V1__CopyFromResponse *m =
		(const Nacre__V1__CopyFromResponse *)(const void *)message;
	int r = 0;

	if (m->entry)
		r = copy_from_entry(c, m->entry);
	if (r == 0 && m->data.len > 0) {
		r = tree_sink_write(c->sink, m->data.data, m->data.len, &c->err);
		c->n_bytes += m->data.len;
		c->due -= MIN(c->due, m->data.len);
	}
	if (r < 0)
		call->done = true;
	copy_tell(c);
}

static int copy_from(struct copy *c, struct client *client, const struct copy_place *from,
		     const struct copy_place *to)
{
	Nacre__V1__CopyFromRequest request = NACRE__V1__COPY_FROM_REQUEST__INIT;
	_cleanup_fd_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	r = tree_sink_open(&c->sink, root_fd, to->path, &c->err);
	if (r < 0)
		return r;
	request.target = from->target;
	request.container = from->container;
	request.path = from->path;
	c->call.type = &nacre__v1__copy_from_response__descriptor;
	c->call.on_message = copy_from_message;
	client_call_start(client, &c->call, "/nacre.v1.WorkloadService/CopyFrom", &request.base);
	(void)client_call_wait(client, &c->call);
	if (c->err.code)
		return c->err.code;
	if (c->call.err.code)
		return error_copy(&c->err, &c->call.err);
	copy_from_check(c);
	return tree_sink_finish(c->sink, &c->err);
}

/* ---- into a container ---- */

static void copy_to_entry(struct copy *c, const struct tree_entry *e)
{
	static const Nacre__V1__CopyEntry__Type types[] = {
		[TREE_FILE] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_FILE,
		[TREE_DIRECTORY] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_DIRECTORY,
		[TREE_LINK] = NACRE__V1__COPY_ENTRY__TYPE__TYPE_LINK,
	};
	Nacre__V1__CopyToRequest m = NACRE__V1__COPY_TO_REQUEST__INIT;
	Nacre__V1__CopyEntry entry = NACRE__V1__COPY_ENTRY__INIT;

	entry.type = types[e->type];
	entry.path.data = (uint8_t *)(uintptr_t)e->path;
	entry.path.len = strlen(e->path);
	entry.mode = e->mode & (c->archive ? 07777U : 0777U);
	entry.uid = c->archive ? e->uid : 0;
	entry.gid = c->archive ? e->gid : 0;
	entry.mtime = e->mtime;
	entry.size = e->size;
	if (e->target) {
		entry.link_target.data = (uint8_t *)(uintptr_t)e->target;
		entry.link_target.len = strlen(e->target);
	}
	m.entry = &entry;
	c->n_entries++;
	c->in_file = e->type == TREE_FILE;
	client_call_send(&c->call, &m.base);
}

/* One message; 0 where there is nothing more to send. */
static int copy_to_step(struct copy *c)
{
	Nacre__V1__CopyToRequest m = NACRE__V1__COPY_TO_REQUEST__INIT;
	struct tree_entry e;
	ssize_t n;
	int r;

	if (!c->in_file) {
		r = tree_source_next(c->source, &e, &c->err);
		if (r <= 0)
			return r;
		copy_set_file(c, e.path);
		if (e.type == TREE_OTHER)
			copy_warn(c, e.path, e.reason);
		else
			copy_to_entry(c, &e);
		return 1;
	}
	n = tree_source_read(c->source, c->piece, COPY_PIECE, &c->err);
	if (n < 0)
		return (int)n;
	c->in_file = n > 0;
	if (n == 0)
		return 1;
	m.data.data = c->piece;
	m.data.len = (size_t)n;
	c->n_bytes += (uint64_t)n;
	client_call_send(&c->call, &m.base);
	return 1;
}

static int copy_to(struct copy *c, struct client *client, const struct copy_place *from,
		   const struct copy_place *to)
{
	Nacre__V1__CopyToRequest request = NACRE__V1__COPY_TO_REQUEST__INIT;
	_cleanup_fd_ int root_fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	r = tree_source_open(&c->source, root_fd, from->path, "root", &c->err);
	if (r < 0)
		return r;
	c->piece = xrealloc(NULL, COPY_PIECE, 1);
	request.target = to->target;
	request.container = to->container;
	request.path = to->path;
	c->call.type = &nacre__v1__copy_to_response__descriptor;
	c->call.more = true;
	client_call_start(client, &c->call, "/nacre.v1.WorkloadService/CopyTo", &request.base);
	for (r = 1; r > 0 && !c->call.done;) {
		copy_tell(c);
		/* What the daemon says meanwhile is heard between two messages. */
		loop_turn(client_loop(client), !client_call_writable(&c->call));
		if (client_call_writable(&c->call))
			r = copy_to_step(c);
	}
	if (r < 0)
		return r;
	client_call_close_send(&c->call);
	(void)client_call_wait(client, &c->call);
	return error_copy(&c->err, &c->call.err);
}

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

int cmd_cp(const struct cli *cli, const struct args *args)
{
	_cleanup_(copy_place_done) struct copy_place from = { .path = NULL };
	_cleanup_(copy_place_done) struct copy_place to = { .path = NULL };
	struct copy c = { .archive = args_flag(args, "archive") };
	_cleanup_client_ struct client *client = NULL;
	int r;

	r = copy_place_init(&from, args->operands[0], &c.err);
	if (r == 0)
		r = copy_place_init(&to, args->operands[1], &c.err);
	if (r == 0 && !from.target == !to.target)
		r = error_refuse(
			&c.err, ERROR_INVALID,
			"cp: one of the two is a path in a container (TARGET:/PATH), the other "
			"one of this system");
	if (r < 0)
		return cli_fail(&c.err);
	client = client_open(cli->socket, &c.err);
	if (!client)
		return cli_fail(&c.err);
	progress_init(&c.progress);
	r = from.target ? copy_from(&c, client, &from, &to) : copy_to(&c, client, &from, &to);
	client_call_done(&c.call);
	c.source = tree_source_free(c.source);
	c.sink = tree_sink_free(c.sink);
	progress_done(&c.progress);
	free(c.piece);
	free(c.file);
	return r < 0 ? cli_fail(&c.err) : copy_report(cli, &c);
}
