/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_STORAGE_CDI_CALL_H
#define NACRE_RUNTIME_STORAGE_CDI_CALL_H

#include <stddef.h>

#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "base/memory/list.h"
#include "loop/loop.h"

/*
 * Devices by the names of their vendors (Container Device Interface): the files of the vendors are
 * read on a thread, since they may lie on a file system that does not answer, and a helper without
 * privilege says what a container gets with them (image/helper/profile.h). The call waits for that
 * so long. A value in the service.
 */

struct arena;
struct image_store;
struct pool;
struct rpc_call;

#define CDI_PATIENCE (10 * NSEC_PER_SEC)
#define CDI_THREADS 4
#define CDI_CALLS_MAX 64
#define CDI_NAMES_MAX 64 /* of a container */
#define CDI_FILE_MAX ((size_t)4 << 20)

struct cdi_calls {
	struct loop *loop;
	struct pool *pool;
	struct image_store *images;
	const char *dirs; /* absolute, parted by ':', the last one counts most; the caller's */
	struct list list;
	size_t n;
};

int cdi_calls_init(struct cdi_calls *all, struct loop *l, struct image_store *images,
		   const char *dirs);
/* Waits for no thread; before the images go. */
void cdi_calls_done(struct cdi_calls *all);

/* The changes to a container that its CDI devices ask for, in the types of the own API. */
struct cdi_changes {
	char **env;
	Aurae__Runtime__V0__Device **devices;
	Aurae__Runtime__V0__Mount **mounts;
	uint32_t *groups;
	size_t n_env, n_devices, n_mounts, n_groups;
};

/*
 * Looks the devices up, at least one. go_on is called later with what they change, in the arena of
 * the call; where that fails, takes too long, or the call is cancelled, the call has been ended
 * instead. Errors name the field. ERROR_EXHAUSTED: too many calls wait.
 */
int cdi_call_start(struct cdi_calls *all, struct rpc_call *call, const char *field,
		   char *const *names, size_t n,
		   void (*go_on)(void *userdata, const struct cdi_changes *changes), void *userdata,
		   struct error *err);

/* The same for who is no call: the changes are in the arena, which lasts until one of both is
 * called: `fail` in the place of go_on where the call would have been failed. Neither is, if
 * cdi_calls_done() comes first. */
struct cdi_waiter {
	void (*go_on)(void *userdata, const struct cdi_changes *changes);
	void (*fail)(void *userdata, const struct error *err);
	void *userdata;
};
int cdi_lookup_start(struct cdi_calls *all, struct arena *a, const char *field, char *const *names,
		     size_t n, const struct cdi_waiter *waiter, struct error *err);

/* Adds it to a container, marked as its part: a variable takes the place of one of the same name.
 * -ENOMEM. */
int cdi_changes_add(struct arena *a, const struct cdi_changes *changes,
		    Aurae__Runtime__V0__Container *to, struct error *err);

#endif
