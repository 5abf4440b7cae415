/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_LIST_CALL_H
#define NACRE_RUNTIME_LIST_CALL_H

#include "rpc/server/server.h"

/*
 * WorkloadService.List, and what the other lists share with it. A page is answered from memory in
 * one turn of the loop. Its token names the last object of the page, and the question: an object
 * that is there all the time is in exactly one page, whatever comes and goes meanwhile.
 */

struct shown_place;

/* In objects, where a client does not say, and at most. */
#define LIST_PAGE_DEFAULT 1000
#define LIST_PAGE_MAX 10000
/* A page ends early behind this many bytes: clients of many makers take no more than 4 MiB. */
#define LIST_PAGE_BYTES ((size_t)3 * 1024 * 1024)

/* For rpc_method. */
void list_call(struct rpc_call *call, const ProtobufCMessage *request, void *userdata);

/* The number of objects in a page, for page_size. ERROR_INVALID names it. */
int list_page_size(uint32_t asked, size_t *ret, struct error *err);

#define LIST_TOKEN_SIZE 49
/* `question`: a hash of what was asked. */
void list_token_write(char to[LIST_TOKEN_SIZE], uint64_t question, const struct shown_place *p);
/* "" is before the first. ERROR_INVALID names page_token: it is none of ours, or of another
 * question. */
int list_token_read(const char *token, uint64_t question, struct shown_place *ret,
		    struct error *err);

#endif
