/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_FETCHMSG_H
#define NACRE_WIRE_FETCHMSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "wire/name/digest.h"

/*
 * Messages between nacre-fetch and the core: packets of a SOCK_SEQPACKET socket pair, each one
 * message of a fixed layout of at most FETCHMSG_SIZE_MAX bytes. The helper reads what strangers
 * wrote, so the core takes nothing from it on trust: every length, count, digest and text of a
 * message is checked here when it is decoded, and again for sense by src/image. In place of any
 * answer ERROR may come at any time, and is the last one.
 *
 * Jobs without network. The core begins with the one message READ or UNPACK. READ is answered by
 * BLOB for each file that was put into the staging directory (named by the hexadecimal digits of
 * its digest), then for each image IMAGE, its WORDs and LAYERs and IMAGE_END, and DONE. UNPACK is
 * answered by UNPACKED. An UNPACK with `follow` has the read end of a pipe as the helper's third
 * descriptor (FETCH_PIPE_FD of fetch/unpack/main.c): each eight bytes that come there are a number
 * of this machine's order, how many bytes of the blob's file are there by now; the end of the pipe
 * before the last of them is the blob's size means that no more will come. An unpacker may say
 * MEMORY, which the core answers with GO: it waits until it may take so many bytes for a window,
 * which no more than FETCH_MEMORY_MAX of all unpackers of a node together are at one time. Another
 * MEMORY gives back what the one before it got; the rest is given back at the end.
 *
 * EXPORT has the directory of the blobs as its source and the write end of a pipe for what it
 * writes. Behind it come as many EXPORT_IMAGEs as it says. It is answered by an IMAGE for each (id,
 * and the digest that its manifest has in the archive; all else is empty), while the archive goes
 * into the pipe, and DONE when all of it is there.
 *
 * PROFILE has a seccomp profile as its source and a file for the filter that it becomes, which
 * FILTER tells the size of, once it is there. CDI has the names of devices with the files of their
 * vendors as its source (fetch/unpack/cdi.h), and a file for what a container gets with them, which
 * EDITS tells the size of.
 *
 * Jobs with network. The core begins with one of PULL, PUSH, COPY, LIST and VERIFY, goes on with
 * any number of NETWORK (at most one), PROXY (at most one), POLICY (at most one), REGISTRY_DIR,
 * ENDPOINT and AUTH in any order, for a PUSH with its MOUNTs and PUSH_BLOBs, and ends with GO:
 * until then nothing is read but these, and no connection is made. All of it is the core's own word
 * or its client's, and trusted so far.
 *
 * PULL is answered, in this order, by
 *   RESOLVED            the document that the reference names, and where it was found: once;
 *   SIGNER, VERDICT     the policy's verdict on it, and the signers that it accepted: never a
 *                       refusal, which is an ERROR;
 *   BLOB                for each document, as READ does: indexes, manifest, configuration;
 *   REFERRER            for each of them, where PULL has FETCH_PULL_REFERRERS;
 * then as READ does: IMAGE, WORDs, LAYERs, IMAGE_END, for the one image; or, where PULL has
 * FETCH_PULL_COPY, CONTENT for each blob that the documents name (each digest once) and
 * CONTENT_END: no image is made of it then, it may be an artifact, and of an index all platforms
 * are taken.
 *
 * The core answers each distinct digest of these LAYERs or CONTENTs once, at any time from then on
 * and in any order: with FETCH or with SKIP. The helper waits for as long as it takes. FETCH
 * carries one or two descriptors (SCM_RIGHTS, in this order): the blob's file, open for reading and
 * writing, and, where `follow` is 1, the write end of a pipe as UNPACK reads it. `from` bytes of
 * the file are kept from an earlier time; the helper reads them again for the digest before it goes
 * on behind them, or truncates the file where they are more than the blob has. It tells the pipe
 * first when these were read, then at least 64 KiB apart, and at the end; it closes both
 * descriptors when it is done with the blob. Meanwhile it says
 *   PROGRESS            at most ten times a second for each digest, n_bytes that are in the file;
 *   NOTE                for people: which mirror failed and why, what is tried again and when;
 *   BLOB                the whole is in the file and has the digest; after the last PROGRESS;
 *   RESTART             the bytes of this blob are worthless: nothing more is written to the file,
 *                       and both descriptors are closed. The core ends the reader of that pipe,
 *                       truncates the file, and answers with another FETCH or SKIP.
 * When all were answered and all FETCHed ones are whole comes DONE with n_images (0 for a copy).
 *
 * PUSH: after the request, PUSH_BLOB for each blob and each manifest, the file as its one
 * descriptor (open for reading): blobs first, then manifests, each behind those that it names; the
 * last one is what the reference will name. Answers are PROGRESS, NOTE, and PUSHED for each; then
 * RESOLVED (the digest as the registry has it now) and DONE with n_images 1.
 *
 * COPY takes what `reference` names to `destination`, without the store. It is answered by RESOLVED
 * (where it was found), BLOB for each document, CONTENT for all that the destination is to have, in
 * the order of PUSH_BLOBs, and CONTENT_END. For each blob that the destination neither has nor
 * mounts comes a WANT, which the core answers with FETCH, at any time, with an empty file and
 * without a pipe; it is loaded as by PULL (PROGRESS, RESTART, BLOB), and then sent as by PUSH
 * (PROGRESS from the beginning, PUSHED), and the file is closed. A RESTART is answered with another
 * FETCH. RESOLVED and DONE end it as they end a PUSH.
 *
 * LIST is answered by RESOLVED (for FETCH_LIST_RESOLVE, FETCH_LIST_REFERRERS), TAGs or REFERRERs,
 * and DONE with n_images 0.
 *
 * VERIFY asks what the policy says, or whether `key` has signed, and takes nothing. It is answered
 * by RESOLVED where the request has no digest; a SIGNER for each signature that a rule took, behind
 * it its ANNOTATIONs; VERDICT, also that it is refused; and DONE with n_images 0.
 *
 * Texts of ERROR from these jobs name the registry, the step, and what the answer was. Its kinds:
 * ERROR_NOT_FOUND; ERROR_UNAUTHENTICATED with "Unauthenticated: " in front: credentials are wanted,
 * or were not accepted; ERROR_DENIED: they were, and it will not;
 * ERROR_UNAVAILABLE with "RegistryUnavailable: " in front: network, TLS, 429, 5xx, no progress;
 * ERROR_INVALID for documents and digests that break their rules, as READ says it, and where the
 * registry says that of the request (400); ERROR_EXHAUSTED for a limit of ours; ERROR_PRECONDITION
 * where there is no image for the platform, and where the registry will not do this however often
 * it is asked (405 and the like: registry/exchange.c); ERROR_DEADLINE where the signatures of an
 * image did not come in time; ERROR_UNSUPPORTED for kinds of content that
 * we do not take.
 */

