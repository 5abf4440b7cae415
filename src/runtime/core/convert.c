/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/core/convert.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

#include "base/text/str.h"
#include "pod/workload/pause.h"
#include "pod/workload/stop_signal.h"
#include "pod/workload/workload.h"
#include "runtime/core/target.h"
#include "runtime/networks/convert_network.h"
#include "runtime/start/settings.h"
#include "runtime/workload/health.h"

/* protobuf-c's strings are not const, but serialising only reads them. */
static char *convert_str(const char *s)
{
	return (char *)(uintptr_t)(s ? s : "");
}

Nacre__V1__Container *convert_one(struct arena *a, struct pod_container *c)
{
	Nacre__V1__Container *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__container__init(m);
	m->id = c->id;
	m->name = c->name;
	m->image = convert_str(c->image_name);
	m->image_id = convert_str(c->image_id);
	m->state = convert_str(pod_container_state_word(c));
	m->pid = pod_container_pid(c);
	m->exit_code = c->status.exit_code;
	m->signal = c->status.signal;
	m->reason = c->status.reason;
	m->log_lost = c->status.log_lost;
	m->started_at = c->status.started_at;
	m->finished_at = c->status.finished_at;
	m->command = convert_str(c->command);
	m->user = convert_str(c->user);
	m->tty = c->tty;
	m->stdin = c->stdin_open;
	m->restart_count = c->restart_count;
	m->stopped = c->stopped;
	m->debug = c->is_debug;
	settings_show(a, m, c->settings);
	return health_show(a, m, c) < 0 ? NULL : m;
}

static int convert_containers(struct arena *a, struct workload *w, Nacre__V1__Workload *m)
{
	m->containers = arena_zalloc(a, w->n_containers, sizeof(*m->containers));
	if (!m->containers)
		return -1;
	for (size_t i = 0; i < w->n_containers; i++) {
		m->containers[i] = convert_one(a, w->containers[i]);
		if (!m->containers[i])
			return -1;
	}
	m->n_containers = w->n_containers;
	return 0;
}

static int convert_labels(struct arena *a, Nacre__V1__Workload *m, const char *settings)
{
	const Aurae__Runtime__V0__Meta *kept = settings_meta(a, settings);
	Nacre__V1__Workload__LabelsEntry *entries;

	if (!kept)
		return 0;
	entries = arena_zalloc(a, kept->n_labels + 1, sizeof(*entries));
	m->labels = arena_zalloc(a, kept->n_labels + 1, sizeof(*m->labels));
	if (!entries || !m->labels)
		return -1;
	for (size_t i = 0; i < kept->n_labels; i++) {
		nacre__v1__workload__labels_entry__init(&entries[i]);
		entries[i].key = kept->labels[i]->key;
		entries[i].value = kept->labels[i]->value;
		m->labels[m->n_labels++] = &entries[i];
	}
	return 0;
}

static int convert_restart(struct arena *a, const struct workload *w, Nacre__V1__Workload *m)
{
	if (w->restart.policy == RESTART_NO)
		return 0;
	m->restart = arena_alloc(a, sizeof(*m->restart));
	if (!m->restart)
		return -1;
	aurae__runtime__v0__restart_policy__init(m->restart);
	m->restart->policy = convert_str(restart_policy_word(w->restart.policy));
	m->restart->max_retries = w->restart.max;
	return 0;
}

#define CONVERT_CONTAINERS 9 /* the number of Workload.containers */

static Nacre__V1__Workload *convert_some(struct arena *a, struct workload *w, uint64_t fields)
{
	Nacre__V1__Workload *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__workload__init(m);
	m->id = w->id;
	m->name = w->path;
	m->kind = convert_str(workload_kind_word(w->kind));
	m->state = convert_str(workload_state_word(w->state));
	m->reason = w->reason;
	m->paused = workload_is_paused(w);
	m->created_at = w->created_at;
	m->network = convert_str(w->network);
	m->exit_code = workload_has_ended(w) ? workload_exit_code(w) : 0;
	m->auto_remove = w->auto_remove;
	m->resources = settings_resources(a, w->settings);
	m->security = settings_security(a, w->settings);
	m->comment = w->comment ? w->comment : m->comment;
	m->restart_count = w->restart_count;
	m->restart_at = w->restart_at;
	m->stopped = w->stopped;
	m->ids_uid = w->ids.uid;
	m->ids_gid = w->ids.gid;
	m->ids_count = w->ids.count;
	if (w->instance) {
		m->instance = w->instance->path;
		m->cgroup = w->instance->cgroup;
		m->keeper_note = w->instance->note;
		m->kernel = w->kind == WORKLOAD_POD ? w->instance->kernel : m->kernel;
		m->pid = w->kind == WORKLOAD_POD ? w->instance->pid : 0;
	}
	if (w->kind == WORKLOAD_VM)
		m->pid = pod_container_pid(w->containers[0]);
	if (w->kind == WORKLOAD_POD) {
		m->instance_kind = convert_str(instance_kind_word(w->choice.kind));
		m->kind_reason = w->choice.reason;
	}
	if (convert_attachment(a, w, m) < 0 || convert_labels(a, m, w->settings) < 0 ||
	    convert_restart(a, w, m) < 0)
		return NULL;
	if (fields >> CONVERT_CONTAINERS & 1 && convert_containers(a, w, m) < 0)
		return NULL;
	return m;
}

