/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/vsphere.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"
#include "base/time/clock.h"
#include "wire/format/base64.h"

#define VSPHERE_PATH_MAX 511
#define VSPHERE_CHUNK 64 /* machines whose properties are asked for at once */
#define VSPHERE_MEMORY (32 << 20)
#define VSPHERE_TRIES 4
/* The guest's console: a guest writes to it by vmtoolsd --cmd "info-set guestinfo.console TEXT". */
#define VSPHERE_CONSOLE "guestinfo.console"
#define VSPHERE_PROPERTIES                                                                         \
	"<propSet><type>VirtualMachine</type><pathSet>config.instanceUuid</pathSet>"               \
	"<pathSet>config.extraConfig</pathSet><pathSet>config.hardware.numCPU</pathSet>"           \
	"<pathSet>config.hardware.memoryMB</pathSet><pathSet>runtime.powerState</pathSet>"         \
	"<pathSet>guest.ipAddress</pathSet></propSet>"

/* ---- objects ---- */

/* Fills id, "" where there is no such object. */
static int vsphere_find(struct vsphere *v, const char *method, const char *arguments,
			char id[VSPHERE_ID_MAX + 1], char type[32], struct cloud_fault *f,
			struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(VSPHERE_MEMORY);
	const struct xml_node *response, *found;
	int r = vsphere_call(v,
			     &(struct vsphere_request){ .method = method,
							.type = "SearchIndex",
							.arguments = arguments },
			     &arena, &response, f, err);

	if (r < 0)
		return r;
	found = xml_child(response, "returnval");
	id[0] = type[0] = '\0';
	if (!found)
		return 0;
	if (!vsphere_is_id(found->text) || str_copy(type, 32, found->type) < 0)
		return error_refuse(err, ERROR_UNAVAILABLE, "the cloud's answer names no object");
	(void)str_copy(id, VSPHERE_ID_MAX + 1, found->text);
	return 0;
}

static int vsphere_find_machine(struct vsphere *v, const char *uuid, char id[VSPHERE_ID_MAX + 1],
				struct cloud_fault *f, struct error *err)
{
	char arguments[160], type[32];

	(void)str_printf(arguments, sizeof(arguments),
			 "<uuid>%s</uuid><vmSearch>true</vmSearch>"
			 "<instanceUuid>true</instanceUuid>",
			 uuid);
	return vsphere_find(v, "FindByUuid", arguments, id, type, f, err);
}

/* Of an id that the daemon has: ERROR_NOT_FOUND. */
static int vsphere_find_uuid(struct vsphere *v, const char *uuid, char id[VSPHERE_ID_MAX + 1],
			     struct cloud_fault *f, struct error *err)
{
	int r = 0;

	id[0] = '\0';
	if (vsphere_is_uuid(uuid))
		r = vsphere_find_machine(v, uuid, id, f, err);
	return r < 0 || *id ? r
			    : error_refuse(err, ERROR_NOT_FOUND,
					   "there is no machine %.64s in this cloud", uuid);
}

/* Finds the object that the configuration or the caller names. */
static int vsphere_find_path(struct vsphere *v, const char *kind, const char *name,
			     const char *type, enum error_kind missing, char id[VSPHERE_ID_MAX + 1],
			     struct cloud_fault *f, struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	char path[VSPHERE_PATH_MAX + 1], found[32];
	int r = vsphere_path(path, sizeof(path), v->account->datacenter, kind, name);

	if (r < 0)
		return error_refuse(err, ERROR_INVALID, "%.64s… is too long for a path", name);
	r = vsphere_put(&b, "inventoryPath", path);
	if (r == 0)
		r = buf_add(&b, "", 1);
	if (r < 0)
		return error_set(err, r, "ask the cloud");
	r = vsphere_find(v, "FindByInventoryPath", (const char *)buf_data(&b), id, found, f, err);
	if (r < 0)
		return r;
	return str_eq(found, type)
		       ? 0
		       : error_refuse(err, missing,
				      "%s%s: in vCenter there is no %s of that name, "
				      "or the account of the daemon does not see it",
				      missing == ERROR_PRECONDITION ? "cloud.vsphere: " : "", path,
				      type);
}

