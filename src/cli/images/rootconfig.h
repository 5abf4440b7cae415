/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_ROOTCONFIG_H
#define NACRE_CLI_ROOTCONFIG_H

#include "base/log/error.h"
#include "base/text/args.h"

/*
 * The configuration for the image that `image import --root` makes of a tar: --cmd, --entrypoint,
 * --env, --workdir, --user, --label and --platform as the JSON of ImportRequest.config. NULL with
 * err; freed by the caller.
 */
char *rootconfig_new(const struct args *args, struct error *err);

#endif
