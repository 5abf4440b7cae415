/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_QCOW2_H
#define NACRE_VM_QCOW2_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * The head of a qcow2 file (QEMU's docs/interop/qcow2.txt), pure: one that somebody brings is
 * looked at before a machine gets it, and an empty one is made to be laid over another disk.
 */

#define QCOW2_HEAD_MAX ((size_t)512) /* as much of a file as qcow2_look() wants to see */
#define QCOW2_BYTES_MAX ((uint64_t)16 << 40)
#define QCOW2_NAME_MAX 1023

struct qcow2 {
	unsigned version;
	uint64_t bytes; /* as its guest sees it */
};

/* Whether a file that begins so says that it is one. */
bool qcow2_is(const uint8_t *head, size_t len);

/*
 * ERROR_INVALID with a sentence for what is none, and for one that cannot be used: whole in itself
 * it has to be, without a backing file, an external data file or encryption, not marked as corrupt,
 * and without features that nobody knows here. file: its length; its tables begin within it.
 */
int qcow2_look(struct qcow2 *ret, const uint8_t *head, size_t len, uint64_t file,
	       struct error *err);

/*
 * An empty image of so many bytes (in whole sectors of 512, at most QCOW2_BYTES_MAX), which the
 * caller frees: *ret_len bytes for the beginning of a file, which then is *ret_file long, the rest
 * zeroes. backing: the path that it names as what shows through it, "" for none, at most
 * QCOW2_NAME_MAX bytes; format: "raw" or "qcow2". ERROR_INVALID.
 */
int qcow2_make(uint8_t **ret, size_t *ret_len, uint64_t *ret_file, uint64_t bytes,
	       const char *backing, const char *format, struct error *err);

#endif