/* Its properties in the arena. ERROR_NOT_FOUND. */
static int vsphere_read(struct vsphere *v, const char *id, struct arena *arena,
			const struct xml_node **ret, struct cloud_fault *f, struct error *err)
{
	struct vsphere_objects all;
	char spec[1024];
	int r;

	(void)str_printf(spec, sizeof(spec),
			 "<specSet>" VSPHERE_PROPERTIES
			 "<objectSet><obj type=\"VirtualMachine\">%s</obj></objectSet></specSet>",
			 id);
	r = vsphere_retrieve(v, spec, arena, &all, f, err);
	*ret = r == 0 && all.n ? all.at[0] : NULL;
	return r;
}

static int vsphere_do(struct vsphere *v, const char *method, const char *id, const char *arguments,
		      struct cloud_fault *f, struct error *err)
{
	return vsphere_task(v,
			    &(struct vsphere_request){ .method = method,
						       .type = "VirtualMachine",
						       .id = id,
						       .arguments = arguments },
			    f, err);
}

/* ---- destroy ---- */

/* One try, whatever its power is: 1 where somebody has changed that meanwhile. */
static int vsphere_destroy_once(struct vsphere *v, const char *id, struct cloud_fault *f,
				struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(VSPHERE_MEMORY);
	const struct xml_node *object = NULL;
	int r = vsphere_read(v, id, &arena, &object, f, err);

	if (r == 0 && !str_eq(vsphere_text(object, "runtime.powerState"), "poweredOff"))
		r = vsphere_do(v, "PowerOffVM_Task", id, "", f, err);
	if (r == 0 || str_eq(f->code, "InvalidPowerState"))
		r = vsphere_do(v, "Destroy_Task", id, "", f, err);
	return r < 0 && str_eq(f->code, "InvalidPowerState") ? 1 : r;
}

/* A machine that does not exist counts as destroyed. */
static int vsphere_destroy(struct vsphere *v, const char *id, struct cloud_fault *f,
			   struct error *err)
{
	int r = 1;

	for (int i = 0; i < VSPHERE_TRIES && r == 1; i++)
		r = vsphere_destroy_once(v, id, f, err);
	if (r == 1)
		return error_refuse(err, ERROR_UNAVAILABLE, "somebody switches it on again");
	if (r < 0 && !str_eq(f->code, "ManagedObjectNotFound"))
		return r;
	*err = (struct error)ERROR_INIT;
	return 0;
}

static int vsphere_terminate(void *self, const char *uuid, struct arena *arena,
			     const char **ret_state, struct cloud_fault *f, struct error *err)
{
	char id[VSPHERE_ID_MAX + 1];
	int r = vsphere_find_uuid(self, uuid, id, f, err);

	(void)arena;
	*ret_state = "terminated";
	return r < 0 ? r : vsphere_destroy(self, id, f, err);
}

/* ---- create ---- */

/* A machine that is left after a refusal is none that anybody asked for. The refusal stays the
 * result where nothing is left. */
static int vsphere_undo(struct vsphere *v, const char *uuid, int refused, struct cloud_fault *f,
			struct error *err)
{
	char id[VSPHERE_ID_MAX + 1];
	struct cloud_fault fault = { .code = "" };
	struct error own = ERROR_INIT;
	int r;

	if (f->unknown)
		return refused;
	r = vsphere_find_machine(v, uuid, id, &fault, &own);
	if (r == 0 && *id)
		r = vsphere_destroy(v, id, &fault, &own);
	if (r == 0)
		return refused;
	f->unknown = true;
	err->kind = ERROR_UNAVAILABLE;
	return error_wrap(err, refused, "the machine that is left cannot be destroyed (%.120s)",
			  error_text(&own));
}

