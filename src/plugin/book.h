/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_BOOK_H
#define NACRE_PLUGIN_BOOK_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "wire/document/cni_config.h"

/*
 * The directory of configurations. The first file of it, in the order of their names, is the
 * network that a pod gets; others can be asked for by name. Where that file is broken the last one
 * that was not goes on to serve, and never another file silently.
 *
 * One thread refreshes it, any of them asks.
 */

#define BOOK_FILES_MAX 1024

struct book {
	const char *conf_dir, *bin_dirs, *path;
	int cancel_fd;

	pthread_mutex_t lock;
	struct buf text; /* of the network that serves; none: there is none */
	bool ready;
	char network[CNI_NAME_MAX + 1];
	char reason[ERROR_TEXT_MAX]; /* why it is not ready */

	/* Of the thread that refreshes it. */
	bool checked; /* the plugins of the text speak its version */
};

void book_init(struct book *b);
void book_done(struct book *b);

/* Reads the directory, looks for the plugins where that is due, and asks them for their status.
 * Whether anything of ready, network and reason is new. */
bool book_refresh(struct book *b);

/* The text of a network's configuration; "": the first one. ERROR_PRECONDITION: there is none;
 * ERROR_NOT_FOUND: none of that name. */
int book_find(struct book *b, const char *network, struct buf *ret, struct error *err);

#endif
