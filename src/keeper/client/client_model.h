/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_KEEPER_CLIENT_MODEL_H
#define NACRE_KEEPER_CLIENT_MODEL_H

#include "base/memory/list.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "instance/peer.h"
#include "keeper/message/unary.h"
#include "loop/loop.h"

/*
 * The types that the units behind keeper/client/client.h share.
 *
 * A connection is shared by the peer of a direct child and by the peers for what is below that,
 * which differ in their target only; it lasts as long as the last of them.
 */

struct keeper_client;
struct rpc_client;
struct rpc_stream;

/* A keeper on this connection goes on as another program, or the connection was lost
 * (client_reopen.h). */
struct reopen {
	bool active;
	bool asking;                    /* Upgrade is not answered: the peers concerned wait */
	bool all;                       /* each peer that loses its watch says hello anew */
	char target[NAME_PATH_MAX + 1]; /* peers at and below it say hello anew */
	struct keeper_client *asked;    /* NULL: it is gone */
	struct peer_upgrade how;
	peer_done_fn done;
	void *userdata;
	struct unary unary;          /* Upgrade, then one Hello after the other */
	struct keeper_client *hello; /* the client of that hello */
	struct keeper_client *tried; /* that has not answered: others have their turn first */
	struct loop_timer timer;
	nsec_t delay, deadline;
	bool connected;
	struct error err; /* the last answer */
	nsec_t lost_at;   /* when something was lost that nobody had asked for */
	unsigned n_lost;  /* how often within REOPEN_CALM of the time before */
};

struct connection {
	struct loop *loop;
	struct rpc_client *rpc; /* that of a lost connection stays until there is another one */
	int channel_fd;         /* -1: no descriptors can be passed */
	unsigned n_refs;
	struct list clients;    /* the one of the direct child first */
	unsigned n_calls;       /* under way, but hello and watches */
	size_t n_start_fds;     /* descriptors that starts among them carry */
	struct list starts;     /* that wait */
	struct list held;       /* other calls that wait for the end of `reopen` */
	struct list passing;    /* and those that are passed on (passing.h) */
	struct list turns;      /* and whoever calls by himself (passing.h) */
	unsigned n_inside;      /* callbacks of ours that run */
	struct loop_defer free; /* nobody frees the rpc_client from within its callback */
	struct reopen reopen;
	void (*go_on)(struct connection *c); /* starts what waits */
	/* The client's watch has ended. */
	void (*lost)(struct keeper_client *client, const struct error *err);
};

struct keeper_client {
	struct peer peer;
	struct list link; /* of the connection */
	struct connection *connection;
	char target[NAME_PATH_MAX + 1];
	struct list calls;
	struct list logs_open; /* struct peer_log (client_log.h) */
	struct rpc_stream *watch;
	const struct peer_events *events;
	void *events_userdata;
	char *path; /* to say in hello, or NULL */
	bool opened;
	bool rotates;      /* the keeper, its containers' logs */
	bool mounts;       /* and knows of mounts and of a root that is read-only */
	bool limits;       /* and of limits */
	bool late;         /* and starts what is to have its descriptors later */
	bool disks;        /* and mounts disks of its machine */
	bool logs;         /* and keeps logs until they are taken */
	bool shares;       /* and mounts what its machine is given by virtiofs */
	bool groups;       /* and reads and changes its groups for its parent */
	bool tmpfs_owner;  /* and gives a tmpfs to an owner */
	bool cell_network; /* and a cell a net namespace, and a host name */
	bool sysctls;      /* it sets those of its own namespaces */
	bool devices;      /* and gives devices beside those of every container */
	bool visitors;     /* and runs CONTAINER_VISITOR, and nested keepers with its namespaces */
	bool secures;      /* and takes what is not the default of a container's privilege */
	bool rlimits;      /* and limits of its processes */
	bool filters;      /* and filters of its own for a container */
	bool changes_log;  /* and goes on in another file */
	bool files;        /* and takes volumes as the files that are in them */
	bool hosts;        /* and names of pods for containers that run */
	bool scratch;      /* and makes volumes of its machine's own */
	bool stale;        /* says hello and watches again, as a part of `reopen` */
	bool told;         /* of the gap */
	struct peer_hello hello;
	struct error refusal; /* with a code: nothing may be asked of the keeper */
};

/* Around everything that calls back: the connection lasts until the callback of rpc has returned.
 */
static inline struct connection *connection_enter(struct connection *c)
{
	c->n_inside++;
	return c;
}

static inline bool keeper_client_has_channel(const struct keeper_client *client)
{
	return client->connection->channel_fd >= 0;
}

static inline void connection_leave(struct connection *c)
{
	c->n_inside--;
}

#endif
