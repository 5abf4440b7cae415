/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_IMAGE_REGISTRY_H
#define NACRE_IMAGE_REGISTRY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/time/clock.h"

/*
 * Images and registries: what users of the store ask for. Everything that a registry says is read
 * by nacre-transfer, in a sandbox with network and without files; credentials are handed to it for
 * that one job, and kept nowhere.
 */

struct image;
struct image_copy;
struct image_listing;
struct image_pull;
struct image_push;
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
	nsec_t no_progress;          /* given up after that; 0: nacre-transfer's own default */
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
 * ERROR_NOT_FOUND; ERROR_UNAUTHENTICATED; ERROR_DENIED; ERROR_UNAVAILABLE ("RegistryUnavailable:
 * ..."); ERROR_PRECONDITION (no image for the platform; a registry that does not do this);
 * ERROR_EXHAUSTED (too many pulls, a limit, no room for it on the disk: refused before anything of
 * the layers is loaded).
 */
int image_pull_start(struct image_store *s, const struct image_pull_request *q,
		     const struct image_pull_ops *ops, void *userdata, struct image_pull **ret,
		     struct error *err);
/* on_done is not called. Loaded bytes stay in partial/ for the next pull. */
void image_pull_cancel(struct image_pull *p);

/* ---- the policy ---- */

enum image_verdict_kind {
	IMAGE_VERDICT_NO_POLICY, /* the node had none */
	IMAGE_VERDICT_ACCEPTED,  /* by rules that want no signature */
	IMAGE_VERDICT_SIGNED,    /* as the rules want it */
	IMAGE_VERDICT_REFUSED,
	IMAGE_VERDICT_KIND_COUNT
};
/* "no-policy", "accepted", "signed", "refused". */
const char *image_verdict_word(enum image_verdict_kind kind);

struct image_annotation {
	const char *name, *value;
};

struct image_signer {
	const char *key;         /* its path, or "keyData", as the policy has it */
	const char *fingerprint; /* sha256:... of the key as a SubjectPublicKeyInfo */
	const char *identity;    /* the name that was signed */
	const struct image_annotation *annotations;
	size_t n_annotations;
};

struct image_verdict {
	const char *reference; /* in full: what it is about */
	const char *digest;    /* that it had: of the index, where it is one */
	enum image_verdict_kind kind;
	const char *scope;                  /* of the policy whose rules counted; "" is one, too */
	const char *reason;                 /* why it is refused; else "" */
	uint64_t at;                        /* wall clock, nanoseconds */
	const struct image_signer *signers; /* whose signatures rules took */
	size_t n_signers;
};

struct image_verify;

struct image_verify_request {
	const char *reference;
	/* In PEM: it must have signed, whatever the policy says. "": the policy is asked. */
	const char *key;
	struct image_auths auths;
};

/* One of the two is NULL. stored: the digest is that of an image of this node, and not what the
 * registry has by now. */
typedef void (*image_verified_fn)(void *userdata, const struct image_verdict *verdict, bool stored,
				  const struct error *err);

/*
 * Asks anew what the policy, as it is now, says of a reference: of the digest that the node's image
 * had when it came by that name, else of the one that the registry has. Nothing is pulled, and
 * nothing of the node changes. That it is refused is a verdict; errors are those of a push, beside
 * ERROR_INVALID for a key, or for an image's id, and ERROR_PRECONDITION for a policy that cannot be
 * read ("SignatureValidationFailed: ..."). Never calls back before it has returned.
 */
int image_verify_start(struct image_store *s, const struct image_verify_request *q,
		       image_verified_fn done, void *userdata, struct image_verify **ret,
		       struct error *err);
/* done is not called. */
void image_verify_cancel(struct image_verify *v);

/* ---- pushing ---- */

#define IMAGE_ORIGIN_MAX 2048

enum image_push_step {
	IMAGE_PUSH_NOTE,    /* text: for people */
	IMAGE_PUSH_LOADING, /* of a copy: n_bytes of a blob are here */
	IMAGE_PUSH_SENDING, /* n_bytes of a blob were sent */
	IMAGE_PUSH_SENT,
	IMAGE_PUSH_THERE,   /* the registry had it already */
	IMAGE_PUSH_MOUNTED, /* it had it in another repository */
	IMAGE_PUSH_STEP_COUNT
};

struct image_push_event {
	enum image_push_step step;
	const char *text;   /* or "" */
	const char *digest; /* of the blob, or "" */
	unsigned blob;      /* from 1, the manifest is the last; 0: it is not about one */
	unsigned n_blobs;
	uint64_t n_bytes;
	uint64_t size;
};

struct image_pushed {
	const char *reference; /* in full */
	const char *digest;    /* of the manifest, there as here */
	const char *origin;    /* of the registry */
	uint64_t size;         /* of the manifest */
};

struct image_push_ops {
	void (*on_event)(void *userdata, const struct image_push_event *e);
	/* Exactly one of the two is meaningful: err NULL where it went well. */
	void (*on_done)(void *userdata, const struct image_pushed *pushed, const struct error *err);
};

struct image_push_request {
	const struct image *image;
	const char *destination; /* a reference */
	struct image_auths auths;
};

/*
 * Pushes an image as it came: its documents and compressed layers, byte by byte, so that it has the
 * same digest there. Blobs that the registry has are not sent, or mounted where it has them under
 * another name of the image; an upload that was cut is gone on with. The manifest comes last. The
 * image may be removed meanwhile. Never calls back before it has returned.
 *
 * Errors: ERROR_INVALID (the reference, a digest in it that is not the image's, a registry that
 * says that it has something else than it was sent); ERROR_NOT_FOUND; ERROR_UNAUTHENTICATED;
 * ERROR_DENIED; ERROR_PRECONDITION (a registry that does not do this); ERROR_UNAVAILABLE
 * ("RegistryUnavailable: ..."); ERROR_EXHAUSTED (too many pushes).
 */
int image_push_start(struct image_store *s, const struct image_push_request *q,
		     const struct image_push_ops *ops, void *userdata, struct image_push **ret,
		     struct error *err);
/* on_done is not called. */
void image_push_cancel(struct image_push *p);

/* ---- copying ---- */

struct image_copy_request {
	const char *source, *destination; /* references */
	const char *architecture;         /* "": an index as it is, with all its platforms */
	const char *variant;
	bool referrers;           /* also what refers to what is copied: signatures, SBOMs */
	struct image_auths auths; /* for both */
};

/*
 * Copies what a registry has to another one, or to another repository of it, byte by byte: all
 * documents below the reference (and what refers to them), and each blob that the destination
 * neither has nor can mount. The store gets none of it: a blob on its way is in a file without a
 * name, on the disk of the store and within its reserve, until it was sent. The policy is asked as
 * for a pull. A copy that was cut is gone on with by the next one, which finds there what this one
 * has brought. Events and errors are those of a push, with those of a pull (ERROR_PRECONDITION,
 * ERROR_EXHAUSTED) beside them.
 */
int image_copy_start(struct image_store *s, const struct image_copy_request *q,
		     const struct image_push_ops *ops, void *userdata, struct image_copy **ret,
		     struct error *err);
/* on_done is not called. */
void image_copy_cancel(struct image_copy *c);

/* ---- listing ---- */

#define IMAGE_TAGS_MAX 20000
#define IMAGE_REFERRERS_MAX 1024

/* A manifest that says of itself that it is about another one: an SBOM, provenance, a signature. */
struct image_referrer {
	const char *digest, *media_type;
	const char *artifact_type; /* "": the registry does not say */
	uint64_t size;
	unsigned n_left_out; /* annotations that are too many or too long to be told */
};

struct image_listing_ops {
	void (*on_tag)(void *userdata, const char *tag);
	/* The digest of what is referred to, once; then each referrer. */
	void (*on_subject)(void *userdata, const char *digest);
	void (*on_referrer)(void *userdata, const struct image_referrer *referrer);
	/* Of the last of these: at most FETCH_REFERRER_ANNOTATIONS_MAX,
	 * FETCH_REFERRER_ANNOTATIONS_SIZE together. */
	void (*on_annotation)(void *userdata, const char *name, const char *value);
	void (*on_done)(void *userdata, const struct error *err); /* NULL: these were all */
};

/* The tags of a repository ("quay.io/a/b"), in the registry's order. Errors as those of a push. */
int image_tags_start(struct image_store *s, const char *repository, const struct image_auths *auths,
		     const struct image_listing_ops *ops, void *userdata,
		     struct image_listing **ret, struct error *err);
/* The referrers of an image of a registry, or of its index where it has one: by the API of
 * distribution 1.1, or by the tag that stands in for it. */
int image_referrers_start(struct image_store *s, const char *image, const struct image_auths *auths,
			  const struct image_listing_ops *ops, void *userdata,
			  struct image_listing **ret, struct error *err);
/* Asks a registry itself whether it takes credentials, of which exactly those for this host count:
 * GET /v2/, with a token where it wants one. A registry that asks for none takes any. on_done alone
 * is called. ERROR_UNAUTHENTICATED: it does not. */
int image_login_start(struct image_store *s, const char *host, const struct image_auths *auths,
		      const struct image_listing_ops *ops, void *userdata,
		      struct image_listing **ret, struct error *err);
/* on_done is not called. */
void image_listing_cancel(struct image_listing *t);

#endif
