/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_SVID_PORT_H
#define NACRE_GATES_SVID_PORT_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "wire/name/spiffe.h"

/*
 * Where workloads ask for their identities: a listening socket, and the process of nacre-svid that
 * reads what they say (svid/serve.h), started when the first one comes. Nothing of a stranger is
 * read here: the kernel says which process has connected (SO_PEERPIDFD, Linux 6.5), `attest` who
 * that is, and the connection goes on to nacre-svid with the answer. A connection ends with the
 * process that has made it, even where another one holds it meanwhile. Each certificate is asked
 * for here, and `attest` is asked again before it is signed.
 */

#define SVID_SOCKET "workload.sock"
/* Connections at once, and of those who are one container, or have no identity. */
#define SVID_CALLERS_MAX 1024
#define SVID_CALLERS_SAME_MAX 64

struct issuer;
struct loop;
struct svid_port;

/* A container as its certificates call it: its place, which stays when it is started again, and
 * this very one. */
struct svid_identity {
	char id[SPIFFE_SIZE];
	char instance_id[SPIFFE_SIZE];
};

struct svid_port_config {
	struct loop *loop;
	struct issuer *issuer; /* must outlive it */
	const char *program;   /* path of nacre-svid; copied */
	int dir_fd;            /* of the socket; not taken over */
	uid_t uid;
	gid_t gid;
	unsigned life; /* seconds of a certificate */
	/* The identity of a process that lives now: 0, or ERROR_DENIED with the reason why it has
	 * none. */
	int (*attest)(void *userdata, pid_t pid, struct svid_identity *ret, struct error *err);
	void *userdata;
};

/* Whether the kernel can say who has connected. */
bool svid_port_is_possible(void);
/* Listens. 0 or a negative errno. */
int svid_port_new(struct svid_port **ret, const struct svid_port_config *config, struct error *err);
/* Ends the process, and with it each connection. NULL is fine. */
struct svid_port *svid_port_free(struct svid_port *p);

#endif
