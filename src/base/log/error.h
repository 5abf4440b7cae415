/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_BASE_ERROR_H
#define NACRE_BASE_ERROR_H

#include "base/macros.h"

/*
 * An error, for a program (kind, code) and for a person (text). It lives in the caller's frame:
 * nothing to free, no allocation, so it works while memory is out, and it crosses sockets as it is.
 *
 * The origin says what it tried and on what; callers that know more put it in front with
 * error_wrap(). Nobody logs an error that it also returns.
 *
 * Every function here accepts err == NULL and then only passes the number on.
 */

#define ERROR_TEXT_MAX 512
#define ERROR_FIELD_MAX 64

/*
 * The kind of an error, by which a caller can act. The kind, not the errno, becomes the gRPC
 * status: an ENOENT of a mount deep below is a fault of ours and not the client's NOT_FOUND. For
 * ERROR_FAULT the errno still tells exhaustion (ENOMEM, ENOSPC, EMFILE, ...) from other faults.
 */
enum error_kind {
	ERROR_FAULT,        /* ours, or the machine's: the default of error_set() */
	ERROR_INVALID,      /* the request is wrong whatever the state: names the field */
	ERROR_PRECONDITION, /* the request is right, the state (or this host) does not allow it */
	ERROR_NOT_FOUND,
	ERROR_EXISTS,
	ERROR_UNAVAILABLE, /* try again later */
	ERROR_EXHAUSTED,   /* a named limit is reached */
	ERROR_UNSUPPORTED, /* this build or this host does not do that */
	ERROR_DENIED,
	ERROR_CANCELLED,
	ERROR_DEADLINE,
	ERROR_ABORTED,         /* overtaken by something else, such as a removal */
	ERROR_RANGE,           /* right in itself, but past what there is (any more) */
	ERROR_UNAUTHENTICATED, /* credentials are missing, or were not accepted */
	ERROR_UNKNOWN,         /* for a client that looks at the first word of the text alone */
	ERROR_KIND_COUNT
};

struct error {
	enum error_kind kind;
	int code; /* a negative errno, 0 while nothing happened */
	char text[ERROR_TEXT_MAX];
	char field[ERROR_FIELD_MAX]; /* of the request that is to blame, "containers[1].image"; or
					"" */
};

#define ERROR_INIT                                                                                 \
	{                                                                                          \
		.kind = ERROR_FAULT, .code = 0, .text = "", .field = ""                            \
	}

/* Control characters, and bytes that are no UTF-8, become '?' in every text. */

/*
 * A failure of a call on the machine: writes "TEXT: strerror(r)". Returns r, which is a negative
 * errno.
 */
int error_set(struct error *err, int r, const char *fmt, ...) _printf_(3, 4);

/*
 * A refusal: the text stands alone, and a person can act on it. Returns the negative errno that
 * stands for the kind (ERROR_INVALID: -EINVAL, ERROR_NOT_FOUND: -ENOENT, ...).
 */
int error_refuse(struct error *err, enum error_kind kind, const char *fmt, ...) _printf_(3, 4);

/* The same where one field of a request is to blame: `field` names it, and the text is "FIELD:
 * TEXT".
 */
int error_field(struct error *err, enum error_kind kind, const char *field, const char *fmt, ...)
	_printf_(4, 5);

/* Puts "TEXT: " in front of what is there; the field stays. Returns err->code, or r where err is
 * NULL. */
int error_wrap(struct error *err, int r, const char *fmt, ...) _printf_(3, 4);

/* Puts "FIELD: " in front of what is there: that field is to blame. Returns as error_wrap(). */
int error_wrap_field(struct error *err, int r, const char *field);

/* The field has another name in the message that the caller knows: also where the text begins with
 * it. */
void error_rename_field(struct error *err, const char *field);

/* Copies the error `from` (may be NULL) into `to`; returns its code. */
int error_copy(struct error *to, const struct error *from);

/* The text, or the name of the errno where no text was set; never empty. */
const char *error_text(const struct error *err);

#ifdef __clang_analyzer__
/* The analyser does not look into other files: it is told here that these are negative. */
#define error_set(err, r, ...) ((void)(error_set)((err), (r), __VA_ARGS__), (r))
#define error_refuse(err, kind, ...) ((void)(error_refuse)((err), (kind), __VA_ARGS__), -1)
#define error_wrap(err, r, ...) ((void)(error_wrap)((err), (r), __VA_ARGS__), (r))
#define error_field(err, kind, ...) ((void)(error_field)((err), (kind), __VA_ARGS__), -1)
#define error_wrap_field(err, r, field) ((void)(error_wrap_field)((err), (r), (field)), (r))
#endif

#endif