static int vsphere_clone(struct vsphere *v, const struct cloudmsg *q, struct cloud_fault *f,
			 struct error *err)
{
	char template[VSPHERE_ID_MAX + 1], folder[VSPHERE_ID_MAX + 1], pool[VSPHERE_ID_MAX + 1];
	char datastore[VSPHERE_ID_MAX + 1] = "";
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	const char *store = cloudmsg_get(q, "datastore");
	int r = vsphere_find_path(v, "vm", cloudmsg_get(q, "image"), "VirtualMachine",
				  ERROR_INVALID, template, f, err);

	if (r == 0)
		r = vsphere_find_path(v, "vm", cloudmsg_get(q, "folder"), "Folder",
				      ERROR_PRECONDITION, folder, f, err);
	if (r == 0)
		r = vsphere_find_path(v, "host", cloudmsg_get(q, "pool"), "ResourcePool",
				      ERROR_PRECONDITION, pool, f, err);
	if (r == 0 && *store)
		r = vsphere_find_path(v, "datastore", store, "Datastore", ERROR_PRECONDITION,
				      datastore, f, err);
	if (r < 0)
		return r;
	r = vsphere_put(&b, "folder type=\"Folder\"", folder);
	if (r == 0)
		r = vsphere_put(&b, "name", cloudmsg_get(q, "token"));
	r = r < 0 ? error_set(err, r, "ask the cloud")
		  : vsphere_put_clone(&b, q, pool, datastore, err);
	if (r < 0)
		return r;
	return vsphere_task(v,
			    &(struct vsphere_request){ .method = "CloneVM_Task",
						       .type = "VirtualMachine",
						       .id = template,
						       .arguments = (const char *)buf_data(&b),
						       .once = true },
			    f, err);
}

/* The machine of that uuid, which is made where there is none. The name of one that is being made
 * is taken before it can be found. */
static int vsphere_obtain(struct vsphere *v, const struct cloudmsg *q, const char *uuid,
			  char id[VSPHERE_ID_MAX + 1], struct cloud_fault *f, struct error *err)
{
	nsec_t until = clock_mono() + VSPHERE_PATIENCE;
	bool unknown = false;
	int pause_ms = 0, r;

	for (;;) {
		*err = (struct error)ERROR_INIT;
		r = vsphere_find_machine(v, uuid, id, f, err);
		if (r < 0 || *id)
			break;
		r = vsphere_clone(v, q, f, err);
		unknown = unknown || f->unknown;
		if (r < 0 && !f->unknown && !str_eq(f->code, "DuplicateName")) {
			r = vsphere_undo(v, uuid, r, f, err);
			break;
		}
		if (r < 0 && clock_mono() >= until) {
			/* Another call with this token makes it. */
			unknown = true;
			err->kind = ERROR_UNAVAILABLE;
			break;
		}
		if (r < 0)
			http_rest(&pause_ms);
	}
	f->unknown = r < 0 && (unknown || f->unknown);
	return r;
}

static int vsphere_power_on(struct vsphere *v, const char *id, struct cloud_fault *f,
			    struct error *err)
{
	int r = vsphere_do(v, "PowerOnVM_Task", id, "", f, err);

	/* It runs already. */
	if (r == 0 || !str_eq(f->code, "InvalidPowerState"))
		return r;
	*err = (struct error)ERROR_INIT;
	return 0;
}

static int vsphere_create(void *self, const struct cloudmsg *q, struct arena *arena,
			  struct cloud_machine *ret, struct cloud_fault *f, struct error *err)
{
	char uuid[VSPHERE_UUID_SIZE], id[VSPHERE_ID_MAX + 1];
	const struct xml_node *object = NULL;
	struct vsphere *v = self;
	int r;

