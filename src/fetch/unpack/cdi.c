/* SPDX-License-Identifier: Apache-2.0 */
#include "fetch/unpack/cdi.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/macros.h"
#include "base/memory/arena.h"
#include "base/text/str.h"
#include "fetch/job/channel.h"
#include "fetch/unpack/yaml.h"
#include "wire/document/jsonread.h"

#define CDI_MEMORY_MAX ((size_t)64 << 20)
#define CDI_NAME_MAX 256

#define FIELD(type, key, member, kind, ...)                                                        \
	{                                                                                          \
		.name = (key), .want = (kind), .offset = offsetof(struct type, member),            \
		__VA_ARGS__                                                                        \
	}
#define COUNT(type, member) .count_offset = offsetof(struct type, member)
#define OF(type, table)                                                                            \
	.size = sizeof(struct type), .fields = table##_fields,                                     \
	.n_fields = ARRAY_SIZE(table##_fields)

/* ---- the form of a file ---- */

struct cdi_node {
	const char *path, *host_path, *type, *permissions;
	struct json_uint mode, uid, gid;
};

struct cdi_mount {
	const char *host_path, *container_path, *type;
	const char **options;
	size_t n_options;
};

struct cdi_hook {
	const char *name, *path;
};

struct cdi_net {
	const char *name;
};

struct cdi_rdt {
	const char *id;
};

struct cdi_edits {
	const char **env;
	const struct cdi_node *nodes;
	const struct cdi_mount *mounts;
	const struct cdi_hook *hooks;
	const struct cdi_net *nets;
	const struct cdi_rdt *rdt;
	const uint64_t *groups;
	size_t n_env, n_nodes, n_mounts, n_hooks, n_nets, n_groups;
};

struct cdi_device {
	const char *name;
	const struct cdi_edits *edits;
};

struct cdi_file {
	const char *version, *kind;
	const struct cdi_device *devices;
	size_t n_devices;
	const struct cdi_edits *edits;
	/* Not of the document. */
	const char *path, *dir;
	bool used;
};

static const struct json_field node_fields[] = {
	FIELD(cdi_node, "path", path, JSON_TO_TEXT, .required = true),
	FIELD(cdi_node, "hostPath", host_path, JSON_TO_TEXT),
	FIELD(cdi_node, "type", type, JSON_TO_TEXT),
	FIELD(cdi_node, "permissions", permissions, JSON_TO_TEXT),
	FIELD(cdi_node, "fileMode", mode, JSON_TO_UINT),
	FIELD(cdi_node, "uid", uid, JSON_TO_UINT),
	FIELD(cdi_node, "gid", gid, JSON_TO_UINT),
};

static const struct json_field mount_fields[] = {
	FIELD(cdi_mount, "hostPath", host_path, JSON_TO_TEXT, .required = true),
	FIELD(cdi_mount, "containerPath", container_path, JSON_TO_TEXT, .required = true),
	FIELD(cdi_mount, "type", type, JSON_TO_TEXT),
	FIELD(cdi_mount, "options", options, JSON_TO_TEXTS, COUNT(cdi_mount, n_options)),
};

static const struct json_field hook_fields[] = {
	FIELD(cdi_hook, "hookName", name, JSON_TO_TEXT, .required = true),
	FIELD(cdi_hook, "path", path, JSON_TO_TEXT, .required = true),
};

static const struct json_field net_fields[] = {
	FIELD(cdi_net, "name", name, JSON_TO_TEXT),
};

static const struct json_field rdt_fields[] = {
	FIELD(cdi_rdt, "closID", id, JSON_TO_TEXT),
};

static const struct json_field edits_fields[] = {
	FIELD(cdi_edits, "env", env, JSON_TO_TEXTS, COUNT(cdi_edits, n_env)),
	FIELD(cdi_edits, "deviceNodes", nodes, JSON_TO_LIST, OF(cdi_node, node),
	      COUNT(cdi_edits, n_nodes)),
	FIELD(cdi_edits, "mounts", mounts, JSON_TO_LIST, OF(cdi_mount, mount),
	      COUNT(cdi_edits, n_mounts)),
	FIELD(cdi_edits, "hooks", hooks, JSON_TO_LIST, OF(cdi_hook, hook),
	      COUNT(cdi_edits, n_hooks)),
	FIELD(cdi_edits, "netDevices", nets, JSON_TO_LIST, OF(cdi_net, net),
	      COUNT(cdi_edits, n_nets)),
	FIELD(cdi_edits, "intelRdt", rdt, JSON_TO_ONE, OF(cdi_rdt, rdt)),
	FIELD(cdi_edits, "additionalGids", groups, JSON_TO_NUMBERS, COUNT(cdi_edits, n_groups)),
};

static const struct json_field device_fields[] = {
	FIELD(cdi_device, "name", name, JSON_TO_TEXT, .required = true),
	FIELD(cdi_device, "containerEdits", edits, JSON_TO_ONE, OF(cdi_edits, edits),
	      .required = true),
};

static const struct json_field file_fields[] = {
	FIELD(cdi_file, "cdiVersion", version, JSON_TO_TEXT, .required = true),
	FIELD(cdi_file, "kind", kind, JSON_TO_TEXT, .required = true),
	FIELD(cdi_file, "devices", devices, JSON_TO_LIST, OF(cdi_device, device),
	      COUNT(cdi_file, n_devices), .required = true),
	FIELD(cdi_file, "containerEdits", edits, JSON_TO_ONE, OF(cdi_edits, edits)),
};

/* ---- a file ---- */

static int cdi_check_version(const char *version, struct error *err)
{
	static const char *const known[] = { "0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0",
					     "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0" };

	for (size_t i = 0; i < ARRAY_SIZE(known); i++)
		if (str_eq(known[i], version))
			return 0;
	return error_refuse(err, ERROR_INVALID,
			    "cdiVersion: \"%.40s\" is none of the versions up to 1.1.0", version);
}

/* Letters and digits, between them also those of `more`; the first one a letter where it must. */
static bool cdi_is_name(const char *s, size_t len, bool letter, const char *more)
{
	if (len == 0 || len > CDI_NAME_MAX || (letter && !isalpha((unsigned char)s[0])))
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isalnum((unsigned char)s[i]) &&
		    (i == 0 || i + 1 == len || !s[i] || !strchr(more, s[i])))
			return false;
	return true;
}