Nacre__V1__Workload *convert_workload(struct arena *a, struct workload *w)
{
	return convert_some(a, w, CONVERT_ALL);
}

Nacre__V1__Workload *convert_instance(struct arena *a, struct instance *i)
{
	Nacre__V1__Workload *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__workload__init(m);
	m->id = i->id;
	m->name = i->path;
	m->kind = convert_str("instance");
	m->state = convert_str(instance_state_word(i->state));
	m->reason = i->reason;
	m->created_at = i->created_at;
	m->network = convert_str(i->host_network ? "host" : "own");
	m->instance = convert_str(i->parent ? i->parent->path : "");
	m->pid = i->pid;
	m->cgroup = i->cgroup;
	m->keeper_note = i->note;
	m->instance_kind = convert_str(instance_kind_word(i->choice.kind));
	m->kind_reason = i->choice.reason;
	m->kernel = i->kernel;
	m->resources = settings_resources(a, i->settings);
	return convert_labels(a, m, i->settings) < 0 ? NULL : m;
}

/* ---- masks of fields ---- */

int convert_fields(char *const *names, size_t n, uint64_t *ret, struct error *err)
{
	const ProtobufCMessageDescriptor *type = &nacre__v1__workload__descriptor;
	const ProtobufCFieldDescriptor *field;
	char entry[ERROR_FIELD_MAX];

	*ret = n ? 0 : CONVERT_ALL;
	for (size_t i = 0; i < n; i++) {
		field = protobuf_c_message_descriptor_get_field_by_name(type, names[i]);
		if (!field) {
			(void)str_printf(entry, sizeof(entry), "fields[%zu]", i);
			return error_field(err, ERROR_INVALID, entry,
					   "\"%.80s\" is not a field of Workload", names[i]);
		}
		assert(field->id < 64);
		*ret |= UINT64_C(1) << field->id;
	}
	return 0;
}

static size_t convert_size(const ProtobufCFieldDescriptor *field)
{
	static const size_t sizes[] = {
		[PROTOBUF_C_TYPE_BOOL] = sizeof(protobuf_c_boolean),
		[PROTOBUF_C_TYPE_INT32] = sizeof(int32_t),
		[PROTOBUF_C_TYPE_UINT32] = sizeof(uint32_t),
		[PROTOBUF_C_TYPE_INT64] = sizeof(int64_t),
		[PROTOBUF_C_TYPE_UINT64] = sizeof(uint64_t),
		[PROTOBUF_C_TYPE_STRING] = sizeof(char *),
		[PROTOBUF_C_TYPE_BYTES] = sizeof(ProtobufCBinaryData),
		[PROTOBUF_C_TYPE_MESSAGE] = sizeof(ProtobufCMessage *),
	};

	assert(field->type < ARRAY_SIZE(sizes) && sizes[field->type]);
	return sizes[field->type];
}

/* Sets the fields that are not asked for back to what a new message has. */
static void convert_clear(Nacre__V1__Workload *m, uint64_t fields)
{
	static const Nacre__V1__Workload fresh = NACRE__V1__WORKLOAD__INIT;
	const ProtobufCMessageDescriptor *type = &nacre__v1__workload__descriptor;

	for (unsigned i = 0; i < type->n_fields; i++) {
		const ProtobufCFieldDescriptor *field = &type->fields[i];
		size_t at = field->offset, size = convert_size(field);

		assert(field->id < 64);
		if (fields >> field->id & 1)
			continue;
		if (field->label == PROTOBUF_C_LABEL_REPEATED) {
			at = field->quantifier_offset;
			size = sizeof(size_t);
		}
		memcpy((char *)m + at, (const char *)&fresh + at, size);
	}
}

Nacre__V1__Workload *convert_target(struct arena *a, const struct target *t, uint64_t fields)
{
	Nacre__V1__Workload *m = t->workload ? convert_some(a, t->workload, fields)
					     : convert_instance(a, t->instance);

	if (m && fields != CONVERT_ALL)
		convert_clear(m, fields);
	return m;
}