#define FETCHMSG_SIZE_MAX 65536

/* Limits that both sides keep. */
#define FETCH_IMAGES_MAX 64
#define FETCH_REF_MAX 512
#define FETCH_LAYERS_MAX 256
#define FETCH_WORDS_MAX 4096  /* of an image, all lists */
#define FETCH_WORD_MAX 32768  /* bytes of one */
#define FETCH_BLOBS_MAX 16384 /* of an archive */
#define FETCH_BYTES_MAX (UINT64_C(1) << 50)
#define FETCH_HOST_MAX 262                   /* a name of 255 bytes, a colon, a port */
#define FETCH_URL_MAX 2048                   /* of an endpoint or a proxy */
#define FETCH_SECRET_MAX 16384               /* bytes of a password or token */
#define FETCH_TYPE_MAX 255                   /* of a media type */
#define FETCH_REFERRER_ANNOTATIONS_MAX 32    /* that are told of one */
#define FETCH_REFERRER_ANNOTATIONS_SIZE 4096 /* bytes of these, with a NUL behind each text */
#define FETCH_CONTENTS_MAX 1024              /* CONTENT of a copy, PUSH_BLOB of a push */
#define FETCH_CONNECTIONS_MAX 64             /* at once */
#define FETCH_TAGS_MAX 100000                /* of a list */
#define FETCH_MILLISECONDS_MAX 3600000
#define FETCH_INSNS_MAX 4096       /* of a filter for system calls; the kernel's limit */
#define FETCH_EDITS_MAX (1U << 20) /* bytes of what devices change in a container */
#define FETCH_NAMES_MAX 61440      /* bytes of the names of an image that is exported */
#define FETCH_SIGNERS_MAX 16
#define FETCH_ANNOTATIONS_MAX 64 /* of a signature */
#define FETCH_ANNOTATION_NAME_MAX 256
#define FETCH_ANNOTATION_MAX 4096 /* bytes of its value */

