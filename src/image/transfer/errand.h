/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_ERRAND_H
#define NACRE_IMAGE_ERRAND_H

#include "base/log/error.h"
#include "base/memory/list.h"
#include "base/text/id.h"
#include "image/helper/helper.h"
#include "image/registry.h"

/*
 * A run of nacre-transfer with a network that brings nothing into the store: a push, a copy, a
 * list. It has a directory of its own in staging, which stays empty but for a copy's documents. A
 * value, part of its owner.
 */

struct image_store;
struct tally;

struct errand {
	struct list link; /* of the store's */
	struct image_store *store;
	char id[ID_SIZE];
	int dir_fd;
	struct helper helper;
};

/* As network_start(); the owner says network_go(). Where it fails the following two are due still.
 */
int errand_start(struct errand *e, struct image_store *s, const char *command,
		 const struct fetchmsg *request, const struct image_auths *auths,
		 const struct helper_ops *ops, struct error *err);
/* Its directory goes. Not while the store is freed: what is in staging then goes at the next start.
 */
void errand_drop(struct errand *e);
/* Kills what runs, without a word. For a zeroed one too. */
void errand_done(struct errand *e);
void errand_tally(const struct image_store *s, struct tally *t);

#endif
