/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/gce.h"

#include <errno.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/json.h"
#include "base/text/str.h"
#include "base/time/clock.h"
#include "wire/format/base64.h"

#define GCE_NAME_MAX 63
#define GCE_PAGE 500
#define GCE_PAGES_MAX 1000
#define GCE_URL "https://compute.googleapis.com/compute/v1"
/* Of a label that another has changed meanwhile. */
#define GCE_LABEL_TRIES 4

static bool gce_is_name(const char *name)
{
	size_t n = strlen(name);

	return n > 0 && n <= GCE_NAME_MAX && name[0] >= 'a' && name[0] <= 'z' &&
	       strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-") == n;
}

/* ---- what is said ---- */

void gce_request_id(const char *token, char ret[GCE_UUID_SIZE])
{
	struct sha256_ctx c;
	uint8_t d[SHA256_DIGEST_SIZE];

	sha256_init(&c);
	sha256_update(&c, strlen(token), (const uint8_t *)token);
	sha256_digest(&c, sizeof(d), d);
	/* Version 4, variant 1 (RFC 4122). */
	d[6] = (uint8_t)((d[6] & 0x0f) | 0x40);
	d[8] = (uint8_t)((d[8] & 0x3f) | 0x80);
	(void)str_printf(ret, GCE_UUID_SIZE,
			 "%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 d[0], d[1], d[2], d[3], d[4], d[5], d[6], d[7], d[8], d[9], d[10], d[11],
			 d[12], d[13], d[14], d[15]);
}

/* "Name" is a tag of every cloud's machines, and labels are in lower case. */
static void gce_put_label(struct json *j, const char *tag)
{
	size_t n = strcspn(tag, "=");
	char key[64];

	(void)str_printf(key, sizeof(key), "%.*s", (int)MIN(n, sizeof(key) - 1), tag);
	json_put_string(j, str_eq(key, "Name") ? "name" : key, tag[n] ? tag + n + 1 : "");
}

static void gce_put_disk(struct json *j, const struct cloudmsg *q)
{
	json_put_array(j, "disks");
	json_put_object(j, NULL);
	json_put_bool(j, "boot", true);
	json_put_bool(j, "autoDelete", true);
	json_put_object(j, "initializeParams");
	json_put_string(j, "sourceImage", cloudmsg_get(q, "image"));
	json_put_end(j);
	json_put_end(j);
	json_put_end(j);
}

/* A name alone is that of a subnetwork of the zone's region. */
static void gce_put_network(struct json *j, const struct gce_account *a, const struct cloudmsg *q)
{
	const char *subnet = cloudmsg_get(q, "subnet"), *end = strrchr(a->zone, '-');
	char path[256];

	json_put_array(j, "networkInterfaces");
	json_put_object(j, NULL);
	(void)str_printf(path, sizeof(path), "projects/%s/regions/%.*s/subnetworks/%s", a->project,
			 end ? (int)(end - a->zone) : 0, a->zone, subnet);
	if (*subnet)
		json_put_string(j, "subnetwork", strchr(subnet, '/') ? subnet : path);
	else
		json_put_string(j, "network", "global/networks/default");
	json_put_end(j);
	json_put_end(j);
}

static void gce_put_groups(struct json *j, const struct cloudmsg *q)
{
	const char *at = NULL, *group;

	json_put_object(j, "tags");
	json_put_array(j, "items");
	while ((group = cloudmsg_next(q, "group", &at)) != NULL)
		json_put_string(j, NULL, group);
	json_put_end(j);
	json_put_end(j);
}

static void gce_put_labels(struct json *j, const struct cloudmsg *q)
{
	const char *at = NULL, *tag;

	json_put_object(j, "labels");
	while ((tag = cloudmsg_next(q, "tag", &at)) != NULL)
		gce_put_label(j, tag);
	json_put_end(j);
}

