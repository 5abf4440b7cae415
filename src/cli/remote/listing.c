/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/remote/listing.h"

#include <string.h>

#include "base/text/str.h"
#include "cli/output/alloc.h"
#include "cli/remote/client.h"

/* Moves what the page has behind what `all` has, and its token in the place of that of `all`. */
static void listing_add(Nacre__V1__ListResponse *all, Nacre__V1__ListResponse *page)
{
	char *token = all->next_page_token;

	all->workloads = xrealloc(all->workloads, all->n_workloads + page->n_workloads,
				  sizeof(*all->workloads));
	memcpy(all->workloads + all->n_workloads, page->workloads,
	       page->n_workloads * sizeof(*page->workloads));
	all->n_workloads += page->n_workloads;
	page->n_workloads = 0;
	all->next_page_token = page->next_page_token;
	page->next_page_token = token;
}

Nacre__V1__ListResponse *listing_ask(struct client *client, Nacre__V1__ListRequest *request,
				     struct error *err)
{
	_cleanup_message_ Nacre__V1__ListResponse *all = NULL;

	for (;;) {
		_cleanup_message_ Nacre__V1__ListResponse *page = NULL;

		page = client_ask(client, "/nacre.v1.WorkloadService/List", &request->base,
				  &nacre__v1__list_response__descriptor, err);
		if (!page)
			return NULL;
		if (!all)
			all = TAKE_PTR(page);
		else if (page->n_workloads > 0)
			listing_add(all, page);
		else
			return TAKE_PTR(all);
		if (str_empty(all->next_page_token))
			return TAKE_PTR(all);
		request->page_token = all->next_page_token;
	}
}

static void listing_add_images(Nacre__V1__ListImagesResponse *all,
			       Nacre__V1__ListImagesResponse *page)
{
	char *token = all->next_page_token;

	all->images = xrealloc(all->images, all->n_images + page->n_images, sizeof(*all->images));
	memcpy(all->images + all->n_images, page->images, page->n_images * sizeof(*page->images));
	all->n_images += page->n_images;
	page->n_images = 0;
	all->next_page_token = page->next_page_token;
	page->next_page_token = token;
}

Nacre__V1__ListImagesResponse *listing_ask_images(struct client *client,
						  Nacre__V1__ListImagesRequest *request,
						  struct error *err)
{
	_cleanup_message_ Nacre__V1__ListImagesResponse *all = NULL;

	for (;;) {
		_cleanup_message_ Nacre__V1__ListImagesResponse *page = NULL;

		page = client_ask(client, "/nacre.v1.ImageService/List", &request->base,
				  &nacre__v1__list_images_response__descriptor, err);
		if (!page)
			return NULL;
		if (!all)
			all = TAKE_PTR(page);
		else if (page->n_images > 0)
			listing_add_images(all, page);
		else
			return TAKE_PTR(all);
		if (str_empty(all->next_page_token))
			return TAKE_PTR(all);
		request->page_token = all->next_page_token;
	}
}
