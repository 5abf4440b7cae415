/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_AURAE_SERVICES_H
#define NACRE_AURAE_SERVICES_H

#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/loop.h"
#include "loop/pool.h"
#include "rpc/server/method.h"

/*
 * The services of Aurae's daemon, on the domain that all services share. Each is a table of
 * methods, and takes just what it needs as userdata.
 */

struct root_store;
struct rpc_server;
struct runtime_service;
struct signal_watch;
struct workload_service;

/* aurae.cells.v0.CellService; userdata: struct aurae_cells. */
extern const struct rpc_service aurae_cells_service;
struct aurae_cells {
	struct workload_service *work;
};

/* aurae.discovery.v0.DiscoveryService; userdata: none. */
extern const struct rpc_service aurae_discovery_service;

/* GetPosixSignalsStream of the service below (isolate/spawn/signal_watch.h). */
struct aurae_signals {
	struct workload_service *owner; /* NULL: it has ended */
	struct list streams;            /* n of them */
	unsigned n;
	struct signal_watch *watch; /* of the thread while `work` is busy */
	struct pool_work work;
	struct loop_fd source;
	uint64_t lost; /* as was told */
	struct error err;
};
void aurae_signals_open(struct aurae_signals *s, struct workload_service *owner);
void aurae_signals_call(struct rpc_call *call, const ProtobufCMessage *request,
			struct aurae_signals *s);
/* Behind the server's end, and behind the pool's. */
void aurae_signals_stop(struct aurae_signals *s);
void aurae_signals_done(struct aurae_signals *s);

/* aurae.observe.v0.ObserveService; userdata: struct aurae_observe. */
extern const struct rpc_service aurae_observe_service;
struct aurae_observe {
	struct workload_service *work;
	struct list streams; /* of the daemon's log */
	unsigned n_streams;
	int wake_fd;
	struct loop_fd source;
	struct aurae_signals signals;
};

/* aurae.vms.v0.VmService; userdata: struct aurae_vms. */
extern const struct rpc_service aurae_vms_service;
struct aurae_vms {
	struct root_store *store; /* NULL: it was not loaded */
	struct runtime_service *runtime;
	struct list list; /* n machines */
	size_t n;
	unsigned n_calls; /* that open files */
};
/* Loads the allocated machines, while the store is idle. */
int aurae_vms_load(struct aurae_vms *s, struct root_store *store, struct error *err);
/* Behind the pool's end: what it has written is told before. Of zeroes it does nothing. */
void aurae_vms_done(struct aurae_vms *s);

/* All of them. */
struct aurae {
	struct aurae_cells cells;
	struct aurae_observe observe;
	struct aurae_vms vms; /* loaded by whoever opens them */
};

/* Adds them to a server; lines of the log are kept from now on. 0 or a negative errno. What was
 * opened is closed, also where this fails, by aurae_close() behind the server's end; of zeroes that
 * does nothing. */
int aurae_open(struct aurae *a, struct rpc_server *server, struct workload_service *work,
	       struct runtime_service *runtime);
void aurae_close(struct aurae *a);

#endif
