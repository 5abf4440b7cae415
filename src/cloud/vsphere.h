/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUD_VSPHERE_H
#define NACRE_CLOUD_VSPHERE_H

#include "cloud/vsphere_call.h"

/*
 * VMware's vSphere as one of the clouds (cloud/provider.h): machines are clones of a template in a
 * vCenter. A machine's id is its instanceUuid, which is drawn from the token of the call that makes
 * it, and it is called there by that token: a call that is made again finds what the first one has
 * made by the one, and while that is being made the other is taken. Tags are settings of the
 * machine (extraConfig) that the clone has from its first moment, "nacre.node" for "nacre-node". A
 * guest reads and writes only those that begin with "guestinfo.", so it cannot change whose it is.
 */

/* ---- pure, for tests ---- */

#define VSPHERE_UUID_SIZE 37
#define VSPHERE_PREFIX 8 /* digits of an instanceUuid that are the cluster's */

/* The instanceUuid of a token: the same one each time; its first digits are the cluster's. */
void vsphere_uuid(const char *cluster, const char *token, char ret[VSPHERE_UUID_SIZE]);
bool vsphere_is_uuid(const char *id);
/* Of the tags of a request; or "". */
const char *vsphere_cluster_of(const struct cloudmsg *q);
/* A path of vCenter's inventory: "/DATACENTER/KIND/NAME", where NAME may have folders; one that
 * begins with '/' stands for itself. "%20" is a blank. -ENAMETOOLONG. */
int vsphere_path(char *to, size_t size, const char *datacenter, const char *kind, const char *name);
/* The spec of CloneVM_Task, in b, with a NUL. The ids are those of pool and datastore ("": the
 * template's own). ERROR_INVALID. */
int vsphere_put_clone(struct buf *b, const struct cloudmsg *q, const char *pool,
		      const char *datastore, struct error *err);
/* One setting that is a tag ("KEY=VALUE"). */
int vsphere_put_tag(struct buf *b, const char *tag);
/* The value of a setting among those of config.extraConfig (NULL is fine), or "". */
const char *vsphere_option(const struct xml_node *options, const char *key);
/* A machine from its properties. ERROR_NOT_FOUND where it is none of ours: it has no token, or is
 * a copy of one that has. ERROR_INVALID where a text is too long. */
int vsphere_read_machine(struct cloud_machine *ret, const struct xml_node *object,
			 struct arena *arena, struct error *err);

#endif
