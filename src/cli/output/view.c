/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/view.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/macros.h"
#include "base/text/str.h"
#include "cli/options/health_view.h"
#include "cli/options/labels.h"
#include "cli/options/net_words.h"
#include "cli/output/alloc.h"

static const struct {
	const char *state;
	enum table_color color;
	bool ended;
} states[] = {
	{ "running", TABLE_GREEN, false },   { "ready", TABLE_GREEN, false },
	{ "created", TABLE_YELLOW, false },  { "starting", TABLE_YELLOW, false },
	{ "spawning", TABLE_YELLOW, false }, { "stopping", TABLE_YELLOW, false },
	{ "removing", TABLE_YELLOW, false }, { "exited", TABLE_DIM, true },
	{ "failed", TABLE_RED, true },
};

bool view_has_ended(const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		if (str_eq(states[i].state, state))
			return states[i].ended;
	}
	return false;
}

enum table_color view_state_color(const char *state)
{
	for (size_t i = 0; i < ARRAY_SIZE(states); i++) {
		if (str_eq(states[i].state, state))
			return states[i].color;
	}
	return TABLE_PLAIN;
}

char *view_state(const char *kind, const char *state, int32_t exit_code)
{
	/* An instance has no exit code. */
	if (!view_has_ended(state) || str_eq(kind, "instance"))
		return xstrdup(state);
	return xformat("%s (%" PRId32 ")", state, exit_code);
}

char *view_images(const Nacre__V1__Workload *w)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < w->n_containers; i++) {
		const char *image = w->containers[i]->image;
		char *longer = xformat("%s%s%s", all, *all && *image ? "," : "", image);

		free(all);
		all = longer;
	}
	return all;
}

char *view_ports(const Nacre__V1__Workload *w)
{
	return w->attachment ? net_words_ports(w->attachment->publish, w->attachment->n_publish)
			     : xstrdup("");
}

char *view_pid(int64_t pid)
{
	return pid > 0 ? xformat("%" PRId64, pid) : xstrdup("");
}

char *view_kind(const Nacre__V1__Workload *w)
{
	/* That it is walled by namespaces goes without saying. */
	if (str_empty(w->instance_kind) || str_eq(w->instance_kind, "cell"))
		return xstrdup(w->kind);
	return xformat("%s %s", w->instance_kind, w->kind);
}

char *view_level(const Nacre__V1__Workload *w, const char *kernel)
{
	if (str_empty(w->instance_kind))
		return view_kind(w);
	return str_empty(kernel) ? xformat("%s %s", w->instance_kind, w->kind)
				 : xformat("%s %s (Linux %s)", w->instance_kind, w->kind, kernel);
}

void view_started(const char *id, const char *name, const char *kind, const char *kind_reason)
{
	struct json j = JSON_INIT(stdout);

	json_put_object(&j, NULL);
	json_put_string(&j, "id", id);
	json_put_string(&j, "name", name);
	json_put_string(&j, "kind", kind);
	json_put_word(&j, "kind_reason", kind_reason);
	json_put_end(&j);
}

static void view_pid_json(struct json *j, int64_t pid)
{
	if (pid > 0)
		json_put_integer(j, "pid", pid);
	else
		json_put_null(j, "pid");
}

static void view_exit_code(struct json *j, const char *state, int32_t exit_code)
{
	if (view_has_ended(state))
		json_put_integer(j, "exit_code", exit_code);
	else
		json_put_null(j, "exit_code");
}

