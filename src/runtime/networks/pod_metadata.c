/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/networks/pod_metadata.h"

#include <errno.h>
#include <string.h>

#include "base/memory/arena.h"
#include "base/text/str.h"
#include "network/attachment.h"
#include "pod/workload/model.h"
#include "runtime/start/remote.h"
#include "runtime/start/settings.h"
#include "wire/document/imds.h"
#include "wire/document/jsonwrite.h"

#define POD_METADATA "pod_network.metadata"
#define META "meta-data/"
#define DOCUMENT "dynamic/instance-identity/document"
#define PATH_MAX_BYTES 512

/* ---- the request ---- */

static size_t labels_bytes(const Aurae__Runtime__V0__Meta *meta)
{
	size_t n = 0;

	for (size_t i = 0; meta && i < meta->n_labels; i++)
		n += strlen(meta->labels[i]->key) + strlen(meta->labels[i]->value);
	return n;
}

int pod_metadata_check(const Aurae__Runtime__V0__PodNetwork *asked,
		       const Aurae__Runtime__V0__Meta *meta, const struct workload_spec *spec,
		       struct error *err)
{
	bool is_pod = spec->kind == WORKLOAD_POD;
	size_t n;

	if (!asked || !asked->metadata)
		return 0;
	n = asked->metadata->user_data.len;
	if (n > POD_METADATA_USER_DATA_MAX)
		return error_field(err, ERROR_INVALID, POD_METADATA ".user_data",
				   "%zu bytes; at most %zu", n, POD_METADATA_USER_DATA_MAX);
	if (n + labels_bytes(meta) > POD_METADATA_BYTES_MAX)
		return error_field(err, ERROR_INVALID, POD_METADATA,
				   "user data and labels have %zu bytes together; at most %zu",
				   n + labels_bytes(meta), POD_METADATA_BYTES_MAX);
	if (remote_will_be(spec->parent, is_pod ? &spec->choice : NULL))
		return error_field(err, ERROR_UNSUPPORTED, POD_METADATA,
				   "what has a kernel of its own has no metadata service yet");
	if (str_eq(spec->network, "host"))
		return error_field(err, ERROR_INVALID, POD_METADATA,
				   "not with the network \"host\", which is not the pod's own");
	if (!is_pod && !spec->attach)
		return error_field(err, ERROR_INVALID, POD_METADATA,
				   "a cell has one on a network of the node only: name a network");
	return 0;
}

/* ---- the page ---- */

bool pod_metadata_is_asked(const struct workload *w, bool *ret_identity)
{
	struct arena a = ARENA_INIT;
	const Nacre__V1__WorkloadNetwork *kept = settings_network(&a, w->settings);
	const Aurae__Runtime__V0__Metadata *m = kept && kept->asked ? kept->asked->metadata : NULL;
	bool is_asked = m != NULL;

	if (ret_identity)
		*ret_identity = m && m->identity;
	arena_done(&a);
	return is_asked;
}

static int page_put(struct buf *page, const char *path, const char *value)
{
	return imds_put(page, path, value, strlen(value));
}

/* One that is no path cannot be asked for. */
static int page_put_label(struct buf *page, const Aurae__Runtime__V0__Meta__LabelsEntry *label)
{
	char path[PATH_MAX_BYTES];
	int r = str_printf(path, sizeof(path), META "tags/instance/%s", label->key);

	r = r < 0 ? -EINVAL : page_put(page, path, label->value);
	return r == -EINVAL ? 0 : r;
}

/* "network/interfaces/macs/MAC/NAME" */
static int page_put_of_device(struct buf *page, const char *mac, const char *name,
			      const char *value)
{
	char path[PATH_MAX_BYTES];
	int r = str_printf(path, sizeof(path), META "network/interfaces/macs/%s/%s", mac, name);

	return r < 0 ? -EFBIG : page_put(page, path, value);
}

struct device_words {
	char mac[LINK_MAC_TEXT], number[16];
	char ip4[PREFIX_TEXT_MAX], ip6[PREFIX_TEXT_MAX]; /* "": none */
};

static void device_print(const struct attachment *a, struct device_words *ret)
{
	*ret = (struct device_words){ .mac = "" };
	link_print_mac(a->mac, ret->mac);
	(void)str_printf(ret->number, sizeof(ret->number), "%u", a->eth);
	if (a->ip4.family)
		prefix_print_address(&a->ip4, ret->ip4);
	if (a->ip6.family)
		prefix_print_address(&a->ip6, ret->ip6);
}

