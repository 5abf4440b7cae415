/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_PROVIDER_VM_POOL_H
#define NACRE_PROVIDER_VM_POOL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/log/error.h"
#include "instance/provider.h"

/*
 * Machines made ahead of need (`vm.pool` of the configuration; none where it does not ask): of the
 * plain form, loaded from the template (vm_template.h), held where that waits for its node's word,
 * each with its network, its gate, its jail, its users and its leaves. The next instance that wants
 * such a machine takes one: it is told who it is, and let go on.
 *
 * Its memory is that of the template: it has not run, so it has drawn no random bytes, and it has
 * no identity yet. Its network, its gate with key and certificate, the token that its guest will
 * enrol with and its id, which the SPIFFE id is made of, are its own, and become those of the
 * instance. So do its directory and its group, which have the names of something made ahead
 * (instance/spare.h), and the titles of its processes: "pool/ID".
 *
 * It has no record, and is no instance before it is taken. A daemon that ends takes them away, one
 * that finds those of an earlier life does (instances_sweep()). They go with the template, too.
 *
 * One is made at a time, aside: not while a machine is on its way, and only where the node has
 * memory for the whole of it. One that dies is made again, after a pause that grows; where that
 * shows only when it has been taken, its instance goes on with another machine (vm_again.c).
 */

struct instance;
struct instances;
struct machine;
struct vm_pool;
struct vms;

/* From one that dies, or cannot be made, to the next: at first, and at last. */
#define VM_POOL_RETRY_FIRST (5 * NSEC_PER_SEC)
#define VM_POOL_RETRY_LAST (300 * NSEC_PER_SEC)
/* From one to the next, and behind a machine that has become ready, at least. */
#define VM_POOL_IDLE (1 * NSEC_PER_SEC)

/* Makes none. */
int vm_pool_new(struct vm_pool **ret, struct vms *v, struct error *err);
/* Ends all, and waits for that. NULL is taken. */
struct vm_pool *vm_pool_free(struct vm_pool *p);

/* In all of these p may be NULL. */

/* Where they are made. */
void vm_pool_open(struct vm_pool *p, const struct instances *all);
/* The template that they are made from has come, or has changed: the present machines are of no
 * use, and are ended. */
void vm_pool_renew(struct vm_pool *p);
/* Nobody waits for a machine any more: those that are missing are made in a while, not before one
 * of `took` behind it may have been put to use, too. */
void vm_pool_rest(struct vm_pool *p, nsec_t took);
/* One for an instance that is drawn: i->id, i->cgroup and i->own. False: it has to be made. */
bool vm_pool_take(struct vm_pool *p, struct instance *i);
/* It was not needed after all. */
void vm_pool_return(struct instance *i);
/* The instance is made of it, or of another one where it is dead: as provider_ops.create(). */
int vm_pool_give(struct instance *i, struct error *err);
/* The n-th of all that are there; NULL behind the last. */
const char *vm_pool_id(const struct vm_pool *p, size_t n);
void vm_pool_look(const struct vm_pool *p, struct provider_warm *ret);

#endif
