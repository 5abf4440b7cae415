/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_REGISTRY_H
#define NACRE_IMAGE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/clock.h"
#include "base/error.h"

/*
 * Images and registries: what users of the store ask for. Everything that a registry says is read
 * by nacre-fetch, in a sandbox with network and without files; credentials are handed to it for
 * that one job, and kept nowhere.
 */

struct image;
struct image_pull;
struct image_store;

/* ---- configuration ---- */

#define IMAGE_DOWNLOADS_MAX 32
#define IMAGE_UNPACKS_MAX 16
#define IMAGE_REGISTRY_DIRS_SIZE 1024 /* of the text, with its end */

struct image_network {
	/* Parted by colons; below each HOST/hosts.toml, the first that is there counts. NULL: none.
	 */
	const char *registry_dirs;
	const char *policy; /* which images may be had: a file, which may be missing; NULL: all */
	unsigned parallel_downloads; /* of a pull; 0: 6 */
	nsec_t no_progress;          /* given up after that; 0: nacre-fetch's own default */
	const char *http_proxy, *https_proxy, *no_proxy; /* or NULL */
};

/* ---- credentials ---- */

enum image_auth_kind { IMAGE_AUTH_PASSWORD, IMAGE_AUTH_IDENTITY, IMAGE_AUTH_TOKEN };

struct image_auth {
	const char *host; /* to which alone they are shown */
	enum image_auth_kind kind;
	const char *user; /* for a password */
	const char *secret;
};

#define IMAGE_AUTHS_MAX 16
#define IMAGE_HOST_MAX 262
#define IMAGE_USER_MAX 1024
#define IMAGE_SECRET_MAX 16384
#define IMAGE_PLATFORM_MAX 32 /* bytes of an architecture or variant */

struct image_auths {
	const struct image_auth *list;
	size_t n;
};

/* ---- pulling ---- */

enum image_pull_step {
	IMAGE_PULL_RESOLVED, /* text: where it was found */
	IMAGE_PULL_NOTE,     /* text: for people */
	IMAGE_PULL_WAITING,  /* a layer whose turn has not come */
	IMAGE_PULL_LOADING,  /* n_bytes of it are there */
	IMAGE_PULL_LOADED,   /* all of it */
	IMAGE_PULL_UNPACKED, /* the layer has its place */
	IMAGE_PULL_STEP_COUNT
};

struct image_pull_event {
	enum image_pull_step step;
	const char *text;   /* or "" */
	const char *digest; /* of the manifest or index, or of the layer's blob; or "" */
	unsigned layer;     /* from 1; 0: it is not about a layer */
	unsigned n_layers;
	uint64_t n_bytes;
	uint64_t size;
	bool there; /* the node had it already */
};

struct image_pull_ops {
	void (*on_event)(void *userdata, const struct image_pull_event *e);
	void (*on_done)(void *userdata, struct image *image, const struct error *err);
};

struct image_pull_request {
	const char *reference;
	const char *architecture; /* "": of this machine */
	const char *variant;      /* "": whatever fits best */
	struct image_auths auths;
};

/*
 * Pulls an image for this node: its name (with a tag) is given to it; by digest alone it gets none.
 * Layers are unpacked while they are loaded. A blob that another pull loads already is waited for,
 * and one of which an earlier pull left a part is gone on with. Never calls back before it has
 * returned.
 *
 * Errors: ERROR_INVALID (the reference; documents and layers that break their rules);
 * ERROR_NOT_FOUND; ERROR_DENIED; ERROR_UNAVAILABLE ("RegistryUnavailable: ..."); ERROR_PRECONDITION
 * (no image for the platform); ERROR_EXHAUSTED (too many pulls, a limit, no room for it on the
 * disk: refused before anything of the layers is loaded).
 */
int image_pull_start(struct image_store *s, const struct image_pull_request *q,
		     const struct image_pull_ops *ops, void *userdata, struct image_pull **ret,
		     struct error *err);
/* on_done is not called. What was loaded stays in partial/ for the next pull. */
void image_pull_cancel(struct image_pull *p);

#endif
