/* SPDX-License-Identifier: Apache-2.0 */
#include "rpc/server/peer.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text/str.h"

int rpc_remote_new(struct rpc_remote **ret, const char *id, const char *address)
{
	struct rpc_remote *r = calloc(1, sizeof(*r));

	if (!r)
		return -ENOMEM;
	r->refs = 1;
	r->id = strdup(id);
	r->address = strdup(address);
	if (!r->id || !r->address) {
		(void)rpc_remote_unref(r);
		return -ENOMEM;
	}
	*ret = r;
	return 0;
}

struct rpc_remote *rpc_remote_ref(struct rpc_remote *r)
{
	if (r)
		r->refs++;
	return r;
}

struct rpc_remote *rpc_remote_unref(struct rpc_remote *r)
{
	if (!r || --r->refs > 0)
		return NULL;
	free(r->id);
	free(r->address);
	free(r);
	return NULL;
}