static void gce_put_user_data(struct json *j, const char *text)
{
	json_put_object(j, "metadata");
	json_put_array(j, "items");
	json_put_object(j, NULL);
	json_put_string(j, "key", "user-data");
	json_put_string(j, "value", text);
	json_put_end(j);
	json_put_end(j);
	json_put_end(j);
}

char *gce_create_body(const struct gce_account *a, const struct cloudmsg *q, struct arena *arena)
{
	const char *user_data = cloudmsg_get(q, "user-data");
	char *text = NULL, *decoded = NULL, type[256];
	struct json j = { .compact = true };
	size_t len;
	bool failed;

	if (*user_data) {
		decoded = base64_decode(arena, user_data);
		if (!decoded)
			return NULL;
	}
	j.to = open_memstream(&text, &len);
	if (!j.to)
		return NULL;
	(void)str_printf(type, sizeof(type), "zones/%s/machineTypes/%s", a->zone,
			 cloudmsg_get(q, "type"));
	json_put_object(&j, NULL);
	json_put_string(&j, "name", cloudmsg_get(q, "token"));
	json_put_string(&j, "machineType", type);
	gce_put_disk(&j, q);
	gce_put_network(&j, a, q);
	gce_put_groups(&j, q);
	gce_put_labels(&j, q);
	if (decoded)
		gce_put_user_data(&j, decoded);
	json_put_object(&j, "scheduling");
	json_put_bool(&j, "automaticRestart", false);
	if (str_eq(cloudmsg_get(q, "spot"), "yes")) {
		json_put_string(&j, "provisioningModel", "SPOT");
		json_put_string(&j, "instanceTerminationAction", "DELETE");
	}
	json_put_end(&j);
	json_put_end(&j);
	failed = ferror(j.to) != 0;
	failed = fclose(j.to) != 0 || failed;
	if (!failed)
		return text;
	free(text);
	return NULL;
}

/* ---- what is answered ---- */

