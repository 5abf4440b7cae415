/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>

#include "base/text/parse.h"
#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/table/command.h"

/* ---- image df ---- */

static const struct {
	const char *word, *member;
	size_t offset;
} df_sums[] = {
	{ "layers", "layer_bytes", offsetof(Nacre__V1__DiskUsageResponse, layer_bytes) },
	{ "blobs", "blob_bytes", offsetof(Nacre__V1__DiskUsageResponse, blob_bytes) },
	{ "EROFS files", "erofs_bytes", offsetof(Nacre__V1__DiskUsageResponse, erofs_bytes) },
	{ "containers", "container_bytes",
	  offsetof(Nacre__V1__DiskUsageResponse, container_bytes) },
	{ "unfinished downloads", "partial_bytes",
	  offsetof(Nacre__V1__DiskUsageResponse, partial_bytes) },
	{ "in work", "staging_bytes", offsetof(Nacre__V1__DiskUsageResponse, staging_bytes) },
	{ "records", "database_bytes", offsetof(Nacre__V1__DiskUsageResponse, database_bytes) },
};

static uint64_t df_sum(const Nacre__V1__DiskUsageResponse *u, size_t i)
{
	return *(const uint64_t *)(const void *)((const char *)u + df_sums[i].offset);
}

static uint64_t df_total(const Nacre__V1__DiskUsageResponse *u)
{
	uint64_t n = 0;

	for (size_t i = 0; i < ARRAY_SIZE(df_sums); i++)
		n += df_sum(u, i);
	return n;
}

static void df_files_json(struct json *j, const char *key, Nacre__V1__FileUsage *const *files,
			  size_t n)
{
	json_put_array(j, key);
	for (size_t i = 0; i < n; i++) {
		json_put_object(j, NULL);
		json_put_string(j, "name", files[i]->name);
		json_put_unsigned(j, "bytes", files[i]->bytes);
		json_put_time(j, "changed_at", files[i]->changed_at);
		json_put_end(j);
	}
	json_put_end(j);
}

static void df_json(const Nacre__V1__DiskUsageResponse *u)
{
	struct json j = JSON_INIT(stdout);

	json_put_object(&j, NULL);
	json_put_array(&j, "images");
	for (size_t i = 0; i < u->n_images; i++) {
		json_put_object(&j, NULL);
		json_put_string(&j, "id", u->images[i]->id);
		view_words(&j, "names", u->images[i]->names, u->images[i]->n_names);
		json_put_unsigned(&j, "own", u->images[i]->own);
		json_put_unsigned(&j, "shared", u->images[i]->shared);
		json_put_end(&j);
	}
	json_put_end(&j);
	df_files_json(&j, "containers", u->containers, u->n_containers);
	df_files_json(&j, "partials", u->partials, u->n_partials);
	for (size_t i = 0; i < ARRAY_SIZE(df_sums); i++)
		json_put_unsigned(&j, df_sums[i].member, df_sum(u, i));
	json_put_unsigned(&j, "total_bytes", df_total(u));
	json_put_unsigned(&j, "reclaimable_bytes", u->reclaimable_bytes);
	json_put_unsigned(&j, "free_bytes", u->free_bytes);
	json_put_unsigned(&j, "reserve_bytes", u->reserve_bytes);
	json_put_bool(&j, "incomplete", u->incomplete);
	json_put_end(&j);
}

