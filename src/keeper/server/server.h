/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_SERVER_H
#define NACRE_KEEPER_SERVER_H

#include "base/log/error.h"
#include "cell/layer/keeper.h"

/*
 * A keeper as a server: nacre.instance.v1 over the workloads of cell/layer/keeper.h and the
 * instances nested in it. Everything that a keeper process does between its start and its end.
 */

struct disk_places;
struct handover_writer;
struct keeper_server;
struct loop;
struct peer_link;

struct keeper_server_config {
	struct loop *loop;
	/* For the workloads; loop, userdata and the callbacks are filled in here. */
	struct keeper_config keeper;
	int rpc_listen_fd;               /* taken over, also on failure */
	int channel_listen_fd;           /* taken over, also on failure */
	int run_fd;                      /* where nested instances have their sockets */
	int exe_fd;                      /* the program, for their keepers */
	const struct disk_places *disks; /* other than those of the machine; NULL: those */
	bool in_guest;                   /* the machine's are for nested keepers too */
	const char *path;                /* "pod/web", "a/b"; "" for the keeper of the node */
	/* PutLink, on a thread; NULL: it is no machine's. */
	int (*put_link)(const struct peer_link *link, struct error *err);
	/* Hello brought another path: `path` is to say that from now on. */
	void (*on_named)(void *userdata, const char *path);
	/* keeper/server/upgrade.h; NULL: Upgrade is refused. */
	int (*execute)(void *userdata, int exe_fd, int state_fd, const struct handover_writer *w,
		       struct error *err);
	/* After keeper_server_shutdown() or the call Shutdown: all has ended. It may free the
	 * server later, not from within. */
	void (*on_shut)(void *userdata);
	void *userdata;
};

int keeper_server_new(struct keeper_server **ret, const struct keeper_server_config *config,
		      struct error *err);
/* Takes up what another program of this process has left (keeper/server/upgrade.h), before the loop
 * runs. After an error only keeper_server_free() is left. */
int keeper_server_resume(struct keeper_server *s, int state_fd, struct error *err);
/* Kills everything, waits for nothing. */
struct keeper_server *keeper_server_free(struct keeper_server *s);

/* Kills all workloads and nested instances, ends the streams, then on_shut. Twice is once. */
void keeper_server_shutdown(struct keeper_server *s);

/* The workloads, for reaping orphans. */
struct keeper *keeper_server_keeper(struct keeper_server *s);

#endif
