/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/networks/etc_wish.h"

#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"

struct etc_wish *etc_wish_free(struct etc_wish *w)
{
	if (!w)
		return NULL;
	free(w->hostname);
	strv_free(w->servers);
	strv_free(w->search);
	strv_free(w->options);
	strv_free(w->hosts);
	free(w);
	return NULL;
}

static bool etc_wish_copy_list(char ***to, char *const *from)
{
	*to = from ? strv_copy(from) : NULL;
	return !from || *to;
}

struct etc_wish *etc_wish_copy(const struct etc_wish *from)
{
	struct etc_wish *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->is_host = from->is_host;
	w->hostname = from->hostname ? strdup(from->hostname) : NULL;
	if ((from->hostname && !w->hostname) || !etc_wish_copy_list(&w->servers, from->servers) ||
	    !etc_wish_copy_list(&w->search, from->search) ||
	    !etc_wish_copy_list(&w->options, from->options) ||
	    !etc_wish_copy_list(&w->hosts, from->hosts))
		return etc_wish_free(w);
	return w;
}