	*ret = (struct cloud_machine){ .id = "" };
	if (str_eq(cloudmsg_get(q, "dry-run"), "yes"))
		return error_field(err, ERROR_UNSUPPORTED, "dry_run",
				   "this cloud has no call that makes nothing: leave it out");
	vsphere_uuid(vsphere_cluster_of(q), cloudmsg_get(q, "token"), uuid);
	r = vsphere_obtain(v, q, uuid, id, f, err);
	if (r < 0)
		return r;
	r = vsphere_power_on(v, id, f, err);
	if (r < 0 && err->kind != ERROR_UNAVAILABLE)
		return vsphere_undo(v, uuid, r, f, err);
	if (r == 0)
		r = vsphere_read(v, id, arena, &object, f, err);
	if (r == 0)
		r = vsphere_read_machine(ret, object, arena, err);
	ret->zone = v->account->datacenter;
	if (r < 0) {
		/* It was made, whatever is wrong with the answer. */
		f->unknown = true;
		err->kind = ERROR_UNAVAILABLE;
	}
	return r;
}

/* ---- list ---- */

/* All machines of the datacenter, by one small property of each. */
static int vsphere_search(struct vsphere *v, struct arena *arena, struct vsphere_objects *ret,
			  struct cloud_fault *f, struct error *err)
{
	char root[VSPHERE_ID_MAX + 1], spec[1024];
	int r = vsphere_find_path(v, "vm", "", "Folder", ERROR_PRECONDITION, root, f, err);

	if (r < 0)
		return r;
	(void)str_printf(
		spec, sizeof(spec),
		"<specSet><propSet><type>VirtualMachine</type>"
		"<pathSet>config.instanceUuid</pathSet></propSet><objectSet>"
		"<obj type=\"Folder\">%s</obj><skip>true</skip>"
		"<selectSet xsi:type=\"TraversalSpec\"><name>folder</name><type>Folder</type>"
		"<path>childEntity</path><skip>false</skip>"
		"<selectSet><name>folder</name></selectSet>"
		"<selectSet><name>vapp</name></selectSet></selectSet>"
		"<selectSet xsi:type=\"TraversalSpec\"><name>vapp</name><type>VirtualApp</type>"
		"<path>vm</path><skip>false</skip></selectSet></objectSet></specSet>",
		root);
	return vsphere_retrieve(v, spec, arena, ret, f, err);
}

static bool vsphere_has_tags(const struct cloud_machine *m, const struct cloudmsg *q)
{
	const char *at = NULL, *tag;

	while ((tag = cloudmsg_next(q, "tag", &at)) != NULL) {
		size_t i = 0;

		while (i < m->n_tags && !str_eq(m->tags[i], tag))
			i++;
		if (i == m->n_tags)
			return false;
	}
	return true;
}

struct vsphere_listing {
	struct vsphere *v;
	const struct cloudmsg *q;
	cloud_machine_fn fn;
	void *userdata;
};

/* Leaves out machines that are not ours, and those whose settings are incomplete. */
static int vsphere_tell(const struct vsphere_listing *l, const struct vsphere_objects *all,
			struct arena *arena)
{
	int r = 0;

	for (size_t i = 0; i < all->n && r == 0; i++) {
		struct error own = ERROR_INIT;
		struct cloud_machine m;

		r = vsphere_read_machine(&m, all->at[i], arena, &own);
		if (r == 0 && vsphere_has_tags(&m, l->q)) {
			m.zone = l->v->account->datacenter;
			r = l->fn(l->userdata, &m);
		} else if (r != -ENOMEM) {
			r = 0;
		}
	}
	return r;
}

