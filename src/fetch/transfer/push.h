/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_PUSH_H
#define NACRE_FETCH_PUSH_H

#include "base/log/error.h"
#include "base/memory/list.h"
#include "fetch/transfer/network.h"

/* The job `push` (wire/message/fetchmsg.h). */
int push_run(struct network *n, struct error *err);

/*
 * The same in pieces, for who loads meanwhile what is to be sent. A value, of which the members are
 * its own. It sends what stands in the network's list of blobs.
 */
struct push {
	struct network *network;
	/* A blob without a file is needed: it is put into b->fd, now or some time; and closed when
	 * it was sent. NULL: they all have one. */
	int (*want)(void *userdata, struct network_blob *b, struct error *err);
	/* All but the last manifest are there; NULL: nobody wants to know. */
	int (*before_last)(void *userdata, struct error *err);
	void *userdata;
	struct list blob_downloads;
	size_t n_uploads;
	size_t next; /* blob */
	bool heard;  /* the registry knows our credentials: requests may be parallel */
	bool is_last;
	char media_type[FETCH_TYPE_MAX + 1];
	char origin[URL_SIZE];
};

#define PUSH_TURN_MS 100 /* at most between two steps */

/* ERROR_INVALID where the last of the blobs is no manifest. push_done() is due whatever comes back.
 */
int push_init(struct push *p, struct network *n, struct error *err);
/* Does the work that needs no wait for the network; *ret_more: the next step needs none either. */
int push_step(struct push *p, bool *ret_more, struct error *err);
bool push_is_over(const struct push *p);
/* Tells the core that it is, once. */
int push_end(struct push *p, struct error *err);
void push_done(struct push *p);

#endif
