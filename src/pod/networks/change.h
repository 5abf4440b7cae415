/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_CHANGE_H
#define NACRE_POD_CHANGE_H

#include <stdlib.h>

#include "base/log/error.h"
#include "network/wish.h"
#include "pod/workload/model.h"

/* A change of the networks of a pod that runs (pod/networks/connect.h). Private to this area. */

struct attachment;

struct plug_change {
	struct workload *workload;
	struct attachment *attachment; /* of a connect */
	char network[NETWORK_NAME_SIZE];
	bool stale;     /* the pod's settings were changed meanwhile */
	char *settings; /* of a connect, until they are those of the pod; else those that were */
	workload_fn done;
	void *userdata;
	struct error err; /* a connect is being undone for it */
};

/* Nobody is told. NULL is fine. */
static inline struct plug_change *plug_change_free(struct plug_change *c)
{
	if (c)
		free(c->settings);
	free(c);
	return NULL;
}

#endif