static int page_put_device(struct buf *page, const struct device_words *d)
{
	int r = page_put_of_device(page, d->mac, "mac", d->mac);

	if (r == 0)
		r = page_put_of_device(page, d->mac, "device-number", d->number);
	if (r == 0 && *d->ip4)
		r = page_put_of_device(page, d->mac, "local-ipv4s", d->ip4);
	if (r == 0 && *d->ip6)
		r = page_put_of_device(page, d->mac, "ipv6s", d->ip6);
	return r;
}

static int page_put_devices(struct buf *page, const struct workload *w, struct device_words *first)
{
	int r = 0;

	*first = (struct device_words){ .mac = "" };
	for (const struct attachment *a = w->attachment; a && r == 0; a = a->next) {
		struct device_words d;

		if (a->is_half)
			continue;
		device_print(a, &d);
		r = page_put_device(page, &d);
		if (!*first->mac)
			*first = d;
	}
	return r;
}

static int document_put(struct buf *b, const char *name, const char *value)
{
	int r = *value ? json_write_name(b, name) : 0;

	return r == 0 && *value ? json_write_text(b, value) : r;
}

static int page_put_document(struct buf *page, const struct workload *w,
			     const struct device_words *d)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r = buf_add_str(&b, "{");

	if (r == 0)
		r = document_put(&b, "instanceId", w->id);
	if (r == 0)
		r = document_put(&b, "privateIp", d->ip4);
	if (r == 0)
		r = document_put(&b, "version", "2017-09-30");
	if (r == 0)
		r = buf_add_str(&b, "}\n");
	return r == 0 ? imds_put(page, DOCUMENT, buf_data(&b), b.len) : r;
}

static const char *page_hostname(const struct workload *w,
				 const Aurae__Runtime__V0__PodNetwork *asked)
{
	const char *slash = strrchr(w->path, '/');

	if (asked && !str_empty(asked->hostname))
		return asked->hostname;
	return slash ? slash + 1 : w->path;
}

static int page_put_names(struct buf *page, const struct workload *w, const char *hostname,
			  const struct device_words *d)
{
	const struct {
		const char *path, *value;
	} values[] = {
		{ META "instance-id", w->id },
		{ META "hostname", hostname },
		{ META "local-hostname", hostname },
		{ META "local-ipv4", d->ip4 },
		{ META "ipv6", d->ip6 },
		{ META "mac", d->mac },
	};
	int r = 0;

	for (size_t i = 0; i < ARRAY_SIZE(values) && r == 0; i++)
		if (*values[i].value)
			r = page_put(page, values[i].path, values[i].value);
	return r;
}

static int page_make(struct arena *a, const struct workload *w, struct buf *page)
{
	const Nacre__V1__WorkloadNetwork *kept = settings_network(a, w->settings);
	const Aurae__Runtime__V0__PodNetwork *asked = kept ? kept->asked : NULL;
	const Aurae__Runtime__V0__Metadata *m = asked ? asked->metadata : NULL;
	const Aurae__Runtime__V0__Meta *meta = settings_meta(a, w->settings);
	struct device_words first;
	int r;

	if (!m)
		return -ENOMEM;
	r = page_put_devices(page, w, &first);
	if (r == 0)
		r = page_put_names(page, w, page_hostname(w, asked), &first);
	for (size_t i = 0; meta && i < meta->n_labels && r == 0; i++)
		r = page_put_label(page, meta->labels[i]);
	if (r == 0)
		r = page_put_document(page, w, &first);
	if (r == 0 && m->user_data.len > 0)
		r = imds_put(page, IMDS_USER_DATA, m->user_data.data, m->user_data.len);
	/* Its value is asked for each time. */
	if (r == 0 && m->identity)
		r = imds_put(page, IMDS_SVID, "", 0);
	return r;
}

int pod_metadata_page(const struct workload *w, struct buf *page, struct error *err)
{
	struct arena a = ARENA_INIT;
	int r = page_make(&a, w, page);

	arena_done(&a);
	return r < 0 ? error_set(err, r, "the metadata of %s", w->path) : 0;
}