/* "vendor.com/class", in front of the end of len bytes. */
static bool cdi_is_kind(const char *kind, size_t len)
{
	const char *slash = memchr(kind, '/', len);
	size_t n = slash ? (size_t)(slash - kind) : 0;

	return slash && cdi_is_name(kind, n, true, "_-.") &&
	       cdi_is_name(slash + 1, len - n - 1, true, "_-");
}

static int cdi_read(struct arena *a, struct cdi_file *to, const void *data, size_t len,
		    struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	struct json_value *tree;
	int r = 0;

	if (str_has_suffix(to->path, ".yaml") || str_has_suffix(to->path, ".yml")) {
		r = yaml_to_json(&b, data, len, err);
		data = buf_data(&b);
		len = b.len;
	}
	if (r == 0)
		r = json_parse(&tree, a, data, len, err);
	if (r == 0 && tree->kind != JSON_OBJECT)
		return error_refuse(err, ERROR_INVALID, "it is no object");
	if (r == 0)
		r = json_fill(to, tree, file_fields, ARRAY_SIZE(file_fields), "", a, err);
	if (r == 0)
		r = cdi_check_version(to->version, err);
	if (r < 0)
		return r;
	if (!cdi_is_kind(to->kind, strlen(to->kind)))
		return error_refuse(err, ERROR_INVALID, "kind: \"%.80s\" is not vendor/class",
				    to->kind);
	for (size_t i = 0; i < to->n_devices; i++)
		if (!cdi_is_name(to->devices[i].name, strlen(to->devices[i].name), false, "_-.:"))
			return error_refuse(err, ERROR_INVALID,
					    "devices[%zu].name: \"%.80s\" is no name", i,
					    to->devices[i].name);
	return 0;
}

/* ---- what a container gets ---- */

static int cdi_words(struct buf *to, struct error *err, const char *const *words)
{
	for (; *words; words++)
		if (buf_add(to, *words, strlen(*words) + 1) < 0)
			return error_set(err, -ENOMEM, "devices");
	return to->len <= CDI_ANSWER_MAX
		       ? 0
		       : error_refuse(err, ERROR_INVALID, "more than %zu bytes of changes",
				      CDI_ANSWER_MAX);
}
#define WORDS(to, err, ...) cdi_words(to, err, (const char *const[]){ __VA_ARGS__, NULL })

static int cdi_unsupported(const char *where, size_t i, const char *why, struct error *err)
{
	return error_refuse(err, ERROR_UNSUPPORTED, "containerEdits.%s[%zu]: %s", where, i, why);
}

