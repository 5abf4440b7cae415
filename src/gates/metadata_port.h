/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_GATES_METADATA_PORT_H
#define NACRE_GATES_METADATA_PORT_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "wire/name/spiffe.h"

/*
 * The metadata services of pods: sockets that listen in their network namespaces, and the process
 * of nacre-gate that reads what comes there (gate/metadata.h), started with the first one and again
 * where it ends. Here nothing of a pod is read; what is told there is a page that was made before,
 * and each identity is asked for here, for the pod whose socket it was.
 */

/* Two descriptors of that process for each, beside those of connections. */
#define METADATA_DOORS_MAX 960

struct issuer;
struct loop;
struct metadata_port;

struct metadata_port_config {
	struct loop *loop;
	struct issuer *issuer; /* must outlive it */
	const char *program;   /* path of nacre-gate; copied */
	uid_t uid;
	gid_t gid;
	unsigned life; /* seconds of a certificate */
	/* The SPIFFE id of a pod now; ERROR_DENIED: it is to have none. */
	int (*identify)(void *userdata, const char *id, char ret[SPIFFE_SIZE], struct error *err);
	void *userdata;
};

/* Starts nothing yet. 0 or -ENOMEM. */
int metadata_port_new(struct metadata_port **ret, const struct metadata_port_config *config);
/* Ends the process, and with it each connection. NULL is fine. */
struct metadata_port *metadata_port_free(struct metadata_port *p);

/* Serves the page (wire/document/imds.h) at these sockets, which are taken over (the second may be
 * -1), for the pod with that id. ERROR_EXHAUSTED past METADATA_DOORS_MAX, -ENOMEM. */
int metadata_port_open(struct metadata_port *p, const char *id, const int fds[2],
		       const uint8_t *page, size_t len, struct error *err);
/* Another page from now on; nothing where the pod has none. 0 or -ENOMEM. */
int metadata_port_change(struct metadata_port *p, const char *id, const uint8_t *page, size_t len);
/* Nothing is served any more. */
void metadata_port_close(struct metadata_port *p, const char *id);

#endif
