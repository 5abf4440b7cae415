/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/output/docker_view.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/options/health_view.h"
#include "cli/options/labels.h"
#include "cli/options/net_words.h"
#include "cli/options/ps_filter.h"
#include "cli/output/alloc.h"
#include "cli/output/text.h"
#include "cli/output/view.h"

/* What docker writes for a time that has not been. */
#define DOCKER_NO_TIME "0001-01-01T00:00:00Z"
#define DOCKER_COMMAND_COLUMNS ((size_t)20)

/* ---- words ---- */

/* "3 minutes" for "3 minutes ago". */
static void docker_since(char to[TEXT_SIZE], nsec_t now, nsec_t then)
{
	static const char ago[] = " ago";

	text_ago(to, now, then);
	if (str_has_suffix(to, ago))
		to[strlen(to) - strlen(ago)] = '\0';
	else if (str_eq(to, "just now"))
		(void)str_copy(to, TEXT_SIZE, "Less than a second");
}

static nsec_t docker_started(const Nacre__V1__Workload *w)
{
	nsec_t first = 0;

	for (size_t i = 0; i < w->n_containers; i++) {
		nsec_t at = w->containers[i]->started_at;

		if (at && (!first || at < first))
			first = at;
	}
	return first;
}

static nsec_t docker_finished(const Nacre__V1__Workload *w)
{
	nsec_t last = 0;

	for (size_t i = 0; i < w->n_containers; i++)
		last = MAX(last, w->containers[i]->finished_at);
	return last;
}

/* "Up 3 minutes (Paused)", "Exited (1) 5 seconds ago", "Created". */
static char *docker_status(const Nacre__V1__Workload *w, nsec_t now)
{
	nsec_t started = docker_started(w), finished = docker_finished(w);
	const char *health = health_view_word(w);
	char since[TEXT_SIZE];

	if (view_has_ended(w->state)) {
		docker_since(since, now, finished ? finished : w->created_at);
		return xformat("Exited (%" PRId32 ") %s ago", w->exit_code, since);
	}
	if (str_eq(ps_status(w), "created"))
		return xstrdup("Created");
	if (str_eq(ps_status(w), "removing"))
		return xstrdup("Removal In Progress");
	docker_since(since, now, started ? started : w->created_at);
	if (!*health || w->paused)
		return xformat("Up %s%s", since, w->paused ? " (Paused)" : "");
	return xformat("Up %s (%s%s)", since, str_eq(health, "starting") ? "health: " : "", health);
}

static char *docker_ports(const Nacre__V1__Workload *w)
{
	char *all = xstrdup("");

	for (size_t i = 0; w->attachment && i < w->attachment->n_publish; i++) {
		const Aurae__Runtime__V0__PublishedPort *p = w->attachment->publish[i];
		_cleanup_str_ char *host = net_words_host(p), *before = all;

		all = xformat("%s%s%s->%" PRIu32 "/%s", before, *before ? ", " : "", host, p->port,
			      *p->protocol ? p->protocol : "tcp");
	}
	return all;
}

static char *docker_mounts(const Nacre__V1__Workload *w)
{
	char *all = xstrdup("");

	for (size_t i = 0; i < w->n_containers; i++)
		for (size_t k = 0; k < w->containers[i]->n_mounts; k++) {
			const Aurae__Runtime__V0__Mount *m = w->containers[i]->mounts[k];
			_cleanup_str_ char *before = all;

			all = xformat("%s%s%s", before, *before ? "," : "",
				      *m->source ? m->source : m->target);
		}
	return all;
}

static char *docker_command(const Nacre__V1__Workload *w, bool whole)
{
	const char *text = w->n_containers > 0 ? w->containers[0]->command : "";
	size_t n;

	if (whole || text_width(text) <= DOCKER_COMMAND_COLUMNS)
		return xformat("\"%s\"", text);
	n = text_prefix(text, DOCKER_COMMAND_COLUMNS - 1);
	return xformat("\"%.*s…\"", (int)n, text);
}

