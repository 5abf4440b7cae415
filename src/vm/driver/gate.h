/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_GATE_H
#define NACRE_VM_GATE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "wire/message/gatemsg.h"
#include "wire/message/guestgate.h"

/*
 * The gate of one virtual machine as the daemon sees it: a process of nacre-gate in the network
 * namespace of the machine, which reads each byte of the guest before the daemon does. It serves
 * "rpc.sock" of the instance's directory as a keeper would (instance_connect() finds no
 * difference), and is spoken to over "gate.sock" beside it. It outlives the daemon; a new daemon
 * connects to it again, is told all, and answers what has waited.
 *
 * Certificates that the gate asks for, its own and the guest's, are got from the issuer here, for
 * the two ids of the configuration and no others.
 */

struct gate;
struct issuer;
struct loop;

struct gate_config {
	struct loop *loop;
	struct issuer *issuer; /* must outlive the gate */
	int dir_fd;            /* the instance's directory; not taken over */
	const char *instance;  /* its id, a segment of a SPIFFE id */
	nsec_t life;           /* of certificates */
};

/* Further arguments of the start of a gate. No descriptor is taken over. */
struct gate_start {
	const char *program; /* path of nacre-gate */
	const char *title;   /* of the instance, for ps */
	int net_fd;          /* the network namespace of the machine; -1: the daemon's own */
	int cgroup_fd;       /* -1: the daemon's own */
	int boot_fd;         /* connected socket of the boot port's chardev; -1: it is in a cloud */
	int console_fd;      /* the same of the console */
	uid_t uid;           /* as whom it runs; not 0, and nobody else's */
	gid_t gid;
	uint8_t address[4];   /* of the guest */
	uint16_t port;        /* GATE_PORT */
	const char *patience; /* GUESTGATE_PATIENCE_TWICE; NULL: the usual */
	uint8_t token[GATE_TOKEN_SIZE];
};

#define GATE_PORT 7474

/* Each comes from the loop, none before the call that caused it has returned, and none after
 * gate_free(). Any may be NULL. A callback may free the gate. */
struct gate_events {
	/* text: a sentence where there is one, else "". GATE_UP: rpc.sock is served. GATE_FAILED
	 * and GATE_GONE are followed by no state but GATE_GONE; the console can still be asked for.
	 */
	void (*on_state)(void *userdata, enum gate_state state, const char *text);
	/* A whole frame of the boot port, as bootmsg_next() takes it; after gate_connect() those
	 * that came before are told again. */
	void (*on_frame)(void *userdata, const uint8_t *frame, size_t len);
	/* A connection to the guest was refused, and why: for the log. */
	void (*on_notice)(void *userdata, const char *text);
	/* The process is gone, or does not speak any more: the last event. */
	void (*on_end)(void *userdata, const struct error *err);
};

/* Makes both sockets in dir_fd and starts the process. */
int gate_start(struct gate **ret, const struct gate_config *config, const struct gate_start *start,
	       const struct gate_events *events, void *userdata, struct error *err);
/* To one that a daemon before has started. ERROR_UNAVAILABLE where none is there. */
int gate_connect(struct gate **ret, const struct gate_config *config,
		 const struct gate_events *events, void *userdata, struct error *err);
/* Of one that this daemon has started. */
pid_t gate_pid(const struct gate *g);
/* Leaves the process running. */
struct gate *gate_free(struct gate *g);
/* Tells it to end; on_end follows. */
void gate_end(struct gate *g);
/* SIGKILL, of one that this daemon has started; on_end follows. */
void gate_kill(struct gate *g);

/* A frame for the guest, as bootmsg_encode() has made it. 0, or -ENOBUFS where too many wait,
 * -EPIPE where the gate is gone. */
int gate_send(struct gate *g, const uint8_t *frame, size_t len);

/* The end of the console, GATE_CONSOLE_MAX bytes at most, and how many there were in all. One at a
 * time: -EBUSY. Answered once, at the gate's end too; not by gate_free(). */
typedef void (*gate_console_fn)(void *userdata, const uint8_t *last, size_t len, uint64_t total,
				const struct error *err);
int gate_console(struct gate *g, gate_console_fn done, void *userdata);

#endif
