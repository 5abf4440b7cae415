/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_CNI_RESULT_H
#define NACRE_WIRE_CNI_RESULT_H

#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "wire/document/jsonread.h"

/*
 * The answer of a CNI plugin: a result (0.3.0 to 1.1.0), or an error.
 */

#define CNI_RESULT_MAX ((size_t)1 << 20) /* bytes of an answer */
#define CNI_INTERFACES_MAX 16
#define CNI_ADDRESSES_MAX 64
#define CNI_ROUTES_MAX 256

/* Codes of an error that mean something to a runtime. */
enum cni_code { CNI_CODE_UNKNOWN_CONTAINER = 3, CNI_CODE_TRY_LATER = 11 };

struct cni_address {
	const char *text; /* without its length, as inet_ntop() has it */
	unsigned length;
	int family; /* AF_INET or AF_INET6 */
};

/* In the arena. */
struct cni_result {
	const struct json_value *tree;                   /* the whole, for prevResult */
	const char *mac;                                 /* of the pod's interface; "": not told */
	uint32_t mtu;                                    /* likewise; 0: not told */
	struct cni_address addresses[CNI_ADDRESSES_MAX]; /* of that interface */
	size_t n_addresses;
	const char *routes[CNI_ROUTES_MAX]; /* their destinations */
	size_t n_routes;
};

/* The interface of that name in the pod. ERROR_INVALID with the member, or -ENOMEM. A result
 * without an address is one. */
int cni_result_parse(struct cni_result *ret, struct arena *arena, const void *data, size_t len,
		     const char *interface, struct error *err);

#define CNI_ERROR_TEXT_MAX 320

/* The error of a plugin: "code 7: msg; details", all of it fit for a terminal; and the code.
 * -EBADMSG: that is no error object. */
int cni_error_parse(char text[CNI_ERROR_TEXT_MAX], unsigned *ret_code, const void *data,
		    size_t len);

#endif