static void view_mount(struct json *j, const Aurae__Runtime__V0__Mount *m)
{
	json_put_object(j, NULL);
	json_put_word(j, "source", m->source);
	json_put_word(j, "volume", m->volume);
	json_put_word(j, "image", m->image);
	json_put_word(j, "sub_path", m->sub_path);
	json_put_string(j, "target", m->target);
	json_put_bool(j, "read_only", m->read_only);
	json_put_bool(j, "no_exec", m->no_exec);
	json_put_word(j, "propagation", m->propagation);
	json_put_bool(j, "identity", m->identity);
	json_put_bool(j, "cdi", m->cdi);
	json_put_array(j, "secrets");
	for (size_t i = 0; i < m->n_secrets; i++)
		json_put_string(j, NULL, m->secrets[i]->name);
	json_put_end(j);
	if (m->tmpfs) {
		json_put_object(j, "tmpfs");
		json_put_unsigned(j, "size", m->tmpfs->size);
		json_put_unsigned(j, "mode", m->tmpfs->mode);
		json_put_unsigned(j, "uid", m->tmpfs->uid);
		json_put_unsigned(j, "gid", m->tmpfs->gid);
		json_put_end(j);
	} else {
		json_put_null(j, "tmpfs");
	}
	json_put_end(j);
}

/* What is not said is null; "max": explicitly no limit. */
static void view_limit(struct json *j, const char *key, uint64_t value)
{
	if (value == 0)
		json_put_null(j, key);
	else if (value == UINT64_MAX)
		json_put_string(j, key, "max");
	else
		json_put_unsigned(j, key, value);
}

static void view_resources(struct json *j, const Aurae__Runtime__V0__Resources *r)
{
	if (!r) {
		json_put_null(j, "resources");
		return;
	}
	json_put_object(j, "resources");
	view_limit(j, "memory", r->memory);
	view_limit(j, "memory_low", r->memory_low);
	view_limit(j, "memory_high", r->memory_high);
	view_limit(j, "memory_swap", r->memory_swap);
	json_put_bool(j, "no_swap", r->no_swap);
	view_limit(j, "cpu_quota", (uint64_t)r->cpu_quota);
	view_limit(j, "cpu_period", r->cpu_period);
	view_limit(j, "cpu_weight", r->cpu_weight);
	json_put_word(j, "cpuset_cpus", r->cpuset_cpus);
	json_put_word(j, "cpuset_mems", r->cpuset_mems);
	view_limit(j, "pids", r->pids);
	json_put_end(j);
}

/* Also 0 is one. */
static void view_ulimit(struct json *j, const char *key, uint64_t value)
{
	if (value == UINT64_MAX)
		json_put_string(j, key, "max");
	else
		json_put_unsigned(j, key, value);
}

static void view_security(struct json *j, const Aurae__Runtime__V0__Security *s)
{
	if (!s) {
		json_put_null(j, "security");
		return;
	}
	json_put_object(j, "security");
	json_put_word(j, "profile", s->profile);
	view_words(j, "cap_add", s->cap_add, s->n_cap_add);
	view_words(j, "cap_drop", s->cap_drop, s->n_cap_drop);
	json_put_word(j, "privilege_escalation", s->privilege_escalation);
	json_put_word(j, "seccomp", s->seccomp);
	json_put_array(j, "groups");
	for (size_t i = 0; i < s->n_groups; i++)
		json_put_unsigned(j, NULL, s->groups[i]);
	json_put_end(j);
	json_put_bool(j, "groups_exact", s->groups_exact);
	json_put_integer(j, "oom_score_adj", s->oom_score_adj);
	json_put_bool(j, "privileged", s->privileged);
	json_put_bool(j, "writable_cgroup", s->writable_cgroup);
	view_words(j, "mask", s->mask, s->n_mask);
	view_words(j, "unmask", s->unmask, s->n_unmask);
	json_put_array(j, "ulimits");
	for (size_t i = 0; i < s->n_ulimits; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "name", s->ulimits[i]->name);
		view_ulimit(j, "soft", s->ulimits[i]->soft);
		view_ulimit(j, "hard", s->ulimits[i]->hard);
		json_put_end(j);
	}
	json_put_end(j);
	json_put_end(j);
}

static void view_devices(struct json *j, Aurae__Runtime__V0__Device *const *devices, size_t n)
{
	json_put_array(j, "devices");
	for (size_t i = 0; i < n; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "host_path", devices[i]->host_path);
		json_put_word(j, "path", devices[i]->path);
		json_put_word(j, "permissions", devices[i]->permissions);
		json_put_bool(j, "cdi", devices[i]->cdi);
		json_put_end(j);
	}
	json_put_end(j);
}