static int cdi_put_node(struct buf *to, const struct cdi_node *n, size_t i, struct error *err)
{
	if (n->uid.set || n->gid.set || n->mode.set)
		return cdi_unsupported("deviceNodes", i,
				       "uid, gid and fileMode: a container has the node's own "
				       "device, with its owner and mode",
				       err);
	if (n->type && !str_eq(n->type, "c") && !str_eq(n->type, "b") && !str_eq(n->type, "u"))
		return cdi_unsupported("deviceNodes", i, "its type is none of b, c and u", err);
	return WORDS(to, err, "device", n->path, n->host_path ? n->host_path : n->path,
		     n->permissions ? n->permissions : "");
}

static int cdi_put_mount(struct buf *to, const struct cdi_mount *m, size_t i, struct error *err)
{
	static const char *const usual[] = { "bind",   "rbind", "rw",   "private",  "rprivate",
					     "nosuid", "nodev", "exec", "relatime", "norelatime" };
	const char *propagation = "";
	char flags[3] = "";
	bool ro = false, noexec = false;

	if (m->type && *m->type && !str_eq(m->type, "bind") && !str_eq(m->type, "none"))
		return cdi_unsupported("mounts", i, "only a bind mount is made", err);
	for (size_t k = 0; k < m->n_options; k++) {
		const char *o = m->options[k];
		bool known = false;

		for (size_t u = 0; u < ARRAY_SIZE(usual) && !known; u++)
			known = str_eq(usual[u], o);
		ro = ro || str_eq(o, "ro");
		noexec = noexec || str_eq(o, "noexec");
		if (str_eq(o, "rslave") || str_eq(o, "rshared"))
			propagation = o;
		else if (!known && !str_eq(o, "ro") && !str_eq(o, "noexec"))
			return error_refuse(err, ERROR_UNSUPPORTED,
					    "containerEdits.mounts[%zu].options: \"%.40s\"", i, o);
	}
	(void)str_printf(flags, sizeof(flags), "%s%s", ro ? "r" : "", noexec ? "x" : "");
	return WORDS(to, err, "mount", m->container_path, m->host_path, propagation, flags);
}

static int cdi_put_edits(struct buf *to, const struct cdi_edits *e, struct error *err)
{
	char number[24];
	int r = 0;

	if (!e)
		return 0;
	if (e->n_hooks > 0)
		return error_refuse(err, ERROR_UNSUPPORTED,
				    "containerEdits.hooks: %.40s (%.100s): programs of vendors are "
				    "not run with the rights of the node",
				    e->hooks[0].name, e->hooks[0].path);
	if (e->n_nets > 0)
		return cdi_unsupported("netDevices", 0, "a container has the network of its pod",
				       err);
	if (e->rdt)
		return error_refuse(err, ERROR_UNSUPPORTED, "containerEdits.intelRdt");
	for (size_t i = 0; i < e->n_env && r == 0; i++)
		r = strchr(e->env[i], '=')
			    ? WORDS(to, err, "env", e->env[i])
			    : error_refuse(err, ERROR_INVALID,
					   "containerEdits.env[%zu] is not NAME=VALUE", i);
	for (size_t i = 0; i < e->n_nodes && r == 0; i++)
		r = cdi_put_node(to, &e->nodes[i], i, err);
	for (size_t i = 0; i < e->n_mounts && r == 0; i++)
		r = cdi_put_mount(to, &e->mounts[i], i, err);
	for (size_t i = 0; i < e->n_groups && r == 0; i++) {
		/* As the specification has it: nobody comes into that group by a device. */
		if (e->groups[i] == 0)
			continue;
		(void)str_printf(number, sizeof(number), "%llu", (unsigned long long)e->groups[i]);
		r = WORDS(to, err, "group", number);
	}
	return r;
}

/* ---- the request ---- */

struct cdi_request {
	const char *devices[CDI_DEVICES_MAX];
	struct cdi_file files[CDI_FILES_MAX];
	size_t n_devices, n_files;
	struct error broken; /* the first file that is */
	const char *at;
	size_t left;
};

/* NULL at the end, and where it is cut off. */
static const char *cdi_word(struct cdi_request *q)
{
	const char *word = q->at, *end = memchr(q->at, 0, q->left);

	if (!end)
		return NULL;
	q->left -= (size_t)(end - word) + 1;
	q->at = end + 1;
	return word;
}

static int cdi_take_file(struct arena *a, struct cdi_request *q, struct error *err)
{
	const char *dir = cdi_word(q), *path = dir ? cdi_word(q) : NULL;
	const char *size = path ? cdi_word(q) : NULL;
	size_t len = size ? strtoul(size, NULL, 10) : 0;
	struct error own = ERROR_INIT;
	struct cdi_file *f;
	int r;

	if (!size || len > q->left || q->n_files == CDI_FILES_MAX)
		return error_refuse(err, ERROR_FAULT, "the request is cut off, or too long");
	f = &q->files[q->n_files];
	*f = (struct cdi_file){ .path = path, .dir = dir };
	r = cdi_read(a, f, q->at, len, &own);
	q->at += len;
	q->left -= len;
	if (r == -ENOMEM)
		return error_set(err, r, "read %.200s", path);
	if (r == 0)
		q->n_files++;
	else if (!q->broken.code)
		(void)error_refuse(&q->broken, ERROR_INVALID, "%.200s: %.300s", path,
				   error_text(&own));
	return 0;
}

