/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_SIGV4_H
#define NACRE_CLOUD_SIGV4_H

#include <stddef.h>

#include "base/time/clock.h"

/*
 * AWS Signature Version 4 of one request. Pure: the time comes from the caller.
 */

#define SIGV4_HEX_SIZE 65
#define SIGV4_TIME_SIZE 17 /* "20150830T123600Z" */

struct sigv4_header {
	const char *name; /* small letters */
	const char *value;
};

struct sigv4_request {
	const char *method, *path;
	const char *query;                  /* canonical already; or "" */
	const struct sigv4_header *headers; /* n_headers of them, sorted by name */
	size_t n_headers;
	const void *body;
	size_t body_len;
	char time[SIGV4_TIME_SIZE]; /* the value of the header x-amz-date */
	const char *region, *service;
	const char *key_id, *secret;
};

/* The form of the header x-amz-date. */
void sigv4_time(char ret[SIGV4_TIME_SIZE], nsec_t real);
/* The signature, and the value of the header Authorization (allocated). 0 or -ENOMEM. */
int sigv4_sign(const struct sigv4_request *q, char ret_signature[SIGV4_HEX_SIZE],
	       char **ret_authorization);

#endif