/* "2026-01-31 10:00:00 +0000 UTC" */
static char *docker_time(nsec_t at)
{
	char text[CLOCK_TEXT_SIZE];

	clock_format(text, at);
	return xformat("%.10s %.8s +0000 UTC", text, text + 11);
}

/* ---- rows of ps ---- */

static const struct {
	const char *member, *head;
} docker_heads[] = {
	{ "ID", "CONTAINER ID" },      { "CreatedAt", "CREATED AT" }, { "RunningFor", "CREATED" },
	{ "CreatedSince", "CREATED" }, { "PodName", "POD NAME" },     { "Pod", "POD ID" },
	{ "ExitCode", "EXIT CODE" },
};

static const char *docker_head_upper(const char *member)
{
	static char text[64];
	size_t n = MIN(strlen(member), sizeof(text) - 1);

	for (size_t i = 0; i < n; i++)
		text[i] = (char)(member[i] >= 'a' && member[i] <= 'z' ? member[i] - 'a' + 'A'
								      : member[i]);
	text[n] = '\0';
	return text;
}

const char *docker_view_head(const char *member)
{
	for (size_t i = 0; i < ARRAY_SIZE(docker_heads); i++)
		if (str_eq(docker_heads[i].member, member))
			return docker_heads[i].head;
	return docker_head_upper(member);
}

void docker_view_row(struct json *j, const void *what)
{
	const struct docker_row *row = what;
	const Nacre__V1__Workload *w = row->workload;
	_cleanup_str_ char *status = docker_status(w, row->now), *ports = docker_ports(w);
	_cleanup_str_ char *command = docker_command(w, row->no_trunc), *labels = labels_words(w);
	_cleanup_str_ char *images = view_images(w), *mounts = docker_mounts(w);
	_cleanup_str_ char *created = docker_time(w->created_at);
	bool is_pod = str_eq(w->kind, "pod");
	char since[TEXT_SIZE];

	text_ago(since, row->now, w->created_at);
	json_put_object(j, NULL);
	json_put_string(j, "ID", w->id);
	json_put_string(j, "Names", w->name);
	json_put_string(j, "Image", images);
	json_put_string(j, "Command", command);
	json_put_string(j, "CreatedAt", created);
	json_put_string(j, "RunningFor", since);
	json_put_string(j, "Status", status);
	json_put_string(j, "State", ps_status(w));
	json_put_string(j, "Ports", ports);
	json_put_string(j, "Labels", labels);
	json_put_string(j, "Networks", w->network);
	json_put_string(j, "Mounts", mounts);
	json_put_string(j, "Kind", w->kind);
	json_put_integer(j, "Pid", w->n_containers > 0 ? w->containers[0]->pid : w->pid);
	json_put_integer(j, "ExitCode", w->exit_code);
	json_put_string(j, "Pod", is_pod ? w->id : "");
	json_put_string(j, "PodName", is_pod ? w->name : "");
	labels_view(j, "LabelMap", w);
	json_put_end(j);
}

/* ---- inspect ---- */

static void docker_put_time(struct json *j, const char *key, nsec_t at)
{
	if (at)
		json_put_time(j, key, at);
	else
		json_put_string(j, key, DOCKER_NO_TIME);
}

static void docker_state(struct json *j, const Nacre__V1__Workload *w,
			 const Nacre__V1__Container *c)
{
	bool ended = view_has_ended(w->state);

	json_put_object(j, "State");
	json_put_string(j, "Status", ps_status(w));
	json_put_bool(j, "Running", !ended && !str_eq(ps_status(w), "created"));
	json_put_bool(j, "Paused", w->paused);
	json_put_bool(j, "OOMKilled", c && str_has_prefix(c->reason, "OOMKilled"));
	json_put_integer(j, "Pid", c ? c->pid : w->pid);
	json_put_integer(j, "ExitCode", w->exit_code);
	json_put_string(j, "Error", *w->reason || !c ? w->reason : c->reason);
	docker_put_time(j, "StartedAt", docker_started(w));
	docker_put_time(j, "FinishedAt", ended ? docker_finished(w) : 0);
	health_view_docker(j, c);
	json_put_end(j);
}

