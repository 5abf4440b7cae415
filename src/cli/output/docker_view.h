/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_DOCKER_VIEW_H
#define NACRE_CLI_DOCKER_VIEW_H

#include "api/nacre.pb-c.h"
#include "base/text/json.h"
#include "wire/document/jsonread.h"

/*
 * The daemon's objects under the names that docker and podman give to them, for templates
 * (cli/output/template.h) and `inspect --docker`. A value that nacre does not know is left out, so
 * that a template that asks for it fails and says so.
 */

/* A workload as `docker ps --format` has it. */
struct docker_row {
	const Nacre__V1__Workload *workload;
	nsec_t now;
	bool no_trunc;
};

void docker_view_row(struct json *j, const void *what);
/* The head of such a value: "CONTAINER ID" for "ID". */
const char *docker_view_head(const char *member);

/* A workload as `docker inspect` has it. */
void docker_view_workload(struct json *j, const void *what);

/* An image under one of its names (NULL: it has none) as `docker images --format` has it. */
struct docker_image_row {
	const Nacre__V1__Image *image;
	const char *name;
	const char *digest;
	nsec_t now;
	bool no_trunc;
};

void docker_view_image_row(struct json *j, const void *what);
const char *docker_view_image_head(const char *member);

/* An image with its configuration as `docker image inspect` has it. */
struct docker_image {
	const Nacre__V1__Image *image;
	const struct json_value *config;
};

void docker_view_image(struct json *j, const void *what);
/* A value of a document as it stands there. */
void docker_view_value(struct json *j, const char *key, const struct json_value *v);

#endif