/* What the containers of a pod share. */
static void view_pod_security(struct json *j, const Aurae__Runtime__V0__PodSecurity *s)
{
	if (!s) {
		json_put_null(j, "security");
		return;
	}
	json_put_object(j, "security");
	json_put_word(j, "pid", s->pid);
	json_put_word(j, "ipc", s->ipc);
	json_put_word(j, "uts", s->uts);
	json_put_word(j, "userns", s->userns);
	json_put_word(j, "profile", s->profile);
	view_words(j, "sysctls", s->sysctls, s->n_sysctls);
	json_put_word(j, "cgroup_parent", s->cgroup_parent);
	json_put_end(j);
}

/* The policy of one container. */
static void view_container_restart(struct json *j, const Aurae__Runtime__V0__RestartPolicy *p,
				   uint32_t count, bool stopped)
{
	json_put_string(j, "restart", p && !str_empty(p->policy) ? p->policy : "no");
	json_put_unsigned(j, "restart_max", p ? p->max_retries : 0);
	json_put_unsigned(j, "restart_count", count);
	json_put_bool(j, "stopped", stopped);
}

static void view_container(struct json *j, const Nacre__V1__Container *c)
{
	json_put_object(j, NULL);
	json_put_string(j, "id", c->id);
	json_put_string(j, "name", c->name);
	json_put_word(j, "image", c->image);
	json_put_word(j, "image_id", c->image_id);
	json_put_string(j, "state", c->state);
	view_exit_code(j, c->state, c->exit_code);
	json_put_integer(j, "signal", c->signal);
	json_put_word(j, "reason", c->reason);
	json_put_unsigned(j, "log_lost", c->log_lost);
	view_pid_json(j, c->pid);
	json_put_time(j, "started_at", c->started_at);
	json_put_time(j, "finished_at", c->finished_at);
	json_put_word(j, "command", c->command);
	json_put_word(j, "user", c->user);
	json_put_array(j, "mounts");
	for (size_t i = 0; i < c->n_mounts; i++)
		view_mount(j, c->mounts[i]);
	json_put_end(j);
	json_put_bool(j, "read_only_root", c->read_only_root);
	json_put_unsigned(j, "disk", c->disk);
	view_resources(j, c->resources);
	view_security(j, c->security);
	view_devices(j, c->devices, c->n_devices);
	view_words(j, "cdi_devices", c->cdi_devices, c->n_cdi_devices);
	json_put_bool(j, "init", c->init);
	json_put_bool(j, "init_container", c->init_container);
	json_put_bool(j, "debug", c->debug);
	view_container_restart(j, c->restart, c->restart_count, c->stopped);
	health_view(j, c);
	json_put_end(j);
}

void view_port(struct json *j, const Aurae__Runtime__V0__PublishedPort *p)
{
	json_put_object(j, NULL);
	json_put_word(j, "host_ip", p->host_ip);
	json_put_unsigned(j, "host_port", p->host_port);
	json_put_unsigned(j, "port", p->port);
	json_put_word(j, "protocol", p->protocol);
	json_put_unsigned(j, "count", p->count);
	json_put_end(j);
}

static void view_ports_json(struct json *j, Aurae__Runtime__V0__PublishedPort *const *ports,
			    size_t n)
{
	json_put_array(j, "publish");
	for (size_t i = 0; i < n; i++)
		view_port(j, ports[i]);
	json_put_end(j);
}

/* User data may be anything, and long. */
static void view_metadata(struct json *j, const Aurae__Runtime__V0__Metadata *m)
{
	if (!m) {
		json_put_null(j, "metadata");
		return;
	}
	json_put_object(j, "metadata");
	json_put_unsigned(j, "user_data_bytes", m->user_data.len);
	json_put_bool(j, "identity", m->identity);
	json_put_end(j);
}

