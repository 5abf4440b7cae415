/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PLUGIN_SERVICE_H
#define NACRE_PLUGIN_SERVICE_H

#include <pthread.h>
#include <stdbool.h>

#include "base/log/error.h"
#include "base/memory/buf.h"
#include "plugin/book.h"
#include "wire/message/cnimsg.h"

/*
 * The requests of the daemon to nacre-cni (wire/message/cnimsg.h): to attach pods to networks of
 * plugins, and to detach them. All of it waits for plugins; several threads may be in it at once,
 * for different containers.
 *
 * A container has a record (plugin/record.h) from before its first plugin runs until its last one
 * has undone what it did. An undo that fails is tried again by service_clean().
 */

#define SERVICE_INTERFACE "eth0" /* of a pod */
#define SERVICE_BUSY_MAX 64      /* threads that are at a container */
#define SERVICE_BOOT_SIZE 40

struct service {
	const char *bin_dirs, *path, *netns_dir;
	int state_fd; /* of the directory of records */
	int cancel_fd;
	struct book *book;
	char boot[SERVICE_BOOT_SIZE];

	/* Garbage is collected while nothing is added or deleted. */
	pthread_rwlock_t collecting;
	pthread_mutex_t lock; /* of what follows */
	pthread_cond_t free;
	const char *busy[SERVICE_BUSY_MAX]; /* containers that somebody is at */
};

int service_init(struct service *s);
void service_done(struct service *s);

/* The first message of a daemon: what it does not name is to be undone. */
void service_keep(struct service *s, const struct cnimsg *m);
/* Answers the others. netns_fd is that of the message, or -1; it stays the caller's. -ENOMEM: there
 * is no answer. */
int service_serve(struct service *s, const struct cnimsg *m, int netns_fd, struct buf *answer);

/* Tries to undo what is to be undone. Whether nothing of it is left. */
bool service_clean(struct service *s);
/* Has the plugins of the network that serves remove what no container has. */
int service_collect(struct service *s, struct error *err);

#endif
