/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_TRANSFER_JOB_H
#define NACRE_IMAGE_TRANSFER_JOB_H

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
struct inventory;

struct transfer_job {
	struct list link; /* of the store's */
	struct image_store *store;
	char id[ID_SIZE];
	int dir_fd;
	struct helper helper;
};

/* As network_start(); the owner says network_go(). Where it fails the following two are due still.
 */
int transfer_job_start(struct transfer_job *e, struct image_store *s, const char *command,
		       const struct fetchmsg *request, const struct image_auths *auths,
		       const struct helper_ops *ops, struct error *err);
/* Its directory goes. Not while the store is freed: what is in staging then goes at the next start.
 */
void transfer_job_drop(struct transfer_job *e);
/* Kills what runs, without a word. For a zeroed one too. */
void transfer_job_done(struct transfer_job *e);
void transfer_job_inventory(const struct image_store *s, struct inventory *t);

#endif
