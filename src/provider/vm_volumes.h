/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_VOLUMES_H
#define NACRE_PROVIDER_VM_VOLUMES_H

#include "base/memory/list.h"
#include "instance/peer.h"
#include "vm/disk/share.h"

/*
 * The process that serves the volumes of one machine (vm/disk/share.h), as a part of it; private to
 * this area. It is found again by its leaf of the instance's group, in which it is alone, so that
 * no record need name it. It ends when its machine does; where it ends before, the machine is of no
 * use any more.
 */

#define VM_VOLUMES_LEAF "share"
/* The machine whose end was the cause has ended within this. */
#define VM_VOLUMES_PATIENCE (500 * NSEC_PER_MSEC)

struct vm_volumes {
	struct share share;
	bool running;
	char end[ERROR_TEXT_MAX]; /* why it has ended */
	struct loop_timer patience;
	struct list puts; /* struct vm_volume: mounts on their way */
	/* It has ended, and not because its machine has, as far as it can be known. May stop(). */
	void (*on_lost)(struct vm_volumes *v, const char *reason);
	/* Nothing of it is left: neither the process nor a mount on its way. May done(). */
	void (*on_idle)(struct vm_volumes *v);
};

void vm_volumes_init(struct vm_volumes *v, struct loop *loop,
		     void (*on_lost)(struct vm_volumes *v, const char *reason),
		     void (*on_idle)(struct vm_volumes *v));
/* config without the leaf, which is made in group_fd. *ret_fd: for the machine. */
int vm_volumes_start(struct vm_volumes *v, const struct share_config *config, int group_fd,
		     int *ret_fd, struct error *err);
/* Of a machine that is taken up: 0 also where it was made without. ERROR_UNAVAILABLE: it has ended,
 * and its machine has not. */
int vm_volumes_adopt(struct vm_volumes *v, const struct share_config *config, int group_fd,
		     struct error *err);
/* provider.h, put_volume(). */
int vm_volumes_put(struct vm_volumes *v, const char *name, int mount_fd, bool read_only,
		   peer_done_fn done, void *userdata, struct error *err);
/* provider.h, drop_volume(). */
void vm_volumes_drop(struct vm_volumes *v, const char *name);
static inline bool vm_volumes_are_idle(const struct vm_volumes *v)
{
	return !v->running && list_empty(&v->puts);
}
/* Its machine has ended: it will, and that needs no reason. */
void vm_volumes_rest(struct vm_volumes *v);
/* Lets go: it runs on, and nobody is called any more. Twice is fine. */
void vm_volumes_done(struct vm_volumes *v);

#endif
