/* SPDX-License-Identifier: Apache-2.0 */
#include "cloud/vsphere.h"

#include <errno.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cloud/gce.h"

/* Requests to a vCenter about a machine, and its answers. Pure functions. */

#define VSPHERE_KEY "nacre."
#define VSPHERE_CLUSTER "nacre-cluster="
/* What a machine with nacre in it tells its host in place of VMware Tools (init/guest_cloud.c). */
#define VSPHERE_ADDRESS "guestinfo.nacre.address"

/* ---- names ---- */

void vsphere_uuid(const char *cluster, const char *token, char ret[VSPHERE_UUID_SIZE])
{
	char prefix[VSPHERE_UUID_SIZE];

	gce_request_id(cluster, prefix);
	gce_request_id(token, ret);
	memcpy(ret, prefix, VSPHERE_PREFIX);
}

bool vsphere_is_uuid(const char *id)
{
	return strlen(id) == VSPHERE_UUID_SIZE - 1 &&
	       strspn(id, "0123456789abcdef-") == VSPHERE_UUID_SIZE - 1;
}

const char *vsphere_cluster_of(const struct cloudmsg *q)
{
	const char *at = NULL, *tag;

	while ((tag = cloudmsg_next(q, "tag", &at)) != NULL)
		if (str_has_prefix(tag, VSPHERE_CLUSTER))
			return tag + strlen(VSPHERE_CLUSTER);
	return "";
}

int vsphere_path(char *to, size_t size, const char *datacenter, const char *kind, const char *name)
{
	int r = *name == '/' ? str_printf(to, size, "%s", name)
		: *name      ? str_printf(to, size, "/%s/%s/%s", datacenter, kind, name)
			     : str_printf(to, size, "/%s/%s", datacenter, kind);
	char *blank;

	if (r < 0)
		return r;
	while ((blank = strstr(to, "%20")) != NULL) {
		*blank = ' ';
		memmove(blank + 1, blank + 3, strlen(blank + 3) + 1);
	}
	return 0;
}

/* ---- what is said ---- */

static int vsphere_put_option(struct buf *b, const char *key, const char *value)
{
	int r = buf_add_str(b, "<extraConfig xsi:type=\"OptionValue\">");

	if (r == 0)
		r = vsphere_put(b, "key", key);
	if (r == 0)
		r = vsphere_put(b, "value xsi:type=\"xsd:string\"", value);
	return r < 0 ? r : buf_add_str(b, "</extraConfig>");
}

/* "nacre-node=…" as nacre.node, "Name=…" as nacre.Name. */
int vsphere_put_tag(struct buf *b, const char *tag)
{
	size_t n = strcspn(tag, "=");
	const char *name = str_has_prefix(tag, "nacre-") ? tag + strlen("nacre-") : tag;
	char key[96];

	(void)str_printf(key, sizeof(key), VSPHERE_KEY "%.*s",
			 (int)MIN(n - (size_t)(name - tag), 63U), name);
	return vsphere_put_option(b, key, tag[n] ? tag + n + 1 : "");
}

/* cloud-init takes both; the first bytes of gzip make no other text. */
static int vsphere_put_user_data(struct buf *b, const char *base64)
{
	int r = vsphere_put_option(b, "guestinfo.userdata", base64);

	if (r == 0)
		r = vsphere_put_option(b, "guestinfo.userdata.encoding",
				       str_has_prefix(base64, "H4sI") ? "gzip+base64" : "base64");
	/* Not that of the machine that the template was. */
	return r < 0 ? r : vsphere_put_option(b, VSPHERE_ADDRESS, "");
}

static int vsphere_put_size(struct buf *b, const char *cpus, const char *memory)
{
	int r = 0;

	/* As many sockets: a template with two cores in each could not have three. */
	if (*cpus)
		r = buf_addf(b, "<numCPUs>%s</numCPUs><numCoresPerSocket>1</numCoresPerSocket>",
			     cpus);
	return r == 0 && *memory ? buf_addf(b, "<memoryMB>%s</memoryMB>", memory) : r;
}

static int vsphere_put_config(struct buf *b, const struct cloudmsg *q)
{
	const char *token = cloudmsg_get(q, "token"), *at = NULL, *tag;
	char uuid[VSPHERE_UUID_SIZE];
	int r;

	vsphere_uuid(vsphere_cluster_of(q), token, uuid);
	r = buf_addf(b, "<config><instanceUuid>%s</instanceUuid>", uuid);
	if (r == 0)
		r = vsphere_put_size(b, cloudmsg_get(q, "cpus"), cloudmsg_get(q, "memory"));
	if (r == 0)
		r = vsphere_put_option(b, VSPHERE_KEY "token", token);
	while (r == 0 && (tag = cloudmsg_next(q, "tag", &at)) != NULL)
		r = vsphere_put_tag(b, tag);
	if (r == 0 && *cloudmsg_get(q, "user-data"))
		r = vsphere_put_user_data(b, cloudmsg_get(q, "user-data"));
	return r < 0 ? r : buf_add_str(b, "</config>");
}

static bool vsphere_is_number(const char *text)
{
	uint64_t n;

	return !*text || parse_u64(text, 1, 1 << 24, &n) == 0;
}