/* ids: n of them. */
static int vsphere_tell_chunk(const struct vsphere_listing *l, const char *const *ids, size_t n,
			      struct cloud_fault *f, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(VSPHERE_MEMORY);
	_cleanup_(buf_done) struct buf spec = BUF_INIT;
	struct vsphere_objects all;
	int r = buf_add_str(&spec, "<specSet>" VSPHERE_PROPERTIES);

	for (size_t i = 0; i < n && r == 0; i++)
		r = buf_addf(&spec, "<objectSet><obj type=\"VirtualMachine\">%s</obj></objectSet>",
			     ids[i]);
	if (r == 0)
		r = buf_add(&spec, "</specSet>", sizeof("</specSet>"));
	if (r < 0)
		return error_set(err, r, "ask the cloud");
	r = vsphere_retrieve(l->v, (const char *)buf_data(&spec), &arena, &all, f, err);
	if (r == 0)
		return vsphere_tell(l, &all, &arena);
	if (!str_eq(f->code, "ManagedObjectNotFound"))
		return r;
	/* One of them has gone since, and there is no answer about the others. */
	*err = (struct error)ERROR_INIT;
	r = 0;
	for (size_t i = 0; i < n && n > 1 && r == 0; i++)
		r = vsphere_tell_chunk(l, ids + i, 1, f, err);
	return r;
}

static int vsphere_list(void *self, const struct cloudmsg *q, cloud_machine_fn fn, void *userdata,
			struct cloud_fault *f, struct error *err)
{
	_cleanup_(arena_done) struct arena arena = ARENA_INIT_LIMIT(CLOUD_ANSWER_MEMORY);
	const struct vsphere_listing l = { .v = self, .q = q, .fn = fn, .userdata = userdata };
	const char *ids[VSPHERE_CHUNK], *id;
	char prefix[VSPHERE_UUID_SIZE];
	struct vsphere_objects all;
	size_t n = 0;
	int r = vsphere_search(self, &arena, &all, f, err);

	vsphere_uuid(vsphere_cluster_of(q), "", prefix);
	for (size_t i = 0; r == 0 && i < all.n; i++) {
		id = xml_text(all.at[i], "obj");
		if (strncmp(vsphere_text(all.at[i], "config.instanceUuid"), prefix,
			    VSPHERE_PREFIX) == 0 &&
		    vsphere_is_id(id))
			ids[n++] = id;
		if (n < VSPHERE_CHUNK)
			continue;
		r = vsphere_tell_chunk(&l, ids, n, f, err);
		n = 0;
	}
	return r == 0 && n > 0 ? vsphere_tell_chunk(&l, ids, n, f, err) : r;
}

/* ---- tags ---- */

static int vsphere_tag_one(struct vsphere *v, const char *uuid, const char *spec,
			   struct cloud_fault *f, struct error *err)
{
	char id[VSPHERE_ID_MAX + 1];
	int r = vsphere_find_uuid(v, uuid, id, f, err);

	return r < 0 ? r : vsphere_do(v, "ReconfigVM_Task", id, spec, f, err);
}

static int vsphere_tag_all(void *self, const struct cloudmsg *q, struct arena *arena,
			   struct cloud_fault *f, struct error *err)
{
	_cleanup_(buf_done) struct buf spec = BUF_INIT;
	const char *at = NULL, *id;
	int first = 0, r = buf_add_str(&spec, "<spec>");

