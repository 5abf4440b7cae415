/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_IMAGE_TOLD_H
#define NACRE_RUNTIME_IMAGE_TOLD_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

struct image;
struct image_service;
struct rpc_call;

/* How the calls that bring images end: with the image as their last message and as an event. */
struct image_told {
	const char *state;         /* of the event: "pulled" */
	ProtobufCMessage *message; /* the last */
	Nacre__V1__Image **slot;   /* its member for the image */
};

/* An image, without ending the call. An error is for rpc_call_fail(). */
int image_told_one(struct rpc_call *call, const struct image_service *s, const struct image *image,
		   const struct image_told *how, struct error *err);
/* Ends the call, with err where there is no image. */
void image_told(struct rpc_call *call, const struct image_service *s, const struct image *image,
		const struct error *err, const struct image_told *how);

#endif