static void view_asked(struct json *j, const Aurae__Runtime__V0__PodNetwork *m)
{
	if (!m) {
		json_put_null(j, "asked");
		return;
	}
	json_put_object(j, "asked");
	json_put_word(j, "ip", m->ip);
	json_put_word(j, "ip6", m->ip6);
	json_put_word(j, "mac", m->mac);
	view_ports_json(j, m->publish, m->n_publish);
	view_words(j, "dns", m->dns, m->n_dns);
	view_words(j, "dns_search", m->dns_search, m->n_dns_search);
	view_words(j, "dns_option", m->dns_option, m->n_dns_option);
	json_put_array(j, "hosts");
	for (size_t i = 0; i < m->n_hosts; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "name", m->hosts[i]->name);
		json_put_string(j, "address", m->hosts[i]->address);
		json_put_end(j);
	}
	json_put_end(j);
	json_put_word(j, "hostname", m->hostname);
	json_put_unsigned(j, "rate_to_pod", m->rate_to_pod);
	json_put_unsigned(j, "rate_from_pod", m->rate_from_pod);
	view_metadata(j, m->metadata);
	json_put_end(j);
}

static void view_attached(struct json *j, const Nacre__V1__WorkloadNetwork *m)
{
	json_put_word(j, "name", m->name);
	json_put_word(j, "device", m->device);
	json_put_word(j, "ip", m->ip);
	json_put_word(j, "ip6", m->ip6);
	json_put_word(j, "mac", m->mac);
}

static void view_further(struct json *j, Aurae__Runtime__V0__FurtherNetwork *const *list, size_t n)
{
	json_put_array(j, "further");
	for (size_t i = 0; i < n; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "network", list[i]->network);
		json_put_word(j, "ip", list[i]->ip);
		json_put_word(j, "ip6", list[i]->ip6);
		json_put_word(j, "mac", list[i]->mac);
		json_put_end(j);
	}
	json_put_end(j);
}

static void view_attachment(struct json *j, const Nacre__V1__WorkloadNetwork *m)
{
	if (!m) {
		json_put_null(j, "attachment");
		return;
	}
	json_put_object(j, "attachment");
	view_attached(j, m);
	view_ports_json(j, m->publish, m->n_publish);
	view_asked(j, m->asked);
	view_further(j, m->further, m->n_further);
	json_put_end(j);
}

void view_network(struct json *j, const Nacre__V1__WorkloadNetwork *m)
{
	json_put_object(j, NULL);
	view_attached(j, m);
	json_put_end(j);
}

static void view_restart(struct json *j, const Nacre__V1__Workload *w)
{
	json_put_string(j, "restart", w->restart ? w->restart->policy : "no");
	json_put_integer(j, "restart_max", w->restart ? w->restart->max_retries : 0);
	json_put_integer(j, "restart_count", w->restart_count);
	json_put_time(j, "restart_at", w->restart_at);
	json_put_bool(j, "stopped", w->stopped);
}

void view_workload(struct json *j, const char *key, const Nacre__V1__Workload *w)
{
	_cleanup_str_ char *images = view_images(w);

	json_put_object(j, key);
	json_put_string(j, "id", w->id);
	json_put_string(j, "name", w->name);
	json_put_string(j, "kind", w->kind);
	json_put_string(j, "state", w->state);
	json_put_word(j, "image", images);
	view_exit_code(j, w->state, w->exit_code);
	json_put_word(j, "reason", w->reason);
	json_put_time(j, "created_at", w->created_at);
	json_put_string(j, "instance", w->instance);
	json_put_word(j, "network", w->network);
	view_attachment(j, w->attachment);
	json_put_array(j, "further_attachments");
	for (size_t i = 0; i < w->n_further_attachments; i++)
		view_network(j, w->further_attachments[i]);
	json_put_end(j);
	view_pid_json(j, w->pid);
	json_put_word(j, "instance_kind", w->instance_kind);
	json_put_word(j, "kind_reason", w->kind_reason);
	json_put_word(j, "kernel", w->kernel);
	json_put_word(j, "cgroup", w->cgroup);
	json_put_bool(j, "paused", w->paused);
	json_put_bool(j, "auto_remove", w->auto_remove);
	view_restart(j, w);
	view_resources(j, w->resources);
	view_pod_security(j, w->security);
	if (w->ids_count) {
		json_put_object(j, "ids");
		json_put_unsigned(j, "uid", w->ids_uid);
		json_put_unsigned(j, "gid", w->ids_gid);
		json_put_unsigned(j, "count", w->ids_count);
		json_put_end(j);
	} else {
		json_put_null(j, "ids");
	}
	json_put_word(j, "comment", w->comment);
	json_put_word(j, "keeper_note", w->keeper_note);
	labels_view(j, "labels", w);
	json_put_array(j, "containers");
	for (size_t i = 0; i < w->n_containers; i++)
		view_container(j, w->containers[i]);
	json_put_end(j);
	json_put_end(j);
}

