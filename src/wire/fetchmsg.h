/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_FETCHMSG_H
#define NACRE_WIRE_FETCHMSG_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "wire/digest.h"

/*
 * What nacre-fetch and the core tell each other: packets of a SOCK_SEQPACKET socket pair, each one
 * message of a fixed layout of at most FETCHMSG_SIZE_MAX bytes. The helper reads what strangers
 * wrote, so the core takes nothing from it on trust: every length, count, digest and text of a
 * message is checked here when it is decoded, and again for sense by src/image.
 *
 * The core begins with one of READ and UNPACK. READ is answered by BLOB for each file that was put
 * into the staging directory (named by the hexadecimal digits of its digest), then for each image
 * IMAGE, its WORDs and LAYERs and IMAGE_END, and DONE. UNPACK is answered by UNPACKED. In place of
 * an answer ERROR may come at any time, and is the last one.
 */

#define FETCHMSG_SIZE_MAX 65536

/* Limits that both sides keep. */
#define FETCH_IMAGES_MAX 64
#define FETCH_LAYERS_MAX 128
#define FETCH_WORDS_MAX 4096  /* of an image, all lists */
#define FETCH_WORD_MAX 32768  /* bytes of one */
#define FETCH_BLOBS_MAX 16384 /* of an archive */
#define FETCH_BYTES_MAX (UINT64_C(1) << 50)

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
	FETCHMSG_TYPE_COUNT
};

enum fetch_compression { FETCH_PLAIN, FETCH_GZIP, FETCH_ZSTD, FETCH_COMPRESSION_COUNT };

/* The lists of an image. A name is a full reference (wire/reference.h) without a digest. */
enum fetch_list { FETCH_NAME, FETCH_ENV, FETCH_ENTRYPOINT, FETCH_CMD, FETCH_LIST_COUNT };

/* Texts of a decoded message lie in its packet. */
struct fetchmsg {
	enum fetchmsg_type type;
	union {
		struct {
			uint64_t max_bytes;       /* of all files in staging together */
			const char *architecture; /* of this machine, as OCI names it: "amd64" */
		} read;
		struct {
			char digest[DIGEST_SIZE];  /* of the blob */
			char diff_id[DIGEST_SIZE]; /* of the tar within */
			uint64_t size;             /* of the blob */
			uint32_t compression;
			uint64_t max_bytes; /* of the tar */
			uint64_t max_entries;
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
	};
};

/* Writes the packet: its length, or ERROR_INVALID where a member breaks its rule. packet has room
 * for FETCHMSG_SIZE_MAX bytes. */
int fetchmsg_encode(const struct fetchmsg *m, uint8_t *packet, struct error *err);
/* 0, or -EBADMSG with what is wrong. packet must live as long as *ret. */
int fetchmsg_decode(struct fetchmsg *ret, const uint8_t *packet, size_t len, struct error *err);

#endif