static void docker_ports_json(struct json *j, const Nacre__V1__WorkloadNetwork *n)
{
	json_put_object(j, "Ports");
	for (size_t i = 0; n && i < n->n_publish; i++) {
		const Aurae__Runtime__V0__PublishedPort *p = n->publish[i];
		_cleanup_str_ char *key =
			xformat("%" PRIu32 "/%s", p->port, *p->protocol ? p->protocol : "tcp");
		bool again = false;

		/* One member has all addresses and ports that lead to one port. */
		for (size_t k = 0; k < i && !again; k++)
			again = n->publish[k]->port == p->port &&
				str_eq(n->publish[k]->protocol, p->protocol);
		if (again)
			continue;
		json_put_array(j, key);
		for (size_t k = i; k < n->n_publish; k++) {
			const Aurae__Runtime__V0__PublishedPort *q = n->publish[k];
			_cleanup_str_ char *host = xformat("%" PRIu32, q->host_port);

			if (q->port != p->port || !str_eq(q->protocol, p->protocol))
				continue;
			json_put_object(j, NULL);
			json_put_string(j, "HostIp", *q->host_ip ? q->host_ip : "0.0.0.0");
			json_put_string(j, "HostPort", host);
			json_put_end(j);
		}
		json_put_end(j);
	}
	json_put_end(j);
}

static void docker_addresses(struct json *j, const Nacre__V1__WorkloadNetwork *n)
{
	json_put_string(j, "IPAddress", n ? n->ip : "");
	json_put_string(j, "GlobalIPv6Address", n ? n->ip6 : "");
	json_put_string(j, "MacAddress", n ? n->mac : "");
}

static void docker_network(struct json *j, const Nacre__V1__Workload *w)
{
	const Nacre__V1__WorkloadNetwork *n = w->attachment;

	json_put_object(j, "NetworkSettings");
	docker_addresses(j, n);
	docker_ports_json(j, n);
	json_put_object(j, "Networks");
	json_put_object(j, n && *n->name ? n->name : w->network);
	docker_addresses(j, n);
	json_put_end(j);
	json_put_end(j);
	json_put_end(j);
}

static void docker_mounts_json(struct json *j, const Nacre__V1__Container *c)
{
	json_put_array(j, "Mounts");
	for (size_t i = 0; c && i < c->n_mounts; i++) {
		const Aurae__Runtime__V0__Mount *m = c->mounts[i];

		json_put_object(j, NULL);
		json_put_string(j, "Type",
				m->tmpfs            ? "tmpfs"
				: m->identity       ? "bind"
				: *m->image         ? "image"
				: *m->volume        ? "volume"
				: *m->source == '/' ? "bind"
						    : "volume");
		if (*m->volume)
			json_put_string(j, "Name", m->volume);
		/* Where a volume lies `nacre volume inspect` tells. */
		if (*m->image || *m->source)
			json_put_string(j, "Source", *m->image ? m->image : m->source);
		json_put_string(j, "Destination", m->target);
		json_put_bool(j, "RW", !m->read_only);
		json_put_end(j);
	}
	json_put_end(j);
}

/* A list, or null where nothing was said. */
static void docker_words(struct json *j, const char *key, char *const *words, size_t n)
{
	if (n > 0)
		view_words(j, key, words, n);
	else
		json_put_null(j, key);
}

