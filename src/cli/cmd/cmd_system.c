/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/when.h"
#include "cli/output/alloc.h"
#include "cli/output/table.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/listing.h"
#include "cli/table/command.h"

/*
 * What takes room on this node, and what of it nobody needs: workloads that have ended, networks
 * that nobody is on, images that nothing is made of, volumes that nobody has. Each kind is a row of
 * the two tables below.
 */

/* ---- system df ---- */

struct df_row {
	const char *name, *member;
	uint64_t total, active, bytes, reclaimable;
};

static bool df_is_workload(const Nacre__V1__Workload *w)
{
	return !str_eq(w->kind, "instance");
}

static const Nacre__V1__Workload *df_owner(const Nacre__V1__ListResponse *list, const char *id)
{
	for (size_t i = 0; i < list->n_workloads; i++)
		for (size_t k = 0; k < list->workloads[i]->n_containers; k++)
			if (str_eq(list->workloads[i]->containers[k]->id, id))
				return list->workloads[i];
	return NULL;
}

static struct df_row df_images(const Nacre__V1__DiskUsageResponse *u,
			       const Nacre__V1__ListImagesResponse *images)
{
	struct df_row row = { .name = "Images",
			      .member = "images",
			      .total = images->n_images,
			      .bytes = u->layer_bytes + u->blob_bytes + u->erofs_bytes,
			      .reclaimable = u->reclaimable_bytes };

	for (size_t i = 0; i < images->n_images; i++)
		row.active += images->images[i]->containers > 0;
	return row;
}

static struct df_row df_containers(const Nacre__V1__DiskUsageResponse *u,
				   const Nacre__V1__ListResponse *list)
{
	struct df_row row = { .name = "Containers",
			      .member = "containers",
			      .bytes = u->container_bytes };

	for (size_t i = 0; i < list->n_workloads; i++) {
		const Nacre__V1__Workload *w = list->workloads[i];

		if (!df_is_workload(w))
			continue;
		row.total += w->n_containers;
		row.active += view_has_ended(w->state) ? 0 : w->n_containers;
	}
	for (size_t i = 0; i < u->n_containers; i++) {
		const Nacre__V1__Workload *w = df_owner(list, u->containers[i]->name);

		row.reclaimable += w && view_has_ended(w->state) ? u->containers[i]->bytes : 0;
	}
	return row;
}

static struct df_row df_volumes(const Nacre__V1__ListVolumesResponse *volumes)
{
	struct df_row row = { .name = "Local Volumes",
			      .member = "volumes",
			      .total = volumes->n_volumes };

	for (size_t i = 0; i < volumes->n_volumes; i++) {
		const Nacre__V1__NodeVolume *v = volumes->volumes[i];

		row.bytes += v->bytes;
		row.active += v->n_workloads > 0;
		row.reclaimable += v->n_workloads > 0 ? 0 : v->bytes;
	}
	return row;
}

static void df_json(const struct df_row *rows, size_t n)
{
	struct json j = JSON_INIT(stdout);

	json_put_array(&j, NULL);
	for (size_t i = 0; i < n; i++) {
		json_put_object(&j, NULL);
		json_put_string(&j, "kind", rows[i].member);
		json_put_unsigned(&j, "total", rows[i].total);
		json_put_unsigned(&j, "active", rows[i].active);
		json_put_unsigned(&j, "bytes", rows[i].bytes);
		json_put_unsigned(&j, "reclaimable", rows[i].reclaimable);
		json_put_end(&j);
	}
	json_put_end(&j);
}