	(void)arena;
	if (r == 0)
		r = vsphere_put_tag(&spec, cloudmsg_get(q, "tag"));
	if (r == 0)
		r = buf_add(&spec, "</spec>", sizeof("</spec>"));
	if (r < 0)
		return error_set(err, r, "ask the cloud");
	/* A machine that may not be changed is not in the way of those behind it. */
	while ((id = cloudmsg_next(q, "id", &at)) != NULL) {
		struct cloud_fault fault = *f;
		struct error own = ERROR_INIT;

		r = vsphere_tag_one(self, id, (const char *)buf_data(&spec), &fault, &own);
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

static int vsphere_console(void *self, const char *uuid, struct arena *arena,
			   const char **ret_base64, const char **ret_time, struct cloud_fault *f,
			   struct error *err)
{
	char id[VSPHERE_ID_MAX + 1] = "", *time = arena_alloc(arena, CLOCK_TEXT_SIZE);
	const struct xml_node *object = NULL;
	const char *text;
	size_t len;
	int r = time ? vsphere_find_uuid(self, uuid, id, f, err)
		     : error_set(err, -ENOMEM, "read the console");

	if (r == 0)
		r = vsphere_read(self, id, arena, &object, f, err);
	if (r < 0)
		return r;
	text = vsphere_option(vsphere_property(object, "config.extraConfig"), VSPHERE_CONSOLE);
	len = strlen(text);
	if (len == 0)
		return error_refuse(err, ERROR_PRECONDITION,
				    "the screen of a machine of vSphere is no text; this one has "
				    "set no " VSPHERE_CONSOLE
				    " (vmtoolsd --cmd 'info-set " VSPHERE_CONSOLE " TEXT')");
	*ret_base64 =
		base64_encode(arena, (const uint8_t *)text, MIN(len, (size_t)CLOUDMSG_CONSOLE_MAX));
	clock_format(time, f->date ? (nsec_t)f->date * NSEC_PER_SEC : clock_real());
	*ret_time = time;
	return *ret_base64 ? 0 : error_set(err, -ENOMEM, "read the console");
}

/* ---- the table ---- */

static void vsphere_close(void *account)
{
	struct vsphere_account *a = account;

	explicit_bzero(&a->key, sizeof(a->key));
	buf_done(&a->authorities);
	(void)pthread_mutex_destroy(&a->lock);
	free(a);
}

/* trust: "" for the system's authorities, the path of a file with others, or the SHA-256 of the
 * certificate itself. */
static int vsphere_open_trust(struct vsphere_account *a, const char *trust, struct error *err)
{
	if (!*trust || *trust == '/')
		return http_open_authorities(&a->authorities, "SSL_CERT_FILE", trust, err);
	a->has_pin = http_read_pin(a->pin, trust);
	return a->has_pin ? 0
			  : error_refuse(err, ERROR_INVALID,
					 "cloud.vsphere.thumbprint is no SHA-256 of a certificate");
}

static int vsphere_open_account(struct vsphere_account *a, const struct cloudmsg *begin,
				struct error *err)
{
	int r;

	if (str_copy(a->datacenter, sizeof(a->datacenter), cloudmsg_get(begin, "region")) < 0)
		return error_refuse(err, ERROR_INVALID, "the name of the datacenter is too long");
	r = http_open_endpoint(&a->endpoint, cloudmsg_get(begin, "endpoint"), err);
	if (r == 0 && str_eq(a->endpoint.path, "/"))
		(void)str_copy(a->endpoint.path, sizeof(a->endpoint.path), "/sdk");
	if (r == 0)
		r = vsphere_open_trust(a, cloudmsg_get(begin, "trust"), err);
	return r < 0 ? r : vsphere_key_open(&a->key, cloudmsg_get(begin, "profile"), err);
}

static int vsphere_open(void **ret, const struct cloudmsg *begin, struct error *err)
{
	struct vsphere_account *a = calloc(1, sizeof(*a));
	int r;

	if (!a || pthread_mutex_init(&a->lock, NULL) != 0) {
		free(a);
		return error_set(err, -ENOMEM, "the cloud");
	}
	r = vsphere_open_account(a, begin, err);
	if (r == 0)
		*ret = a;
	else
		vsphere_close(a);
	return r;
}

static int vsphere_attach(void **ret, void *account, struct error *err)
{
	struct vsphere_account *a = account;
	struct vsphere *v = calloc(1, sizeof(*v));
	int r = v ? http_init(&v->http, &a->authorities, err)
		  : error_set(err, -ENOMEM, "the cloud");

	if (r < 0) {
		free(v);
		return r;
	}
	v->account = a;
	v->http.pinned = a->has_pin ? a->pin : NULL;
	*ret = v;
	return 0;
}

const struct cloud_provider vsphere_provider = {
	.name = "vsphere",
	.open = vsphere_open,
	.close = vsphere_close,
	.attach = vsphere_attach,
	.create = vsphere_create,
	.list = vsphere_list,
	.terminate = vsphere_terminate,
	.tag = vsphere_tag_all,
	.console = vsphere_console,
};
