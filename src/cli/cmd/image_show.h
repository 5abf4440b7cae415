/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_IMAGE_SHOW_H
#define NACRE_CLI_IMAGE_SHOW_H

#include "base/log/error.h"

/* An image in docker's form, for `inspect --docker` of what is no workload: cmd_image_show.c. */

struct cli;
struct json;
struct rows;

/* By the format of the rows, or as the next value of *j. ERROR_NOT_FOUND. */
int image_show_docker(const struct cli *cli, char *reference, struct rows *rows, struct json *j,
		      struct error *err);

#endif
