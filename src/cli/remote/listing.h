/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLI_LISTING_H
#define NACRE_CLI_LISTING_H

#include "api/nacre.pb-c.h"
#include "base/log/error.h"

struct client;

/* WorkloadService.List, page after page, as one answer. NULL with err. The request's page_token is
 * used up. */
Nacre__V1__ListResponse *listing_ask(struct client *client, Nacre__V1__ListRequest *request,
				     struct error *err);
/* ImageService.List likewise. */
Nacre__V1__ListImagesResponse *listing_ask_images(struct client *client,
						  Nacre__V1__ListImagesRequest *request,
						  struct error *err);

#endif
