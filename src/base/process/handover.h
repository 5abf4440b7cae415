/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_HANDOVER_H
#define NACRE_BASE_HANDOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/buf.h"

/*
 * The state of a process on its way to the program that it executes next (architecture 9.4): a
 * sealed memfd of tagged fields, and the descriptors that these name, which stay open over
 * execve().
 *
 * The fields of a type stand in one table, which both directions follow; so a member is added in
 * one place. A member that is zero (a descriptor: -1; a pointer: NULL) is not written, and what is
 * not written is left as it is in the object that is read: a program reads what an older one wrote,
 * and an older one what a newer one wrote as long as nothing new was in use. A tag that is not in
 * the table is refused by name and number: state is never dropped silently. Tags are never used
 * again for something else.
 *
 * Input is checked like anything that comes from outside: lengths, ranges, and that each descriptor
 * was really left open, once.
 */

#define HANDOVER_VERSION 1U
/* Past this a state is not written: ERROR_EXHAUSTED. */
#define HANDOVER_MAX ((size_t)512 << 20)
/* The first number that can be handed over: those below are stdio. */
#define HANDOVER_FD_MIN 3

enum handover_kind {
	HANDOVER_INT,   /* signed, of any size */
	HANDOVER_UINT,  /* unsigned or bool or enum; at most `max`, where that is not 0 */
	HANDOVER_TEXT,  /* an array of char that ends with NUL */
	HANDOVER_BYTES, /* an array as it is */
	HANDOVER_STR,   /* char *, allocated */
	HANDOVER_STRV,  /* char **, allocated */
	HANDOVER_BUF,   /* struct buf */
	HANDOVER_FD,    /* a descriptor that stays open */
};

struct handover_field {
	uint32_t tag; /* 1 to 99; nested records have tags from 100 on */
	enum handover_kind kind;
	size_t offset, size;
	const char *name;
	uint64_t max;
};

#define HANDOVER_NESTED 100U
/* Of one table: as many as there are tags. */
#define HANDOVER_FIELDS_MAX (HANDOVER_NESTED - 1)

/* HANDOVER(TAG, KIND, TYPE, MEMBER[, .max = N]) */
#define HANDOVER(t, k, type, member, ...)                                                          \
	{                                                                                          \
		.tag = (t), .kind = (k), .offset = offsetof(type, member),                         \
		.size = sizeof(((type *)NULL)->member), .name = #member, __VA_ARGS__               \
	}
#define HANDOVER_BOOL(t, type, member) HANDOVER(t, HANDOVER_UINT, type, member, .max = 1)
/* A member that is not handed over, with the reason; tools/handover asks for one or the other. */
#define HANDOVER_LEFT(type, member, why)                                                           \
	_Static_assert(sizeof(((type *)NULL)->member) > 0, #member ": " why)

/* ---- writing ---- */

struct handover_writer {
	struct buf data;
	int *fds; /* that the state names */
	size_t n_fds, fds_size;
};

#define HANDOVER_WRITER_INIT                                                                       \
	{                                                                                          \
		.data = BUF_INIT_LIMIT(HANDOVER_MAX)                                               \
	}

void handover_writer_done(struct handover_writer *w);
/* Each 0, -ENOMEM or -ENOBUFS. */
int handover_write(struct handover_writer *w, const struct handover_field *fields, size_t n,
		   const void *object) _must_check_;
/* A record within the record: *ret_at goes to handover_end(). */
int handover_begin(struct handover_writer *w, uint32_t tag, size_t *ret_at) _must_check_;
void handover_end(struct handover_writer *w, size_t at);
/* All of it as a sealed memfd (O_CLOEXEC), or a negative errno. */
int handover_seal(const struct handover_writer *w, struct error *err);

/* ---- reading ---- */

struct handover_reader {
	const uint8_t *data;
	size_t len;
	/* Only to see whether it can be read: descriptors are not open here, and read as -1. */
	bool trial;
};

/* Reads the memfd into `to`, which must live as long as the reader. ERROR_UNSUPPORTED for a version
 * of the format that this program does not know. */
int handover_open(int fd, bool trial, struct buf *to, struct handover_reader *ret,
		  struct error *err);

/* Called for each nested record; 0, a negative errno with err set, or -ENOENT without it: the tag
 * is not known. */
typedef int (*handover_nested_fn)(void *userdata, uint32_t tag, struct handover_reader *r,
				  struct error *err);

/* Reads one record into an initialised object, `what` for errors. What was read before an error is
 * the object's. */
int handover_read(struct handover_reader *r, const char *what, const struct handover_field *fields,
		  size_t n, void *object, handover_nested_fn nested, void *userdata,
		  struct error *err);

#endif