int vsphere_put_clone(struct buf *b, const struct cloudmsg *q, const char *pool,
		      const char *datastore, struct error *err)
{
	int r;

	if (!vsphere_is_number(cloudmsg_get(q, "cpus")) ||
	    !vsphere_is_number(cloudmsg_get(q, "memory")))
		return error_refuse(err, ERROR_INVALID, "the size of the machine is no number");
	r = buf_add_str(b, "<spec><location>");
	if (r == 0 && *datastore)
		r = vsphere_put(b, "datastore type=\"Datastore\"", datastore);
	if (r == 0)
		r = vsphere_put(b, "pool type=\"ResourcePool\"", pool);
	if (r == 0)
		r = buf_add_str(b, "</location><template>false</template>");
	if (r == 0)
		r = vsphere_put_config(b, q);
	if (r == 0)
		r = buf_add_str(b, "<powerOn>false</powerOn></spec>");
	if (r == 0)
		r = buf_add(b, "", 1);
	return r < 0 ? error_set(err, r, "ask the cloud") : 0;
}

/* ---- what is answered ---- */

/* The tag of a key, "" where it is none. */
static const char *vsphere_tag(const char *key, const char *value, struct arena *arena)
{
	const char *name;

	if (!str_has_prefix(key, VSPHERE_KEY) || str_eq(key, VSPHERE_KEY "token"))
		return "";
	name = key + strlen(VSPHERE_KEY);
	if (!*name || strlen(name) > 63 || strlen(value) > CLOUDMSG_TEXT_MAX ||
	    !str_is_clean(name) || !str_is_clean(value) || strchr(name, '='))
		return "";
	return arena_printf(arena, "%s%s=%s", str_eq(name, "Name") ? "" : "nacre-", name, value);
}

const char *vsphere_option(const struct xml_node *options, const char *key)
{
	const struct xml_node *o;

	for (o = options ? options->first : NULL; o; o = o->next)
		if (str_eq(xml_text(o, "key"), key))
			return xml_text(o, "value");
	return "";
}

static int vsphere_read_tags(struct cloud_machine *m, const struct xml_node *options,
			     struct arena *arena)
{
	const struct xml_node *o;
	size_t n = 1;

	for (o = options ? options->first : NULL; o; o = o->next)
		n++;
	m->tags = arena_zalloc(arena, n, sizeof(char *));
	if (!m->tags)
		return -ENOMEM;
	for (o = options ? options->first : NULL; o; o = o->next) {
		const char *tag = vsphere_tag(xml_text(o, "key"), xml_text(o, "value"), arena);

		if (!tag)
			return -ENOMEM;
		if (*tag)
			m->tags[m->n_tags++] = tag;
	}
	return 0;
}

/* An instanceUuid is never on two machines, and settings go with a copy: both have to fit. */
static bool vsphere_is_ours(const struct cloud_machine *m)
{
	char uuid[VSPHERE_UUID_SIZE];
	const char *cluster = "";

	for (size_t i = 0; i < m->n_tags; i++)
		if (str_has_prefix(m->tags[i], VSPHERE_CLUSTER))
			cluster = m->tags[i] + strlen(VSPHERE_CLUSTER);
	vsphere_uuid(cluster, m->token, uuid);
	return *m->token && str_eq(m->id, uuid);
}

int vsphere_read_machine(struct cloud_machine *ret, const struct xml_node *object,
			 struct arena *arena, struct error *err)
{
	const struct xml_node *options = vsphere_property(object, "config.extraConfig");
	const char *cpus = vsphere_text(object, "config.hardware.numCPU");
	const char *memory = vsphere_text(object, "config.hardware.memoryMB");
	struct cloud_machine m = {
		.id = vsphere_text(object, "config.instanceUuid"),
		.token = vsphere_option(options, VSPHERE_KEY "token"),
		.state = str_eq(vsphere_text(object, "runtime.powerState"), "poweredOn")
				 ? "running"
				 : "stopped",
		.address = vsphere_text(object, "guest.ipAddress"),
		.zone = "",
		.launched = "",
		.reason = "",
	};

	if (!*m.address && str_eq(m.state, "running"))
		m.address = vsphere_option(options, VSPHERE_ADDRESS);
	if (vsphere_read_tags(&m, options, arena) < 0)
		return error_set(err, -ENOMEM, "read the cloud's answer");
	if (strlen(m.token) > CLOUDMSG_TEXT_MAX || !str_is_clean(m.token) || !vsphere_is_ours(&m))
		return error_refuse(err, ERROR_NOT_FOUND, "that machine is none of nacre's");
	if (strlen(m.address) > CLOUDMSG_TEXT_MAX || !str_is_clean(m.address))
		return error_refuse(err, ERROR_INVALID,
				    "the cloud's answer: no address is like that");
	if (!vsphere_is_number(cpus) || !vsphere_is_number(memory))
		return error_refuse(err, ERROR_INVALID, "the cloud's answer: no size is like that");
	m.type = *cpus && *memory ? arena_printf(arena, "%s:%sMiB", cpus, memory) : "";
	if (!m.type)
		return error_set(err, -ENOMEM, "read the cloud's answer");
	*ret = m;
	return 0;
}