static Nacre__V1__Signer *convert_signer(struct arena *a, const struct image_signer *s)
{
	Nacre__V1__Signer *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__signer__init(m);
	m->key = convert_str(s->key);
	m->fingerprint = convert_str(s->fingerprint);
	m->identity = convert_str(s->identity);
	m->annotations = arena_zalloc(a, s->n_annotations + 1, sizeof(*m->annotations));
	for (size_t i = 0; m->annotations && i < s->n_annotations; i++) {
		Nacre__V1__Annotation *one = arena_alloc(a, sizeof(*one));

		if (!one)
			return NULL;
		nacre__v1__annotation__init(one);
		one->name = convert_str(s->annotations[i].name);
		one->value = convert_str(s->annotations[i].value);
		m->annotations[m->n_annotations++] = one;
	}
	return m->annotations ? m : NULL;
}

Nacre__V1__Verdict *convert_verdict(struct arena *a, const struct image_verdict *v)
{
	Nacre__V1__Verdict *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__verdict__init(m);
	m->reference = convert_str(v->reference);
	m->digest = convert_str(v->digest);
	m->verdict = convert_str(image_verdict_word(v->kind));
	m->scope = convert_str(v->scope);
	m->reason = convert_str(v->reason);
	m->at = v->at;
	m->signers = arena_zalloc(a, v->n_signers + 1, sizeof(*m->signers));
	for (size_t i = 0; m->signers && i < v->n_signers; i++) {
		m->signers[i] = convert_signer(a, &v->signers[i]);
		if (!m->signers[i])
			return NULL;
		m->n_signers++;
	}
	return m->signers ? m : NULL;
}

static bool convert_verdicts(struct arena *a, const struct image *image, Nacre__V1__Image *m)
{
	struct image_verdict *list;
	size_t n;

	if (image_verdicts(image, a, &list, &n) < 0)
		return false;
	m->verdicts = arena_zalloc(a, n + 1, sizeof(*m->verdicts));
	for (size_t i = 0; m->verdicts && i < n; i++) {
		m->verdicts[i] = convert_verdict(a, &list[i]);
		if (!m->verdicts[i])
			return false;
		m->n_verdicts++;
	}
	return m->verdicts;
}

Nacre__V1__Image *convert_image(struct arena *a, const struct image *image)
{
	Nacre__V1__Image *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	nacre__v1__image__init(m);
	m->id = convert_str(image->id);
	m->digest = convert_str(image->digest);
	m->names = image->names;
	m->n_names = strv_len(image->names);
	m->repo_digests = image->origins;
	m->n_repo_digests = strv_len(image->origins);
	m->size = image->size;
	m->created_at = image->created;
	m->layers = (uint32_t)image->n_layers;
	m->pinned = image->pinned;
	m->source = image->source;
	m->containers = image->n_users;
	return convert_verdicts(a, image, m) ? m : NULL;
}

/* 0 or -ENOMEM. */
static int convert_warnings(struct arena *a, const struct pod_container *c,
			    Aurae__Runtime__V0__ContainerStatus *m)
{
	const char *word = c->image ? c->image->config.stop_signal : "";

	if (stop_signal_is_known(word))
		return 0;
	m->warnings = arena_zalloc(a, 1, sizeof(*m->warnings));
	if (!m->warnings)
		return -ENOMEM;
	m->warnings[0] = arena_printf(a,
				      "its image's StopSignal \"%s\" is no signal; it is stopped "
				      "with SIGTERM",
				      word);
	m->n_warnings = 1;
	return m->warnings[0] ? 0 : -ENOMEM;
}

static Aurae__Runtime__V0__ContainerStatus *convert_status(struct arena *a, struct pod_container *c)
{
	Aurae__Runtime__V0__ContainerStatus *m = arena_alloc(a, sizeof(*m));

	if (!m)
		return NULL;
	aurae__runtime__v0__container_status__init(m);
	m->id = c->id;
	m->name = c->name;
	m->image = convert_str(c->image_name);
	m->state = convert_str(pod_container_state_word(c));
	m->pid = pod_container_pid_told(c);
	m->exit_code = c->status.exit_code;
	m->signal = c->status.signal;
	m->reason = c->status.reason;
	m->started_at = c->status.started_at;
	m->finished_at = c->status.finished_at;
	return convert_warnings(a, c, m) == 0 ? m : NULL;
}

Aurae__Runtime__V0__ContainerStatus **convert_statuses(struct arena *a, struct workload *w)
{
	Aurae__Runtime__V0__ContainerStatus **all = arena_zalloc(a, w->n_containers, sizeof(*all));

	for (size_t i = 0; all && i < w->n_containers; i++) {
		all[i] = convert_status(a, w->containers[i]);
		if (!all[i])
			return NULL;
	}
	return all;
}

struct terminal_size convert_terminal(const Aurae__Runtime__V0__TerminalSize *size)
{
	return size ? (struct terminal_size){ (uint16_t)size->width, (uint16_t)size->height }
		    : (struct terminal_size){ 0, 0 };
}
