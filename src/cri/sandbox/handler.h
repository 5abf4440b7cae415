/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_HANDLER_H
#define NACRE_CRI_HANDLER_H

#include "base/log/error.h"
#include "instance/model.h"

/*
 * Runtime handlers: the names by which Kubernetes chooses how a pod is isolated (RuntimeClass). ""
 * is the default one, which "cell" names too; "vm" is a microVM, "ec2", "gce" and "vsphere" are
 * machines in a cloud.
 */

struct cri_handler {
	const char *name;
	enum instance_kind kind;
};

extern const struct cri_handler cri_handlers[];
extern const size_t cri_n_handlers;

/* ERROR_INVALID names the field. */
int cri_handler_find(const char *field, const char *name, const struct cri_handler **ret,
		     struct error *err);
/* Whether this host can make such pods; ERROR_PRECONDITION says why not. */
int cri_handler_check(const struct cri_handler *h, const struct instances *instances,
		      struct error *err);

#endif