static void docker_restart_policy(struct json *j, const Nacre__V1__Workload *w)
{
	bool said = w->restart && *w->restart->policy;

	json_put_object(j, "RestartPolicy");
	json_put_string(j, "Name", said ? w->restart->policy : "no");
	json_put_integer(j, "MaximumRetryCount", said ? w->restart->max_retries : 0);
	json_put_end(j);
}

static void docker_privilege(struct json *j, const Aurae__Runtime__V0__Security *s)
{
	json_put_bool(j, "Privileged", s && (s->privileged || str_eq(s->profile, "privileged")));
	docker_words(j, "CapAdd", s ? s->cap_add : NULL, s ? s->n_cap_add : 0);
	docker_words(j, "CapDrop", s ? s->cap_drop : NULL, s ? s->n_cap_drop : 0);
}

/* 0 is no limit for docker. */
static uint64_t docker_limit(uint64_t limit)
{
	return limit == UINT64_MAX ? 0 : limit;
}

static void docker_host_config(struct json *j, const Nacre__V1__Workload *w,
			       const Nacre__V1__Container *c)
{
	const Aurae__Runtime__V0__Resources *r = c ? c->resources : w->resources;
	uint64_t quota = r && r->cpu_quota > 0 ? (uint64_t)r->cpu_quota : 0;
	uint64_t period = r && r->cpu_period ? r->cpu_period : 100000;

	json_put_object(j, "HostConfig");
	json_put_string(j, "NetworkMode", w->network);
	json_put_bool(j, "AutoRemove", w->auto_remove);
	docker_restart_policy(j, w);
	docker_privilege(j, c ? c->security : NULL);
	json_put_bool(j, "ReadonlyRootfs", c && c->read_only_root);
	json_put_unsigned(j, "Memory", r ? docker_limit(r->memory) : 0);
	json_put_unsigned(j, "NanoCpus", quota * 1000 / period * 1000000);
	json_put_unsigned(j, "PidsLimit", r ? docker_limit(r->pids) : 0);
	json_put_string(j, "CpusetCpus", r ? r->cpuset_cpus : "");
	json_put_end(j);
}

static void docker_config(struct json *j, const Nacre__V1__Workload *w,
			  const Nacre__V1__Container *c)
{
	const Aurae__Runtime__V0__PodNetwork *asked = w->attachment ? w->attachment->asked : NULL;

	json_put_object(j, "Config");
	json_put_string(j, "Hostname", asked && *asked->hostname ? asked->hostname : w->name);
	json_put_string(j, "User", c ? c->user : "");
	json_put_bool(j, "Tty", c && c->tty);
	json_put_bool(j, "OpenStdin", c && c->stdin);
	json_put_string(j, "Image", c ? c->image : "");
	labels_view(j, "Labels", w);
	json_put_end(j);
}

void docker_view_workload(struct json *j, const void *what)
{
	const Nacre__V1__Workload *w = what;
	const Nacre__V1__Container *c = w->n_containers > 0 ? w->containers[0] : NULL;
	_cleanup_str_ char *name = xformat("/%s", w->name);

	json_put_object(j, NULL);
	json_put_string(j, "Id", w->id);
	json_put_time(j, "Created", w->created_at);
	json_put_string(j, "Path", c ? c->command : "");
	docker_state(j, w, c);
	json_put_string(j, "Image", c ? c->image_id : "");
	json_put_string(j, "Name", name);
	json_put_integer(j, "RestartCount", w->restart_count);
	json_put_string(j, "Platform", "linux");
	docker_host_config(j, w, c);
	docker_mounts_json(j, c);
	docker_config(j, w, c);
	docker_network(j, w);
	json_put_end(j);
}

/* ---- images ---- */

const char *docker_view_image_head(const char *member)
{
	return str_eq(member, "ID") ? "IMAGE ID" : docker_view_head(member);
}

/* Where the tag of a name begins, behind the ':'; NULL where it has none. */
static const char *docker_tag(const char *name)
{
	const char *last = strrchr(name, '/');
	const char *colon = strrchr(last ? last : name, ':');

	return colon ? colon + 1 : NULL;
}

