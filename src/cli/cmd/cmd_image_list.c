/* SPDX-License-Identifier: Apache-2.0 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text/str.h"
#include "cli/cmd/handlers.h"
#include "cli/options/spec.h"
#include "cli/output/alloc.h"
#include "cli/output/docker_view.h"
#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/view.h"
#include "cli/remote/client.h"
#include "cli/remote/listing.h"
#include "cli/table/command.h"

/* NAME, ID, SIZE, LAYERS, CREATED and, where they are asked for, DIGEST and SOURCE. */
#define IMAGES_COLUMNS 5
#define IMAGES_MORE 2

/* That of the registry that the name says, where it was pulled from there. */
static const char *images_digest(const char *name, const Nacre__V1__Image *image)
{
	size_t len = strlen(name) - (strrchr(name, ':') ? strlen(strrchr(name, ':')) : 0);

	for (size_t i = 0; i < image->n_repo_digests; i++) {
		const char *at = strchr(image->repo_digests[i], '@');

		if (at && (size_t)(at - image->repo_digests[i]) == len &&
		    strncmp(image->repo_digests[i], name, len) == 0)
			return at + 1;
	}
	return image->digest;
}

static void images_row(struct table *t, const char *name, const Nacre__V1__Image *image, nsec_t now)
{
	_cleanup_str_ char *layers = xformat("%" PRIu32, image->layers);
	char id[TEXT_SIZE], size[TEXT_SIZE], created[TEXT_SIZE];

	text_short_id(id, image->id);
	text_bytes(size, image->size);
	text_ago(created, now, image->created_at);
	table_add(t, name);
	table_add(t, id);
	table_add(t, size);
	table_add(t, layers);
	table_add(t, created);
	if (t->n_columns == IMAGES_COLUMNS)
		return;
	table_add(t, images_digest(name, image));
	table_add(t, str_empty(image->source) ? "-" : image->source);
}

static void images_table(const struct cli *cli, const Nacre__V1__ListImagesResponse *list,
			 bool digests)
{
	static const char *const heads[] = { "NAME",    "ID",     "SIZE",  "LAYERS",
					     "CREATED", "DIGEST", "SOURCE" };
	struct table t = { .n_columns = IMAGES_COLUMNS + (digests ? IMAGES_MORE : 0) };
	nsec_t now = clock_real();

	for (size_t i = 0; i < t.n_columns; i++)
		table_add_color(&t, TABLE_BOLD, heads[i]);
	for (size_t i = 0; i < list->n_images; i++) {
		const Nacre__V1__Image *image = list->images[i];

		for (size_t k = 0; k < image->n_names; k++)
			images_row(&t, image->names[k], image, now);
		if (image->n_names == 0)
			images_row(&t, "-", image, now);
	}
	table_write(&t, stdout, cli->color);
	table_done(&t);
}

/* Leaves those in the list that are asked for; what goes is freed. */
static void images_filter(Nacre__V1__ListImagesResponse *list, const struct args *args)
{
	size_t n = 0;

	for (size_t i = 0; i < list->n_images; i++) {
		Nacre__V1__Image *image = list->images[i];

		if ((args_flag(args, "dangling") && image->n_names > 0) ||
		    (args_flag(args, "unused") && image->containers > 0) ||
		    (args_flag(args, "pinned") && !image->pinned))
			nacre__v1__image__free_unpacked(image, NULL);
		else
			list->images[n++] = image;
	}
	list->n_images = n;
}

/* For --format. */
static void images_view(struct json *j, const void *what)
{
	view_image(j, NULL, what);
}

/* A line for each name in docker's form, for each image in our own. */
static int images_rows(const struct cli *cli, const struct args *args, struct rows *rows,
		       const Nacre__V1__ListImagesResponse *list, struct error *err)
{
	struct docker_image_row row = { .now = clock_real(),
					.no_trunc = args_flag(args, "no-trunc") };
	int r = 0;

	for (size_t i = 0; i < list->n_images && r == 0; i++) {
		const Nacre__V1__Image *image = list->images[i];

		row.image = image;
		for (size_t k = 0; k < MAX(image->n_names, 1U) && r == 0; k++) {
			if (k > 0 && !rows->is_template)
				break;
			row.name = image->n_names ? image->names[k] : NULL;
			row.digest = row.name ? images_digest(row.name, image) : image->digest;
			r = rows_add(rows, image, &row, err);
		}
	}
	if (r == 0)
		rows_end(rows, cli->color);
	return r;
}

/* Whole ids, as other commands of ours take them; with a template in mind `docker images -q`
 * shortens them. */
static void images_ids(const Nacre__V1__ListImagesResponse *list, bool is_short)
{
	char id[TEXT_SIZE];

	for (size_t i = 0; i < list->n_images; i++) {
		text_short_id(id, list->images[i]->id);
		(void)puts(is_short ? id : list->images[i]->id);
	}
}

static int images_show(const struct cli *cli, const struct args *args, struct rows *rows,
		       const Nacre__V1__ListImagesResponse *list, struct error *err)
{
	struct json j = JSON_INIT(stdout);

	if (rows->format)
		return images_rows(cli, args, rows, list, err);
	if (args_flag(args, "quiet")) {
		images_ids(list, args_flag(args, "short"));
	} else if (cli->json) {
		json_put_array(&j, NULL);
		for (size_t i = 0; i < list->n_images; i++)
			view_image(&j, NULL, list->images[i]);
		json_put_end(&j);
	} else {
		images_table(cli, list, args_flag(args, "digests"));
	}
	return 0;
}

int cmd_image_ls(const struct cli *cli, const struct args *args)
{
	static const struct rows_view view = { images_view, docker_view_image_row,
					       docker_view_image_head };
	Nacre__V1__ListImagesRequest request = NACRE__V1__LIST_IMAGES_REQUEST__INIT;
	_cleanup_message_ Nacre__V1__ListImagesResponse *list = NULL;
	_cleanup_(rows_done) struct rows rows = { .format = NULL };
	_cleanup_client_ struct client *client = NULL;
	const char *format = args_value(args, "format");
	struct error err = ERROR_INIT;

	if (format && rows_begin(&rows, &view, format, &err) < 0)
		return cli_fail(&err);
	if (args->n_operands)
		spec_set(&request.name_prefix, args->operands[0]);
	client = client_open(&cli->daemon, &err);
	list = client ? listing_ask_images(client, &request, &err) : NULL;
	if (!list)
		return cli_fail(&err);
	images_filter(list, args);
	return images_show(cli, args, &rows, list, &err) < 0 ? cli_fail(&err) : 0;
}