const char *view_process_state(const char *letter)
{
	static const struct {
		char letter;
		const char *word;
	} words[] = {
		{ 'R', "runs" },   { 'S', "sleeps" }, { 'D', "blocked" }, { 'T', "stopped" },
		{ 't', "traced" }, { 'Z', "ended" },  { 'I', "idle" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (words[i].letter == letter[0])
			return words[i].word;
	}
	return letter;
}

void view_process(struct json *j, const Nacre__V1__Process *p)
{
	json_put_object(j, NULL);
	json_put_integer(j, "pid", p->pid);
	json_put_integer(j, "inner_pid", p->inner_pid);
	json_put_integer(j, "parent", p->parent);
	json_put_word(j, "container", p->container);
	json_put_unsigned(j, "uid", p->uid);
	json_put_string(j, "state", p->state);
	json_put_unsigned(j, "cpu_us", p->cpu_us);
	json_put_unsigned(j, "memory", p->memory);
	json_put_string(j, "command", p->command);
	json_put_end(j);
}

void view_words(struct json *j, const char *key, char *const *words, size_t n)
{
	json_put_array(j, key);
	for (size_t i = 0; i < n; i++)
		json_put_string(j, NULL, words[i]);
	json_put_end(j);
}

static void view_signer(struct json *j, const Nacre__V1__Signer *s)
{
	json_put_object(j, NULL);
	json_put_string(j, "key", s->key);
	json_put_string(j, "fingerprint", s->fingerprint);
	json_put_string(j, "identity", s->identity);
	if (s->n_annotations > 0)
		json_put_object(j, "annotations");
	for (size_t i = 0; i < s->n_annotations; i++)
		json_put_string(j, s->annotations[i]->name, s->annotations[i]->value);
	if (s->n_annotations > 0)
		json_put_end(j);
	json_put_end(j);
}

void view_verdict(struct json *j, const char *key, const Nacre__V1__Verdict *v)
{
	json_put_object(j, key);
	json_put_string(j, "reference", v->reference);
	json_put_string(j, "digest", v->digest);
	json_put_string(j, "verdict", v->verdict);
	json_put_string(j, "scope", v->scope);
	json_put_word(j, "reason", v->reason);
	json_put_array(j, "signers");
	for (size_t i = 0; i < v->n_signers; i++)
		view_signer(j, v->signers[i]);
	json_put_end(j);
	json_put_time(j, "at", v->at);
	json_put_end(j);
}

void view_image(struct json *j, const char *key, const Nacre__V1__Image *image)
{
	json_put_object(j, key);
	json_put_string(j, "id", image->id);
	json_put_string(j, "digest", image->digest);
	view_words(j, "names", image->names, image->n_names);
	view_words(j, "repo_digests", image->repo_digests, image->n_repo_digests);
	json_put_unsigned(j, "size", image->size);
	json_put_unsigned(j, "layers", image->layers);
	json_put_time(j, "created_at", image->created_at);
	json_put_bool(j, "pinned", image->pinned);
	json_put_word(j, "source", image->source);
	json_put_unsigned(j, "containers", image->containers);
	json_put_array(j, "verdicts");
	for (size_t i = 0; i < image->n_verdicts; i++)
		view_verdict(j, NULL, image->verdicts[i]);
	json_put_end(j);
	json_put_end(j);
}
