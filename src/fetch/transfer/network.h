/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FETCH_NETWORK_H
#define NACRE_FETCH_NETWORK_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "base/memory/buf.h"
#include "fetch/transfer/policy.h"
#include "registry/exchange.h"
#include "registry/registry.h"
#include "wire/message/fetchmsg.h"

/*
 * The common part of the jobs with a network: their set-up, as far as the core tells it before GO,
 * the client of a registry, and documents.
 */

#define NETWORK_MESSAGES_MAX 2048 /* before GO */
#define NETWORK_MEMORY_MAX (16 << 20)

/* A blob that a push was handed. */
struct network_blob {
	char digest[DIGEST_SIZE];
	uint64_t size;
	bool manifest;
	int fd;
	/* Of a copy's manifests. */
	char tag[REFERENCE_TAG_MAX + 1]; /* that it gets in place of its digest, or "" */
	char subject[DIGEST_SIZE];       /* that it refers to, or "" */
	bool unlisted; /* the registry has not said that it lists it as a referrer of that */
};

struct network {
	int sock_fd;
	struct arena arena;
	struct fetchmsg request; /* its texts are in the arena */
	struct reference reference;
	struct registry_config config;
	struct registry registry;
	bool open;
	/* Lists that the config points to. */
	struct endpoint_mirror *mirrors;
	struct registry_credentials *credentials;
	char **dirs, **mounts;
	struct network_blob *blobs;
	size_t n_blobs;
	struct policy *policy; /* NULL: there is none */
	nsec_t deadline;       /* of what network_get() waits for, ERROR_DEADLINE; 0: none */
};

/* Receives the rest of the set-up, reads files, starts the client: all of it before the sandbox
 * closes. network_close() is due whatever comes back. */
int network_open(struct network *n, int sock_fd, const struct fetchmsg *request, struct error *err);
void network_close(struct network *n);
/* Of a COPY: its destination, beside `n`, which tells what both are told, and goes on with it
 * (registry/client.h). Before the sandbox closes; closed before n, whatever comes back. */
int network_open_destination(struct network *to, struct network *n, struct error *err);

/* A document, and what was said about it. */
struct network_document {
	struct buf data;
	char digest[DIGEST_SIZE];            /* that it has */
	char media_type[FETCH_TYPE_MAX + 1]; /* Content-Type without parameters; "" */
	char next[URL_SIZE];                 /* of the next page */
	char origin[URL_SIZE];
	struct url url; /* that it came from in the end */
	size_t endpoint;
};

void network_document_done(struct network_document *d);
struct network_question {
	const char *what;                      /* for people */
	const char *path;                      /* behind the repository */
	const char *accept;                    /* or NULL */
	uint32_t need;                         /* FETCH_CAN_* */
	size_t max;                            /* bytes that it may have */
	const struct network_document *before; /* its next page is wanted; or NULL */
	const char *digest;                    /* that it must have; NULL: it is found out */
	bool manifest;                         /* its type must be one of a manifest or index */
};

/* Gets a document, and waits for it. Where the registry names its digest that is compared. A host
 * that sends something else than was asked for is as good as none: the next one is asked, and the
 * document of the last one comes back whatever its digest. */
int network_get(struct network *n, const struct network_question *q, struct network_document *ret,
		struct error *err);
/* Hands this page to fn, and each that follows, which comes in its place: at most
 * REGISTRY_PAGES_MAX. Ends with the first error. */
typedef int (*network_page_fn)(struct network *n, const struct network_document *page,
			       void *userdata, struct error *err);
int network_each_page(struct network *n, const struct network_question *q,
		      struct network_document *page, network_page_fn fn, void *userdata,
		      struct error *err);
/* The header Accept of requests for manifests. */
#define NETWORK_ACCEPT                                                                             \
	"application/vnd.oci.image.index.v1+json, application/vnd.oci.image.manifest.v1+json, "    \
	"application/vnd.docker.distribution.manifest.list.v2+json, "                              \
	"application/vnd.docker.distribution.manifest.v2+json"
/* The manifest behind a tag or digest; its type was checked as far as its head says it. */
int network_get_manifest(struct network *n, const char *tag_or_digest, struct network_document *ret,
			 struct error *err);
/* Puts an index behind a tag, and waits for it. */
int network_put_index(struct network *n, const char *tag, const char *text, size_t len,
		      struct error *err);
int network_send_resolved(struct network *n, const struct network_document *d, struct error *err);

#endif