static void df_images(const struct cli *cli, const Nacre__V1__DiskUsageResponse *u)
{
	static const char *const heads[] = { "IMAGE", "ID", "OWN", "SHARED" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < u->n_images; i++) {
		const Nacre__V1__ImageUsage *m = u->images[i];
		char id[TEXT_SIZE], own[TEXT_SIZE], shared[TEXT_SIZE];

		text_short_id(id, m->id);
		text_bytes(own, m->own);
		text_bytes(shared, m->shared);
		table_add(&t, m->n_names ? m->names[0] : "-");
		table_add(&t, id);
		table_add(&t, own);
		table_add(&t, shared);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

static void df_row(struct table *t, const char *word, uint64_t bytes)
{
	char text[TEXT_SIZE];

	text_bytes(text, bytes);
	table_add(t, word);
	table_add(t, text);
}

static void df_table(const struct cli *cli, const Nacre__V1__DiskUsageResponse *u)
{
	struct table t = TABLE_INIT(2);

	df_images(cli, u);
	(void)putchar('\n');
	table_add_color(&t, TABLE_BOLD, "WHAT");
	table_add_color(&t, TABLE_BOLD, "SIZE");
	for (size_t i = 0; i < ARRAY_SIZE(df_sums); i++)
		df_row(&t, df_sums[i].word, df_sum(u, i));
	df_row(&t, "all of it", df_total(u));
	df_row(&t, "prune --all would free", u->reclaimable_bytes);
	df_row(&t, "free on the disk", u->free_bytes);
	table_write(&t, stdout, cli->color);
	table_done(&t);
	if (u->incomplete)
		(void)cli_complain("something could not be read, and is not counted");
}

int cmd_image_df(const struct cli *cli, const struct args *args)
{
	Nacre__V1__DiskUsageRequest request = NACRE__V1__DISK_USAGE_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__DiskUsageResponse *answer = NULL;
	struct error err = ERROR_INIT;

	(void)args;
	answer = client_ask_once(&cli->daemon, "/nacre.v1.ImageService/DiskUsage", &request.base,
				 &nacre__v1__disk_usage_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (cli->json)
		df_json(answer);
	else
		df_table(cli, answer);
	return 0;
}

/* ---- image prune ---- */

static void prune_json(const Nacre__V1__PruneImagesResponse *p)
{
	struct json j = JSON_INIT(stdout);

	json_put_object(&j, NULL);
	json_put_array(&j, "items");
	for (size_t i = 0; i < p->n_items; i++) {
		const Nacre__V1__PrunedItem *m = p->items[i];

		json_put_object(&j, NULL);
		json_put_string(&j, "kind", m->kind);
		json_put_string(&j, "id", m->id);
		view_words(&j, "names", m->names, m->n_names);
		json_put_unsigned(&j, "bytes", m->bytes);
		json_put_word(&j, "error", m->error);
		json_put_end(&j);
	}
	json_put_end(&j);
	json_put_unsigned(&j, "bytes", p->bytes);
	json_put_end(&j);
}

static void prune_table(const struct cli *cli, const Nacre__V1__PruneImagesResponse *p,
			bool dry_run)
{
	static const char *const heads[] = { "KIND", "NAME", "ID", "SIZE" };
	struct table t = TABLE_INIT(ARRAY_SIZE(heads));
	char size[TEXT_SIZE], id[TEXT_SIZE];

	for (size_t i = 0; i < ARRAY_SIZE(heads); i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < p->n_items; i++) {
		const Nacre__V1__PrunedItem *m = p->items[i];

		if (!str_empty(m->error))
			continue;
		text_short_id(id, m->id);
		text_bytes(size, m->bytes);
		table_add(&t, m->kind);
		table_add(&t, m->n_names ? m->names[0] : "-");
		table_add(&t, id);
		table_add(&t, size);
	}
	if (p->n_items)
		table_write(&t, stdout, cli->color);
	table_done(&t);
	text_bytes(size, p->bytes);
	(void)printf("%s %s\n", size, dry_run ? "would be freed" : "freed");
}

int cmd_image_prune(const struct cli *cli, const struct args *args)
{
	Nacre__V1__PruneImagesRequest request = NACRE__V1__PRUNE_IMAGES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__PruneImagesResponse *answer = NULL;
	const char *age = args_value(args, "older-than");
	struct error err = ERROR_INIT;
	nsec_t older = 0;
	int status = 0;

	if (age && parse_duration(age, &older) < 0)
		return cli_complain("--older-than: \"%s\" is no duration such as 24h or 10m", age);
	request.all = args_flag(args, "all");
	request.dry_run = args_flag(args, "dry-run");
	request.older_than_s = older / NSEC_PER_SEC;
	answer = client_ask_once(&cli->daemon, "/nacre.v1.ImageService/Prune", &request.base,
				 &nacre__v1__prune_images_response__descriptor, 0, &err);
	if (!answer)
		return cli_fail(&err);
	if (cli->json)
		prune_json(answer);
	else
		prune_table(cli, answer, request.dry_run);
	for (size_t i = 0; i < answer->n_items; i++) {
		if (!str_empty(answer->items[i]->error))
			status = cli_complain("%s %s: %s", answer->items[i]->kind,
					      answer->items[i]->id, answer->items[i]->error);
	}
	return status;
}