/* Bytes of a window with what is around it: which nobody asks for, and of the longest. */
#define FETCH_MEMORY_FREE (UINT64_C(1) << 20)
#define FETCH_MEMORY_MAX (UINT64_C(33) << 20)

enum fetchmsg_type {
	FETCHMSG_READ,
	FETCHMSG_UNPACK,
	FETCHMSG_BLOB,
	FETCHMSG_IMAGE,
	FETCHMSG_WORD,
	FETCHMSG_LAYER,
	FETCHMSG_IMAGE_END,
	FETCHMSG_DONE,
	FETCHMSG_UNPACKED,
	FETCHMSG_ERROR,
	FETCHMSG_PULL,
	FETCHMSG_PUSH,
	FETCHMSG_LIST,
	FETCHMSG_NETWORK,
	FETCHMSG_PROXY,
	FETCHMSG_REGISTRY_DIR,
	FETCHMSG_ENDPOINT,
	FETCHMSG_AUTH,
	FETCHMSG_MOUNT,
	FETCHMSG_PUSH_BLOB,
	FETCHMSG_GO,
	FETCHMSG_RESOLVED,
	FETCHMSG_REFERRER,
	FETCHMSG_CONTENT,
	FETCHMSG_CONTENT_END,
	FETCHMSG_FETCH,
	FETCHMSG_SKIP,
	FETCHMSG_PROGRESS,
	FETCHMSG_NOTE,
	FETCHMSG_RESTART,
	FETCHMSG_PUSHED,
	FETCHMSG_TAG,
	FETCHMSG_POLICY,
	FETCHMSG_EXPORT,
	FETCHMSG_EXPORT_IMAGE,
	FETCHMSG_COPY,
	FETCHMSG_WANT,
	FETCHMSG_MEMORY,
	FETCHMSG_VERIFY,
	FETCHMSG_SIGNER,
	FETCHMSG_ANNOTATION,
	FETCHMSG_VERDICT,
	FETCHMSG_PROFILE,
	FETCHMSG_FILTER,
	FETCHMSG_LOGIN,
	FETCHMSG_CDI,
	FETCHMSG_EDITS,
	FETCHMSG_TYPE_COUNT
};

enum fetch_compression { FETCH_PLAIN, FETCH_GZIP, FETCH_ZSTD, FETCH_COMPRESSION_COUNT };

/* The lists of an image. A name is a full reference (wire/name/reference.h) without a digest. */
#define FETCH_HEALTH_NUMBERS 5
enum fetch_list {
	FETCH_NAME,
	FETCH_ENV,
	FETCH_ENTRYPOINT,
	FETCH_CMD,
	FETCH_VOLUME,
	/* The image's HEALTHCHECK: FETCH_HEALTH_NUMBERS decimal numbers (interval, timeout, start
	 * period and start interval in nanoseconds, retries; 0 where it says nothing), then its
	 * Test: NONE, CMD or CMD-SHELL, and words. */
	FETCH_HEALTH,
	FETCH_LIST_COUNT
};

enum fetch_export {
	FETCH_EXPORT_OCI,    /* an OCI layout, as a tar */
	FETCH_EXPORT_DOCKER, /* the same, with the manifest.json of `docker save` */
	FETCH_EXPORT_COUNT
};

/* How a registry may be spoken to, beyond what its hosts.toml says. */
#define FETCH_HOST_PLAIN 1U    /* plain HTTP; without it only where the host is loopback */
#define FETCH_HOST_INSECURE 2U /* TLS without verifying the certificate */
#define FETCH_HOST_FLAGS 3U

/* Options of a PULL. */
#define FETCH_PULL_COPY 1U
#define FETCH_PULL_REFERRERS 2U
#define FETCH_PULL_FLAGS 3U

/* Capabilities of an ENDPOINT. */
#define FETCH_CAN_PULL 1U    /* blobs, and manifests by digest */
#define FETCH_CAN_RESOLVE 2U /* tags */
#define FETCH_CAN_PUSH 4U
#define FETCH_CAN_FLAGS 7U

enum fetch_auth {
	FETCH_AUTH_PASSWORD, /* user and secret: Basic, or to the realm that hands out tokens */
	FETCH_AUTH_IDENTITY, /* the secret is a refresh token ("identity token") for the realm */
	FETCH_AUTH_TOKEN,    /* the secret goes to the registry as it is, as a bearer token */
	FETCH_AUTH_COUNT
};

