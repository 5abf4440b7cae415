/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_METADATA_H
#define NACRE_POD_METADATA_H

#include "net/port/metadata.h"
#include "pod/workload/model.h"

/*
 * The metadata service of a workload that asks for one: its sockets are made in its network
 * namespace before its containers begin, and again by each life of the daemon; what is told there
 * is the business of whoever serves it. Private to this area, but for the table.
 */

struct metadata_ops {
	/* Whether its request asks for one. */
	bool (*wants)(void *userdata, const struct workload *w);
	/* Serves it at the sockets, which are taken over. An error is why it cannot be. */
	int (*open)(void *userdata, const struct workload *w, const struct metadata_sockets *at,
		    struct error *err);
	/* Its name or addresses have changed. */
	void (*changed)(void *userdata, const struct workload *w);
	void (*close)(void *userdata, const struct workload *w);
};

/* As plug_is_awaited(), behind that: 1: it is not there yet; 0; or why it cannot be. */
int metadata_is_awaited(struct workload *w, struct error *err);
/* Tells of a change, where it is served. */
void metadata_changed(const struct workload *w);
/* It has ended. */
void metadata_end(struct workload *w);

#endif