static const char *gce_last(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The state for a status of Compute Engine; an unknown status counts as "pending". */
static const char *gce_state(const char *status)
{
	static const struct {
		const char *status, *state;
	} words[] = {
		{ "RUNNING", "running" },    { "REPAIRING", "running" },
		{ "STOPPING", "stopping" },  { "SUSPENDING", "stopping" },
		{ "SUSPENDED", "stopped" },  { "STOPPED", "stopped" },
		{ "TERMINATED", "stopped" }, { "DEPROVISIONING", "shutting-down" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++)
		if (str_eq(words[i].status, status))
			return words[i].state;
	return "pending";
}

static int gce_read_labels(struct cloud_machine *m, const struct json_value *item,
			   struct arena *arena)
{
	const struct json_value *labels = json_member(item, "labels"), *l;

	if (!labels || labels->kind != JSON_OBJECT)
		return 0;
	m->tags = arena_zalloc(arena, labels->n + 1, sizeof(char *));
	if (!m->tags)
		return -ENOMEM;
	for (l = labels->first; l; l = l->next) {
		char *tag;

		if (l->kind != JSON_STRING)
			continue;
		tag = arena_printf(arena, "%.63s=%.63s", str_eq(l->name, "name") ? "Name" : l->name,
				   l->text);
		if (!tag)
			return -ENOMEM;
		if (str_is_clean(tag) && str_is_utf8(tag, strlen(tag)))
			m->tags[m->n_tags++] = tag;
	}
	return 0;
}

static int gce_check(const char *text, const char *what, struct error *err)
{
	if (strlen(text) > CLOUDMSG_TEXT_MAX || !str_is_clean(text))
		return error_refuse(err, ERROR_INVALID, "the cloud's answer: no %s is like that",
				    what);
	return 0;
}

int gce_read_machine(struct cloud_machine *ret, const struct json_value *item, struct arena *arena,
		     struct error *err)
{
	const struct json_value *nics =
		item->kind == JSON_OBJECT ? json_member(item, "networkInterfaces") : NULL;
	struct cloud_machine m = {
		.id = gce_text(item, "name"),
		.state = gce_state(gce_text(item, "status")),
		.type = gce_last(gce_text(item, "machineType")),
		.zone = gce_last(gce_text(item, "zone")),
		.launched = gce_text(item, "creationTimestamp"),
		.address =
			nics && nics->kind == JSON_ARRAY ? gce_text(nics->first, "networkIP") : "",
	};
	char *reason;
	int r;

	if (!gce_is_name(m.id))
		return error_refuse(err, ERROR_INVALID,
				    "the cloud's answer: \"%.64s\" is no name of an instance",
				    m.id);
	m.token = m.id;
	r = gce_check(m.type, "machine type", err);
	if (r == 0)
		r = gce_check(m.zone, "zone", err);
	if (r == 0)
		r = gce_check(m.launched, "time", err);
	if (r == 0)
		r = gce_check(m.address, "address", err);
	if (r < 0)
		return r;
	reason = arena_printf(arena, "%.256s", gce_text(item, "statusMessage"));
	if (!reason || gce_read_labels(&m, item, arena) < 0)
		return error_set(err, -ENOMEM, "read the cloud's answer");
	/* A character may have been cut in the middle. */
	for (size_t n = strlen(reason); n > 0 && !str_is_utf8(reason, n);)
		reason[--n] = '\0';
	str_clean(reason);
	m.reason = reason;
	*ret = m;
	return 0;
}

/* ---- calls ---- */

/* "/instances/NAME" and what follows. The name was the cloud's, and is checked again. */
static int gce_path(char ret[192], const char *name, const char *more, struct error *err)
{
	if (!gce_is_name(name))
		return error_refuse(err, ERROR_NOT_FOUND,
				    "\"%.64s\" is no name of an instance of this cloud", name);
	(void)str_printf(ret, 192, "/instances/%s%s", name, more);
	return 0;
}

static int gce_get(struct gce *g, const char *name, struct arena *arena,
		   const struct json_value **ret, struct cloud_fault *f, struct error *err)
{
	char path[192];
	int r = gce_path(path, name, "", err);

	return r < 0 ? r : gce_call(g, "GET", path, NULL, arena, ret, f, err);
}

static int gce_insert(struct gce *g, const struct cloudmsg *q, struct arena *arena,
		      struct cloud_fault *f, struct error *err)
{
	_cleanup_str_ char *body = gce_create_body(g->account, q, arena);
	const struct json_value *operation;
	char path[96], uuid[GCE_UUID_SIZE];
	int r;

	if (!body)
		return error_set(err, -ENOMEM, "ask the cloud");
	gce_request_id(cloudmsg_get(q, "token"), uuid);
	(void)str_printf(path, sizeof(path), "/instances?requestId=%s", uuid);
	g->once = true;
	r = gce_call(g, "POST", path, body, arena, &operation, f, err);
	g->once = false;
	/* The request names an image or a network that does not exist. */
	if (r < 0 && err->kind == ERROR_NOT_FOUND)
		err->kind = ERROR_INVALID;
	return r < 0 ? r : gce_wait(g, operation, arena, f, err);
}

/* The tag that says which record it is of. */
static bool gce_is_of(const struct cloud_machine *m, const struct cloudmsg *q)
{
	const char *at = NULL, *tag;

	while ((tag = cloudmsg_next(q, "tag", &at)) != NULL) {
		bool has = !str_has_prefix(tag, "nacre-vm=");

		for (size_t i = 0; i < m->n_tags && !has; i++)
			has = str_eq(m->tags[i], tag);
		if (!has)
			return false;
	}
	return true;
}

/* It was made: by this call, or by an earlier one with its token. */
static int gce_made(struct gce *g, const struct cloudmsg *q, struct arena *arena,
		    struct cloud_machine *ret, struct cloud_fault *f, struct error *err)
{
	const struct json_value *item;
	int r = gce_get(g, cloudmsg_get(q, "token"), arena, &item, f, err);

	/* A clean answer: somebody else has deleted it. A list is to say the same. */
	if (r < 0 && err->kind == ERROR_NOT_FOUND && !f->unknown) {
		f->doubt = true;
		return error_refuse(err, ERROR_PRECONDITION,
				    "the cloud has made it, and does not know it any more: "
				    "somebody has deleted it there");
	}
	if (r == 0)
		r = gce_read_machine(ret, item, arena, err);
	if (r == 0 && !gce_is_of(ret, q))
		return error_refuse(err, ERROR_PRECONDITION,
				    "the cloud has another machine of the name %s, without the "
				    "labels of this one",
				    ret->id);
	if (r < 0) {
		/* Whatever is wrong with the answer. */
		f->unknown = true;
		err->kind = ERROR_UNAVAILABLE;
	}
	return r;
}

static int gce_create(void *self, const struct cloudmsg *q, struct arena *arena,
		      struct cloud_machine *ret, struct cloud_fault *f, struct error *err)
{
	const char *token = cloudmsg_get(q, "token");
	struct gce *g = self;
	int r;

	*ret = (struct cloud_machine){ .id = "" };
	if (str_eq(cloudmsg_get(q, "dry-run"), "yes"))
		return error_field(err, ERROR_UNSUPPORTED, "dry_run",
				   "this cloud has no call that makes nothing: leave it out");
	if (!gce_is_name(token))
		return error_refuse(err, ERROR_INVALID, "\"%.64s\" is no name of an instance",
				    token);
	r = gce_insert(g, q, arena, f, err);
	/* An earlier call has made it, or nobody knows of the operation any more. */
	if (r < 0 && err->kind != ERROR_NOT_FOUND && !str_eq(f->code, "alreadyExists") &&
	    !str_eq(f->code, "RESOURCE_ALREADY_EXISTS"))
		return r;
	*err = (struct error)ERROR_INIT;
	return gce_made(g, q, arena, ret, f, err);
}

static int gce_list_path(struct buf *b, const struct cloudmsg *q, const char *next)
{
	_cleanup_(buf_done) struct buf filter = BUF_INIT;
	_cleanup_str_ char *escaped = NULL;
	const char *at = NULL, *tag;
	int r = buf_addf(b, "/instances?maxResults=%d&filter=", GCE_PAGE);

	while (r == 0 && (tag = cloudmsg_next(q, "tag", &at)) != NULL)
		r = buf_addf(&filter, "%s(labels.%s)", filter.len ? " AND " : "", tag);
	if (r == 0)
		r = buf_add(&filter, "", 1);
	escaped = r == 0 ? malloc(3 * filter.len + 3 * strlen(next) + 2) : NULL;
	if (!escaped)
		return -ENOMEM;
	url_escape(escaped, (const char *)buf_data(&filter));
	r = buf_add_str(b, escaped);
	if (r == 0 && *next) {
		url_escape(escaped, next);
		r = buf_addf(b, "&pageToken=%s", escaped);
	}
	return r < 0 ? r : buf_add(b, "", 1);
}

static int gce_each_machine(const struct json_value *root, struct arena *arena, cloud_machine_fn fn,
			    void *userdata, struct error *err)
{
	const struct json_value *items = json_member(root, "items"), *i;
	struct cloud_machine m;
	int r = 0;

	for (i = items && items->kind == JSON_ARRAY ? items->first : NULL; i && r == 0;
	     i = i->next) {
		r = gce_read_machine(&m, i, arena, err);
		if (r == 0)
			r = fn(userdata, &m);
	}
	return r;
}

static int gce_list(void *self, const struct cloudmsg *q, cloud_machine_fn fn, void *userdata,
		    struct cloud_fault *f, struct error *err)
{
	_cleanup_str_ char *next = strdup("");
	struct gce *g = self;
	int r = next ? 0 : error_set(err, -ENOMEM, "ask the cloud");

	for (unsigned page = 0; r == 0; page++) {
		_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(CLOUD_ANSWER_MEMORY);
		_cleanup_(buf_done) struct buf path = BUF_INIT;
		const struct json_value *root = NULL;

		if (page == GCE_PAGES_MAX)
			return error_refuse(err, ERROR_UNAVAILABLE,
					    "the cloud's list has more than %d pages",
					    GCE_PAGES_MAX);
		if (gce_list_path(&path, q, next) < 0)
			return error_set(err, -ENOMEM, "ask the cloud");
		r = gce_call(g, "GET", (const char *)buf_data(&path), NULL, &arena, &root, f, err);
		if (r == 0)
			r = gce_each_machine(root, &arena, fn, userdata, err);
		if (r < 0 || !*gce_text(root, "nextPageToken"))
			break;
		free(next);
		next = strdup(gce_text(root, "nextPageToken"));
		if (!next)
			return error_set(err, -ENOMEM, "ask the cloud");
	}
	return r;
}

/* What becomes of it lists show: an operation that fails leaves it there, and it is asked again. */
static int gce_terminate(void *self, const char *id, struct arena *arena, const char **ret_state,
			 struct cloud_fault *f, struct error *err)
{
	const struct json_value *operation;
	char path[192];
	int r = gce_path(path, id, "", err);

	if (r == 0)
		r = gce_call(self, "DELETE", path, NULL, arena, &operation, f, err);
	*ret_state = "shutting-down";
	return r;
}

/* ---- labels ---- */

/* All labels of the instance with this one, as setLabels wants them. NULL without memory. */
static char *gce_labels_body(const struct json_value *item, const char *tag)
{
	const struct json_value *labels = json_member(item, "labels"), *l;
	struct json j = { .compact = true };
	size_t len, n = strcspn(tag, "=");
	char *text = NULL;
	bool failed;

	j.to = open_memstream(&text, &len);
	if (!j.to)
		return NULL;
	json_put_object(&j, NULL);
	json_put_object(&j, "labels");
	for (l = labels && labels->kind == JSON_OBJECT ? labels->first : NULL; l; l = l->next)
		if (l->kind == JSON_STRING &&
		    (strlen(l->name) != n || strncmp(l->name, tag, n) != 0))
			json_put_string(&j, l->name, l->text);
	gce_put_label(&j, tag);
	json_put_end(&j);
	json_put_string(&j, "labelFingerprint", gce_text(item, "labelFingerprint"));
	json_put_end(&j);
	failed = ferror(j.to) != 0;
	failed = fclose(j.to) != 0 || failed;
	if (!failed)
		return text;
	free(text);
	return NULL;
}

static int gce_label(struct gce *g, const char *id, const char *tag, struct arena *arena,
		     struct cloud_fault *f, struct error *err)
{
	char path[192];
	int r = gce_path(path, id, "/setLabels", err);

	for (int i = 0; r == 0 && i < GCE_LABEL_TRIES; i++) {
		const struct json_value *item, *operation;
		_cleanup_str_ char *body = NULL;

		r = gce_get(g, id, arena, &item, f, err);
		if (r < 0)
			return r;
		body = gce_labels_body(item, tag);
		if (!body)
			return error_set(err, -ENOMEM, "ask the cloud");
		r = gce_call(g, "POST", path, body, arena, &operation, f, err);
		if (r == 0 || !str_eq(f->code, "conditionNotMet"))
			return r;
		/* Somebody else has changed them: with what they are now. */
		r = i + 1 < GCE_LABEL_TRIES ? 0 : r;
	}
	return r;
}

static int gce_tag(void *self, const struct cloudmsg *q, struct arena *arena, struct cloud_fault *f,
		   struct error *err)
{
	const char *at = NULL, *id, *tag = cloudmsg_get(q, "tag");
	int first = 0;

	/* A machine that may not be changed is not in the way of those behind it. */
	while ((id = cloudmsg_next(q, "id", &at)) != NULL) {
		struct cloud_fault fault = *f;
		struct error own = ERROR_INIT;
		int r = gce_label(self, id, tag, arena, &fault, &own);

		if (r == 0 || first < 0)
			continue;
		first = r;
		*f = fault;
		*err = own;
		if (own.kind == ERROR_UNAVAILABLE)
			break;
	}
	return first;
}

/* ---- the console ---- */

static int gce_console(void *self, const char *id, struct arena *arena, const char **ret_base64,
		       const char **ret_time, struct cloud_fault *f, struct error *err)
{
	const struct json_value *root;
	const char *text;
	char path[192], *time = arena_alloc(arena, CLOCK_TEXT_SIZE);
	int r = gce_path(path, id, "/serialPort?port=1", err);
	size_t len;

	if (r == 0)
		r = time ? gce_call(self, "GET", path, NULL, arena, &root, f, err)
			 : error_set(err, -ENOMEM, "read the console");
	if (r < 0)
		return r;
	text = gce_text(root, "contents");
	len = strlen(text);
	if (len > CLOUDMSG_CONSOLE_MAX) {
		text += len - CLOUDMSG_CONSOLE_MAX;
		len = CLOUDMSG_CONSOLE_MAX;
	}
	*ret_base64 = base64_encode(arena, (const uint8_t *)text, len);
	clock_format(time, f->date ? (nsec_t)f->date * NSEC_PER_SEC : clock_real());
	*ret_time = time;
	return *ret_base64 ? 0 : error_set(err, -ENOMEM, "read the console");
}

/* ---- the table ---- */

static void gce_close(void *account)
{
	struct gce_account *a = account;

	gce_tokens_close(&a->tokens);
	buf_done(&a->authorities);
	free(a);
}

static int gce_open_account(struct gce_account *a, const struct cloudmsg *begin, struct error *err)
{
	const char *endpoint = cloudmsg_get(begin, "endpoint");
	int r;

	if (str_copy(a->project, sizeof(a->project), cloudmsg_get(begin, "project")) < 0 ||
	    str_copy(a->zone, sizeof(a->zone), cloudmsg_get(begin, "region")) < 0)
		return error_refuse(err, ERROR_INVALID, "the project or the zone is too long");
	r = http_open_endpoint(&a->endpoint, *endpoint ? endpoint : GCE_URL, err);
	if (r == 0)
		r = http_open_authorities(&a->authorities, "SSL_CERT_FILE", "", err);
	return r < 0 ? r
		     : gce_tokens_open(&a->tokens, cloudmsg_get(begin, "profile"), &a->authorities,
				       err);
}

static int gce_open(void **ret, const struct cloudmsg *begin, struct error *err)
{
	struct gce_account *a = calloc(1, sizeof(*a));
	int r = a ? gce_open_account(a, begin, err) : error_set(err, -ENOMEM, "the cloud");

	if (r == 0)
		*ret = a;
	else if (a)
		gce_close(a);
	return r;
}

static int gce_attach(void **ret, void *account, struct error *err)
{
	struct gce_account *a = account;
	struct gce *g = calloc(1, sizeof(*g));
	int r = g ? http_init(&g->http, &a->authorities, err)
		  : error_set(err, -ENOMEM, "the cloud");

	if (r < 0) {
		free(g);
		return r;
	}
	g->account = a;
	*ret = g;
	return 0;
}

const struct cloud_provider gce_provider = {
	.name = "gce",
	.open = gce_open,
	.close = gce_close,
	.attach = gce_attach,
	.create = gce_create,
	.list = gce_list,
	.terminate = gce_terminate,
	.tag = gce_tag,
	.console = gce_console,
};