/* docker.io/library/busybox is busybox to a user of docker. */
static char *docker_repository(const char *name)
{
	static const char *const parts[] = { "docker.io/library/", "docker.io/" };
	const char *tag = docker_tag(name);
	size_t len = tag ? (size_t)(tag - name) - 1 : strlen(name);

	for (size_t i = 0; i < ARRAY_SIZE(parts); i++)
		if (str_has_prefix(name, parts[i]))
			return xformat("%.*s", (int)(len - strlen(parts[i])),
				       name + strlen(parts[i]));
	return xformat("%.*s", (int)len, name);
}

void docker_view_image_row(struct json *j, const void *what)
{
	const struct docker_image_row *row = what;
	const Nacre__V1__Image *image = row->image;
	_cleanup_str_ char *repository = row->name ? docker_repository(row->name) : NULL;
	_cleanup_str_ char *created = docker_time(image->created_at);
	_cleanup_str_ char *containers = xformat("%" PRIu32, image->containers);
	const char *tag = row->name ? docker_tag(row->name) : NULL;
	char id[TEXT_SIZE], size[TEXT_SIZE], since[TEXT_SIZE];

	text_short_id(id, image->id);
	text_bytes(size, image->size);
	text_ago(since, row->now, image->created_at);
	json_put_object(j, NULL);
	json_put_string(j, "Repository", repository ? repository : "<none>");
	json_put_string(j, "Tag", tag ? tag : "<none>");
	json_put_string(j, "ID", row->no_trunc ? image->id : id);
	json_put_string(j, "Digest", row->digest);
	json_put_string(j, "CreatedAt", created);
	json_put_string(j, "CreatedSince", since);
	json_put_string(j, "Size", size);
	json_put_string(j, "Containers", containers);
	json_put_end(j);
}

void docker_view_value(struct json *j, const char *key, const struct json_value *v)
{
	uint64_t number;

	switch (v->kind) {
	case JSON_NULL:
		json_put_null(j, key);
		return;
	case JSON_BOOL:
		json_put_bool(j, key, v->truth);
		return;
	case JSON_NUMBER:
		/* What is no whole number is shown as it is written. */
		if (parse_u64(v->text, 0, UINT64_MAX, &number) == 0)
			json_put_unsigned(j, key, number);
		else
			json_put_string(j, key, v->text);
		return;
	case JSON_STRING:
		json_put_string(j, key, v->text);
		return;
	case JSON_ARRAY:
		json_put_array(j, key);
		break;
	case JSON_OBJECT:
		json_put_object(j, key);
		break;
	}
	for (const struct json_value *m = v->first; m; m = m->next)
		docker_view_value(j, m->name, m);
	json_put_end(j);
}

static void docker_image_member(struct json *j, const char *key, const struct json_value *config,
				const char *name)
{
	const struct json_value *v = config->kind == JSON_OBJECT ? json_member(config, name) : NULL;

	if (v)
		docker_view_value(j, key, v);
	else
		json_put_string(j, key, "");
}

void docker_view_image(struct json *j, const void *what)
{
	const struct docker_image *i = what;
	const Nacre__V1__Image *image = i->image;

	json_put_object(j, NULL);
	json_put_string(j, "Id", image->id);
	view_words(j, "RepoTags", image->names, image->n_names);
	view_words(j, "RepoDigests", image->repo_digests, image->n_repo_digests);
	json_put_time(j, "Created", image->created_at);
	docker_image_member(j, "Architecture", i->config, "architecture");
	docker_image_member(j, "Os", i->config, "os");
	json_put_unsigned(j, "Size", image->size);
	docker_image_member(j, "Config", i->config, "config");
	docker_image_member(j, "RootFS", i->config, "rootfs");
	json_put_end(j);
}
