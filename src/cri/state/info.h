/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_INFO_H
#define NACRE_CRI_INFO_H

#include <stddef.h>
#include <stdio.h>

#include "base/memory/arena.h"
#include "base/text/json.h"

/*
 * The one entry of the maps by the name `info` that verbose answers have: a JSON object by the key
 * CRI_INFO_KEY. Begun by cri_info_open(), filled through `json`, and ended by cri_info_close(),
 * which has to be called.
 */

#define CRI_INFO_KEY "info"

struct cri_info {
	struct json json;
	char *text;
	size_t len;
};

/* 0 or -ENOMEM (nothing is to be closed then). */
int cri_info_open(struct cri_info *i);
/* The document, in the arena; NULL without memory. */
char *cri_info_close(struct cri_info *i, struct arena *a);

#endif