enum fetch_listing {
	FETCH_LIST_RESOLVE, /* only what the reference names now */
	FETCH_LIST_TAGS,
	FETCH_LIST_REFERRERS,
	FETCH_LISTING_COUNT
};

enum fetch_pushed {
	FETCH_PUSHED_UPLOADED,
	FETCH_PUSHED_EXISTED,
	FETCH_PUSHED_MOUNTED,
	FETCH_PUSHED_COUNT
};

enum fetch_verdict {
	FETCH_VERDICT_NO_POLICY, /* the node has none: everything may be had */
	FETCH_VERDICT_ACCEPTED,  /* by rules that want no signature */
	FETCH_VERDICT_SIGNED,    /* as the rules, or the key, want it */
	FETCH_VERDICT_REFUSED,
	FETCH_VERDICT_COUNT
};

/* Texts of a decoded message lie in its packet. */
struct fetchmsg {
	enum fetchmsg_type type;
	union {
		struct {
			uint64_t max_bytes;       /* of all files in staging together */
			const char *architecture; /* of this machine, as OCI names it: "amd64" */
			/* "": an archive of images. Else the tar of a root file system, of which
			 * one is made: the JSON of its configuration, as OCI has it. */
			const char *config;
			/* Of the images of an archive, the one that the archive names so; "": all.
			 */
			const char *ref;
			/* The repository for names that are a tag alone; "": there is none. */
			const char *repository;
		} read;
		struct {
			char digest[DIGEST_SIZE];  /* of the blob */
			char diff_id[DIGEST_SIZE]; /* of the tar within */
			uint64_t size;             /* of the blob */
			uint32_t compression;
			uint64_t max_bytes; /* of the tar */
			uint64_t max_entries;
			uint32_t follow; /* 1: the file grows, a pipe says how far */
		} unpack;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t size;
		} blob;
		struct {
			char id[DIGEST_SIZE];
			char digest[DIGEST_SIZE];
			const char *user;
			const char *working_dir;
			const char *stop_signal;
		} image;
		struct {
			uint32_t list;
			const char *text;
		} word;
		struct {
			char digest[DIGEST_SIZE];
			char diff_id[DIGEST_SIZE];
			uint64_t size;
			uint32_t compression;
		} layer;
		struct {
			uint32_t n_words;
			uint32_t n_layers;
		} image_end;
		struct {
			uint32_t n_images;
		} done;
		struct {
			uint64_t n_bytes;   /* of the tar */
			uint64_t n_entries; /* made in the directory */
			uint64_t n_skipped; /* devices and attributes that were left out */
		} unpacked;
		struct {
			uint32_t kind; /* enum error_kind */
			uint32_t code; /* errno, positive */
			const char *text;
		} error;
		struct {
			const char *reference; /* in full: tag, digest or both */
			const char *os;        /* of the image: "linux" */
			const char *architecture;
			const char *variant; /* "": whatever fits best */
			uint64_t max_bytes;  /* of all documents together */
			uint32_t flags;      /* FETCH_PULL_* */
			uint32_t host_flags; /* FETCH_HOST_*, of the registry that is named */
		} pull;
		struct {
			const char *reference; /* the tag, or the digest of the last manifest */
			uint32_t host_flags;
		} push;
		struct {
			const char *reference;
			uint32_t what; /* enum fetch_listing */
			uint32_t max;  /* that are told; more are an error */
			uint32_t host_flags;
		} list;
		struct {
			uint32_t connections; /* downloads at once */
			uint32_t stall_ms;    /* without progress: given up */
			uint32_t min_rate;    /* bytes a second over that time; 0: any */
			uint32_t n_retries;
			uint32_t retry_ms;     /* the first pause */
			uint32_t retry_max_ms; /* the longest, also where Retry-After says more */
			uint32_t connect_ms;
		} network; /* 0 in any of them: the default of registry/limits.h */
		struct {
			const char *http;  /* URL, or "" */
			const char *https; /* URL, or "" */
			const char *no_proxy;
		} proxy;
		struct {
			const char *path; /* absolute: below it HOST/hosts.toml; the first counts */
		} registry_dir;
		struct {
			const char *path; /* absolute: of the node's policy; it may be missing */
		} policy;
		struct {
			const char *host; /* of references, as they have it: "docker.io" */
			const char *url;  /* tried before the host itself, in the order of these */
			uint32_t can;     /* FETCH_CAN_* */
			uint32_t flags;   /* FETCH_HOST_* */
		} endpoint;
		struct {
			const char *host; /* to which alone (and to whose realm) it may be shown */
			uint32_t kind;    /* enum fetch_auth */
			const char *user; /* "" but for FETCH_AUTH_PASSWORD */
			const char *secret;
		} auth;
		struct {
			const char *name; /* host and path; the registry may have the blobs there */
		} mount;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t size;
			uint32_t manifest; /* 1: it is one */
		} push_blob;
		struct {
			char digest[DIGEST_SIZE]; /* of the index, where it is one */
			uint64_t size;
			const char *media_type;
			const char *origin; /* the URL of registry or mirror, without a path */
		} resolved;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t size;
			const char *media_type;
			const char *artifact_type; /* or "" */
			uint32_t n_annotations;    /* that follow, each in an ANNOTATION */
			uint32_t n_left_out;       /* for which there was no room */
		} referrer;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t size;
			const char *media_type;
		} content;
		struct {
			uint32_t n_contents;
		} content_end;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t size;
			uint64_t from;   /* bytes that are in the file */
			uint32_t follow; /* 1: a second descriptor, the write end of a pipe */
		} fetch;
		struct {
			char digest[DIGEST_SIZE];
		} skip;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t n_bytes;
		} progress;
		struct {
			const char *text;
		} note;
		struct {
			char digest[DIGEST_SIZE];
			const char *text; /* why, for people */
		} restart;
		struct {
			char digest[DIGEST_SIZE];
			uint32_t how; /* enum fetch_pushed */
		} pushed;
		struct {
			const char *name;
		} tag;
		struct {
			uint32_t form; /* enum fetch_export */
			uint32_t n_images;
		} export;
		struct {
			char digest[DIGEST_SIZE]; /* of the manifest */
			char id[DIGEST_SIZE];
			const char *names; /* full, parted by blanks; "": none */
		} export_image;
		struct {
			uint64_t caps; /* of the container, a bit for each number */
		} profile;
		struct {
			uint32_t n_insns; /* struct sock_filter each; at least one */
			uint32_t flags;   /* SECCOMP_FILTER_FLAG_* */
		} filter;
		struct {
			uint32_t n_bytes;
		} edits;
		struct {
			const char *reference;    /* in full: tag, digest or both */
			const char *destination;  /* in full; a digest is what it must have */
			const char *architecture; /* "": an index as it is, with all platforms */
			const char *variant;
			uint64_t max_bytes; /* of all documents together */
			uint32_t referrers; /* 1: also what refers to what is copied */
		} copy;
		struct {
			char digest[DIGEST_SIZE];
			uint64_t size;
		} want;
		struct {
			uint64_t n_bytes;
		} memory;
		struct {
			const char *reference; /* in full: tag, digest or both */
			const char *digest; /* that is asked about; "": what the reference names */
			const char *key; /* in PEM: it must have signed; "": the policy is asked */
			uint32_t host_flags;
		} verify;
		struct {
			const char *key;               /* its path or place, as the policy has it */
			char fingerprint[DIGEST_SIZE]; /* of the key as a SubjectPublicKeyInfo */
			const char *identity;          /* the name that was signed */
		} signer;
		struct {
			const char *name; /* of the SIGNER before (its signature), or REFERRER */
			const char *value;
		} annotation;
		struct {
			char digest[DIGEST_SIZE]; /* of what it is about */
			uint32_t verdict;         /* enum fetch_verdict */
			const char *scope;  /* of the policy; "" where that was not asked, too */
			const char *text;   /* why it is refused; else "" */
			uint32_t n_signers; /* that came before */
		} verdict;
		struct {
			const char *host; /* of references: "docker.io" */
		} login;
	};
};

/* Writes the packet: its length, or ERROR_INVALID where a member breaks its rule. packet has room
 * for FETCHMSG_SIZE_MAX bytes. */
int fetchmsg_encode(const struct fetchmsg *m, uint8_t *packet, struct error *err);
/* 0, or -EBADMSG with what is wrong. packet must live as long as *ret. */
int fetchmsg_decode(struct fetchmsg *ret, const uint8_t *packet, size_t len, struct error *err);

#endif