static int cdi_take(struct arena *a, struct cdi_request *q, struct error *err)
{
	const char *word;
	int r = 0;

	while (r == 0 && (word = cdi_word(q))) {
		if (str_eq(word, "device") && q->n_devices < CDI_DEVICES_MAX) {
			word = cdi_word(q);
			q->devices[q->n_devices++] = word ? word : "";
		} else {
			r = cdi_take_file(a, q, err);
		}
	}
	return r;
}

/* The last directory that has it counts; in that one, one file. */
static int cdi_find(struct cdi_request *q, const char *name, struct cdi_file **ret_file,
		    const struct cdi_device **ret, struct error *err)
{
	const char *is = strchr(name, '=');
	size_t len = is ? (size_t)(is - name) : 0;
	struct cdi_file *twice = NULL;

	*ret_file = NULL;
	if (!is || !cdi_is_kind(name, len) || !cdi_is_name(is + 1, strlen(is + 1), false, "_-.:"))
		return error_refuse(err, ERROR_INVALID, "\"%.200s\" is not vendor/class=name",
				    name);
	for (size_t i = 0; i < q->n_files; i++) {
		struct cdi_file *f = &q->files[i];

		if (strlen(f->kind) != len || memcmp(f->kind, name, len) != 0)
			continue;
		for (size_t k = 0; k < f->n_devices; k++) {
			if (!str_eq(f->devices[k].name, is + 1))
				continue;
			twice = *ret_file && str_eq((*ret_file)->dir, f->dir) ? *ret_file : NULL;
			*ret_file = f;
			*ret = &f->devices[k];
		}
	}
	if (twice)
		return error_refuse(err, ERROR_INVALID, "%.100s is in both %.100s and %.100s", name,
				    twice->path, (*ret_file)->path);
	if (*ret_file)
		return 0;
	return error_refuse(err, ERROR_NOT_FOUND, "no file has the device %.100s%s%.300s%s", name,
			    q->broken.code ? " (" : "",
			    q->broken.code ? error_text(&q->broken) : "",
			    q->broken.code ? ")" : "");
}

static int cdi_resolve_in(struct arena *a, struct buf *to, const void *data, size_t len,
			  struct error *err)
{
	struct cdi_request *q = arena_zalloc(a, 1, sizeof(*q));
	int r;

	if (!q)
		return error_set(err, -ENOMEM, "devices");
	q->broken = (struct error)ERROR_INIT;
	q->at = data;
	q->left = len;
	r = cdi_take(a, q, err);
	for (size_t i = 0; i < q->n_devices && r == 0; i++) {
		const struct cdi_device *d = NULL;
		struct cdi_file *f;

		r = cdi_find(q, q->devices[i], &f, &d, err);
		if (r < 0)
			return r;
		/* What belongs to all devices of a file comes once. */
		r = f->used ? 0 : cdi_put_edits(to, f->edits, err);
		f->used = true;
		if (r == 0)
			r = cdi_put_edits(to, d->edits, err);
		if (r < 0)
			return error_wrap(err, r, "%s: %s", f->path, q->devices[i]);
	}
	return r;
}

int cdi_resolve(struct buf *to, const void *data, size_t len, struct error *err)
{
	_cleanup_(arena_done) struct arena a = ARENA_INIT_LIMIT(CDI_MEMORY_MAX);

	return cdi_resolve_in(&a, to, data, len, err);
}

int cdi_run(int from_fd, int to_fd, int sock_fd, struct error *err)
{
	_cleanup_(buf_done) struct buf request = BUF_INIT, answer = BUF_INIT;
	struct fetchmsg message = { .type = FETCHMSG_EDITS };
	int r = fd_read_all(from_fd, CDI_REQUEST_MAX, &request);

	if (r < 0)
		return error_set(err, r, "read the files of devices");
	r = cdi_resolve(&answer, buf_data(&request), request.len, err);
	if (r < 0)
		return r;
	r = fd_write_full(to_fd, buf_data(&answer), answer.len);
	if (r < 0)
		return error_set(err, r, "write what devices change");
	message.edits.n_bytes = (uint32_t)answer.len;
	return channel_send(sock_fd, &message, err);
}