static void df_table(const struct cli *cli, const struct df_row *rows, size_t n)
{
	static const char *const heads[] = { "TYPE", "TOTAL", "ACTIVE", "SIZE", "RECLAIMABLE" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < n; i++) {
		_cleanup_str_ char *total = xformat("%" PRIu64, rows[i].total);
		_cleanup_str_ char *active = xformat("%" PRIu64, rows[i].active);
		char bytes[TEXT_SIZE], reclaimable[TEXT_SIZE];

		text_bytes(bytes, rows[i].bytes);
		text_bytes(reclaimable, rows[i].reclaimable);
		table_add(&t, rows[i].name);
		table_add(&t, total);
		table_add(&t, active);
		table_add(&t, bytes);
		table_add(&t, reclaimable);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

static Nacre__V1__ListResponse *system_list(struct client *client, struct error *err)
{
	Nacre__V1__ListRequest request = NACRE__V1__LIST_REQUEST__INIT;

	request.all = true;
	return listing_ask(client, &request, err);
}

int cmd_system_df(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ListImagesRequest images_request = NACRE__V1__LIST_IMAGES_REQUEST__INIT;
	Nacre__V1__DiskUsageRequest request = NACRE__V1__DISK_USAGE_REQUEST__INIT;
	Nacre__V1__ListVolumesRequest volumes_request = NACRE__V1__LIST_VOLUMES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListVolumesResponse *volumes = NULL;
	_cleanup_message_ Nacre__V1__DiskUsageResponse *usage = NULL;
	_cleanup_message_ Nacre__V1__ListImagesResponse *images = NULL;
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;
	_cleanup_client_ struct client *client = NULL;
	struct error err = ERROR_INIT;
	struct df_row rows[3];

	(void)args;
	client = client_open(&cli->daemon, &err);
	list = client ? system_list(client, &err) : NULL;
	images = list ? listing_ask_images(client, &images_request, &err) : NULL;
	if (images)
		usage = client_ask(client, "/nacre.v1.ImageService/DiskUsage", &request.base,
				   &nacre__v1__disk_usage_response__descriptor, &err);
	volumes_request.sizes = true;
	if (usage)
		volumes = client_ask(client, "/nacre.v1.VolumeService/ListVolumes",
				     &volumes_request.base,
				     &nacre__v1__list_volumes_response__descriptor, &err);
	if (!volumes)
		return cli_fail(&err);
	rows[0] = df_images(usage, images);
	rows[1] = df_containers(usage, list);
	rows[2] = df_volumes(volumes);
	if (cli->json)
		df_json(rows, ARRAY_SIZE(rows));
	else
		df_table(cli, rows, ARRAY_SIZE(rows));
	if (usage->incomplete || volumes->incomplete)
		(void)cli_complain("something could not be read, and is not counted");
	return 0;
}

/* ---- what a prune is told ---- */

struct prune {
	struct client *client;
	const char *kind; /* of workloads; NULL: each */
	bool all;         /* also images with a name */
	bool volumes;     /* also those without a name */
	nsec_t before;    /* only what was made before then; 0: all */
	char **labels;    /* that it has */
	size_t n_labels;
	struct json *json; /* NULL: words for people */
	uint64_t bytes;
	int status;
};

static int prune_filter(struct prune *p, char *word, struct error *err)
{
	static const char until[] = "until=", label[] = "label=";

	if (str_has_prefix(word, until) && word[strlen(until)])
		return when_parse("--filter until", word + strlen(until), clock_real(), &p->before,
				  err);
	if (!str_has_prefix(word, label) || !word[strlen(label)])
		return error_refuse(err, ERROR_INVALID,
				    "--filter %s: it is until=TIME or label=NAME[=VALUE]", word);
	p->labels = xrealloc(p->labels, p->n_labels + 1, sizeof(*p->labels));
	p->labels[p->n_labels++] = word + strlen(label);
	return 0;
}

static void prune_done(struct prune *p)
{
	free(p->labels);
	p->client = client_free(p->client);
}

/* One that went. */
static void prune_tell(struct prune *p, const char *kind, const char *name)
{
	if (!p->json) {
		(void)puts(name);
		return;
	}
	json_put_object(p->json, NULL);
	json_put_string(p->json, "kind", kind);
	json_put_string(p->json, "name", name);
	json_put_end(p->json);
}

/* In front of the first. */
static void prune_head(const struct prune *p, bool *told, const char *what)
{
	if (!*told && !p->json)
		(void)printf("Deleted %s:\n", what);
	*told = true;
}

static void prune_fail(struct prune *p, const struct error *err)
{
	p->status = cli_fail(err);
}

/* Asks, where there is a person to ask. */
static int prune_confirm(const char *what, struct error *err)
{
	char answer[16] = "";

	if (!isatty(STDIN_FILENO))
		return error_refuse(err, ERROR_INVALID,
				    "nobody is there to be asked whether to remove %s: give "
				    "--force",
				    what);
	(void)fprintf(stderr, "This removes %s. Go on? [y/N] ", what);
	if (!fgets(answer, sizeof(answer), stdin) || (answer[0] != 'y' && answer[0] != 'Y'))
		return error_refuse(err, ERROR_INVALID, "nothing was removed");
	return 0;
}

/* ---- its steps ---- */

static bool prune_wants(const struct prune *p, const Nacre__V1__Workload *w)
{
	/* Machines have disks that `nacre vm rmdisk` takes away. */
	if (!view_has_ended(w->state) || str_eq(w->kind, "instance") || str_eq(w->kind, "vm"))
		return false;
	return (!p->kind || str_eq(p->kind, w->kind)) && (!p->before || w->created_at < p->before);
}

static void prune_workloads(struct prune *p)
{
	Nacre__V1__RemoveRequest request = NACRE__V1__REMOVE_REQUEST__INIT;
	Nacre__V1__ListRequest list_request = NACRE__V1__LIST_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListResponse *list = NULL;
	struct error err = ERROR_INIT;
	bool told = false;

	list_request.all = true;
	list_request.labels = p->labels;
	list_request.n_labels = p->n_labels;
	list = listing_ask(p->client, &list_request, &err);
	if (!list) {
		prune_fail(p, &err);
		return;
	}
	for (size_t i = 0; i < list->n_workloads; i++) {
		_cleanup_message_ Nacre__V1__RemoveResponse *answer = NULL;

		if (!prune_wants(p, list->workloads[i]))
			continue;
		err = (struct error)ERROR_INIT;
		request.target = list->workloads[i]->id;
		answer = client_ask(p->client, "/nacre.v1.WorkloadService/Remove", &request.base,
				    &nacre__v1__remove_response__descriptor, &err);
		if (answer) {
			prune_head(p, &told, "Containers");
			prune_tell(p, list->workloads[i]->kind, list->workloads[i]->id);
		} else if (err.kind != ERROR_NOT_FOUND) {
			prune_fail(p, &err);
		}
	}
}

/* Those that no pod is on. A label is nothing that a network has. */
static void prune_networks(struct prune *p)
{
	Nacre__V1__ListNetworksRequest list_request = NACRE__V1__LIST_NETWORKS_REQUEST__INIT;
	Nacre__V1__RemoveNetworkRequest request = NACRE__V1__REMOVE_NETWORK_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListNetworksResponse *list = NULL;
	struct error err = ERROR_INIT;
	bool told = false;

	if (p->n_labels > 0)
		return;
	list = client_ask(p->client, "/nacre.v1.NetworkService/ListNetworks", &list_request.base,
			  &nacre__v1__list_networks_response__descriptor, &err);
	if (!list) {
		prune_fail(p, &err);
		return;
	}
	for (size_t i = 0; i < list->n_networks; i++) {
		_cleanup_message_ Nacre__V1__RemoveNetworkResponse *answer = NULL;
		const Nacre__V1__Network *n = list->networks[i];

		if (n->pods > 0 || str_eq(n->name, "default") || !str_eq(n->state, "ready") ||
		    (p->before && n->created_at >= p->before))
			continue;
		err = (struct error)ERROR_INIT;
		request.name = n->name;
		answer = client_ask(p->client, "/nacre.v1.NetworkService/RemoveNetwork",
				    &request.base, &nacre__v1__remove_network_response__descriptor,
				    &err);
		if (answer) {
			prune_head(p, &told, "Networks");
			prune_tell(p, "network", n->name);
		} else if (err.kind != ERROR_NOT_FOUND && err.kind != ERROR_PRECONDITION) {
			/* Somebody who has come onto it meanwhile is no failure. */
			prune_fail(p, &err);
		}
	}
}

static void prune_images(struct prune *p)
{
	Nacre__V1__PruneImagesRequest request = NACRE__V1__PRUNE_IMAGES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__PruneImagesResponse *answer = NULL;
	nsec_t now = clock_real();
	struct error err = ERROR_INIT;
	bool told = false;

	if (p->n_labels > 0)
		return;
	request.all = p->all;
	request.older_than_s = p->before && p->before < now ? (now - p->before) / NSEC_PER_SEC : 0;
	answer = client_ask(p->client, "/nacre.v1.ImageService/Prune", &request.base,
			    &nacre__v1__prune_images_response__descriptor, &err);
	if (!answer) {
		prune_fail(p, &err);
		return;
	}
	p->bytes += answer->bytes;
	for (size_t i = 0; i < answer->n_items; i++) {
		const Nacre__V1__PrunedItem *m = answer->items[i];

		if (!str_empty(m->error)) {
			p->status = cli_complain("%s %s: %s", m->kind, m->id, m->error);
			continue;
		}
		prune_head(p, &told, "Images");
		prune_tell(p, m->kind, m->n_names ? m->names[0] : m->id);
	}
}

static void prune_volumes(struct prune *p)
{
	Nacre__V1__PruneVolumesRequest request = NACRE__V1__PRUNE_VOLUMES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__PruneVolumesResponse *answer = NULL;
	struct error err = ERROR_INIT;
	bool told = false;

	if (!p->volumes)
		return;
	answer = client_ask(p->client, "/nacre.v1.VolumeService/PruneVolumes", &request.base,
			    &nacre__v1__prune_volumes_response__descriptor, &err);
	if (!answer)
		prune_fail(p, &err);
	for (size_t i = 0; answer && i < answer->n_removed; i++) {
		prune_head(p, &told, "Volumes");
		prune_tell(p, "volume", answer->removed[i]);
	}
}

/* In this order: what a workload was made of is free when it is gone. */
static void (*const prune_steps[])(struct prune *p) = {
	prune_workloads,
	prune_networks,
	prune_volumes,
	prune_images,
};

static int prune_begin(struct prune *p, const struct cli *cli, const struct args *args,
		       const char *what, struct error *err)
{
	size_t pos = 0;
	char *word;
	int r = 0;

	while (r == 0 && (word = args_next(args, "filter", &pos)))
		r = prune_filter(p, word, err);
	if (r == 0 && !args_flag(args, "force"))
		r = prune_confirm(what, err);
	if (r < 0)
		return r;
	p->client = client_open(&cli->daemon, err);
	return p->client ? 0 : err->code;
}

static void prune_json_begin(struct prune *p, struct json *j, const struct cli *cli)
{
	if (!cli->json)
		return;
	p->json = j;
	json_put_object(j, NULL);
	json_put_array(j, "items");
}

static int prune_end(const struct prune *p)
{
	if (p->json) {
		json_put_end(p->json);
		json_put_unsigned(p->json, "bytes", p->bytes);
		json_put_end(p->json);
	}
	return p->status;
}

int cmd_prune(const struct cli *cli, const struct args *args)
{
	_cleanup_(prune_done) struct prune p = { .kind = args_value(args, "kind") };
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	if (p.kind && !str_eq(p.kind, "pod") && !str_eq(p.kind, "cell") &&
	    !str_eq(p.kind, "executable"))
		return cli_complain("--kind: \"%s\" is none of pod, cell, executable", p.kind);
	if (prune_begin(&p, cli, args, "all workloads that have ended", &err) < 0) {
		return cli_fail(&err);
	}
	prune_json_begin(&p, &j, cli);
	prune_workloads(&p);
	return prune_end(&p);
}

int cmd_network_prune(const struct cli *cli, const struct args *args)
{
	_cleanup_(prune_done) struct prune p = { .kind = NULL };
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;

	if (prune_begin(&p, cli, args, "all networks that nobody is on", &err) < 0)
		return cli_fail(&err);
	prune_json_begin(&p, &j, cli);
	prune_networks(&p);
	return prune_end(&p);
}

int cmd_system_prune(const struct cli *cli, const struct args *args)
{
	_cleanup_(prune_done) struct prune p = { .all = args_flag(args, "all"),
						 .volumes = args_flag(args, "volumes") };
	const char *what =
		p.all ? "all workloads that have ended, networks that nobody is on, and images "
			"that nothing is made of"
		      : "all workloads that have ended, networks that nobody is on, and images "
			"without a name";
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	char bytes[TEXT_SIZE];

	if (p.volumes && args_value(args, "filter"))
		return cli_complain("--volumes and --filter exclude each other: no filter is "
				    "known for volumes");
	if (prune_begin(&p, cli, args, what, &err) < 0)
		return cli_fail(&err);
	prune_json_begin(&p, &j, cli);
	for (size_t i = 0; i < ARRAY_SIZE(prune_steps); i++)
		prune_steps[i](&p);
	text_bytes(bytes, p.bytes);
	if (!cli->json)
		(void)printf("Freed by images: %s\n", bytes);
	return prune_end(&p);
}

/* ---- processes ---- */

static void processes_table(const struct cli *cli, const Nacre__V1__ProcessesResponse *list)
{
	static const char *const heads[] = { "UID",  "PID",  "PPID",   "CONTAINER",
					     "STAT", "TIME", "COMMAND" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_processes; i++) {
		const Nacre__V1__Process *p = list->processes[i];
		_cleanup_str_ char *uid = xformat("%" PRIu32, p->uid);
		_cleanup_str_ char *pid = xformat("%" PRId64, p->pid ? p->pid : p->inner_pid);
		_cleanup_str_ char *parent = view_pid(p->parent);
		char time[TEXT_SIZE];

		/* Its keeper is not what anybody asks for. */
		if (str_empty(p->container))
			continue;
		text_cpu(time, p->cpu_us);
		table_add(&t, uid);
		table_add(&t, pid);
		table_add(&t, parent);
		table_add(&t, p->container);
		table_add(&t, p->state);
		table_add(&t, time);
		table_add(&t, p->command);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

int cmd_processes(const struct cli *cli, const struct args *args)
{
	Nacre__V1__ProcessesRequest request = NACRE__V1__PROCESSES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ProcessesResponse *list = NULL;
	struct json j = JSON_INIT(stdout);
	struct error err = ERROR_INIT;
	char *container = args_value(args, "container");

	request.target = args->operands[0];
	request.container = container ? container : request.container;
	list = client_ask_once(&cli->daemon, "/nacre.v1.WorkloadService/Processes", &request.base,
			       &nacre__v1__processes_response__descriptor, 0, &err);
	if (!list)
		return cli_fail(&err);
	if (!cli->json) {
		processes_table(cli, list);
	} else {
		json_put_array(&j, NULL);
		for (size_t i = 0; i < list->n_processes; i++)
			if (!str_empty(list->processes[i]->container))
				view_process(&j, list->processes[i]);
		json_put_end(&j);
	}
	if (list->truncated)
		(void)cli_complain("there are more than these");
	return 0;
}
