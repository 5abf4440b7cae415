/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_POD_SHARES_H
#define NACRE_POD_SHARES_H

#include <sys/types.h>

#include "base/log/error.h"
#include "base/memory/list.h"
#include "cell/spec.h"

/*
 * The directories and files of the node that a pod with a kernel of its own mounts: each once,
 * however many of its containers mount it, under a name that its keeper finds it by. It is
 * read-only on the node's side where every one of them mounts it so; else the guest's kernel sees
 * to those that do. A machine in a cloud is given the content of what is read-only, and has volumes
 * of its own (isolate/mount/scratch_dir.h). Private to this area.
 *
 * Containers of a sandbox come later: the first one decides how the node's side is, and one that
 * wants to write to what is read-only there gets a share of its own. A share of a sandbox goes when
 * none of its containers has it (pod_container.shares), but for one that changes as a whole, which
 * stays for the next one, and the machine's own.
 */

struct mirror;
struct pod_container;
struct pod_mount_spec;
struct workload;
struct workloads_config;

#define POD_SHARE_NAME_SIZE (CONTAINER_SHARE_MAX + 1)

struct pod_share {
	struct list link; /* workload.shares */
	struct workload *workload;
	char name[POD_SHARE_NAME_SIZE];
	char *source; /* its name: it is one of the machine's own */
	int fd;       /* a detached mount, until the instance has it */
	bool read_only, scratch;
	bool one_file; /* a regular file, which a machine in a cloud is given with its content */
	dev_t dev;
	ino_t ino;
	/* pod/storage/mirror.h; NULL: it is a volume of its machine's file system, or not decided
	 * yet. */
	struct mirror *mirror;
	bool deciding; /* the mirror has not said whether it is one */
	/* Of a sandbox: its instance was asked to have it, and has it; and the answer is on its
	 * way. */
	bool asked, there, pending;
	bool again; /* of an earlier life: dev and ino are not known */
	const struct workloads_config *config;
};

/* Among those of its workload, with its name in *to. 0, or -ENOMEM or what a descriptor failed by.
 */
int shares_take(struct pod_container *c, const struct pod_mount_spec *from,
		struct container_mount *to, struct error *err);
/* Likewise what no other container has: a read-only mount of an image, which is taken over also
 * where this fails. */
int shares_take_image(struct pod_container *c, const struct pod_mount_spec *from, int fd,
		      const char *id, struct container_mount *to, struct error *err);
/* Whether a container has it. */
bool shares_has(const struct pod_container *c, const struct pod_share *s);
/* One of an earlier life, of which nothing is known but name and source. NULL without memory. */
struct pod_share *shares_again(struct workload *w, const char *name, const char *source);
/* One of an earlier life that its machine has. NULL without memory. */
struct pod_share *shares_recall(struct workload *w, const char *name, const char *source,
				bool read_only, dev_t dev, ino_t ino);
struct pod_share *share_free(struct pod_share *s);
void shares_free(struct workload *w);

#endif
