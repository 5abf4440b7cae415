/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_INSTANCE_PROVIDER_H
#define NACRE_INSTANCE_PROVIDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/log/error.h"
#include "base/time/clock.h"
#include "instance/peer.h"

/*
 * A kind of wall, as one table of functions: everything that instances of different kinds differ
 * in beside their abilities (model.h). It is asked for those that this daemon makes itself
 * (instance_is_own()); a deeper one is made by the keeper above it.
 *
 * How a keeper is spoken to, the states, the record, who waits, the directory below the run
 * directory and the group in the cgroup hierarchy are the same for all kinds.
 */

struct instance;
struct instance_machine;
struct instance_size;
struct provider;

/* Made ahead of need, of one kind. */
struct provider_warm {
	unsigned wanted; /* as the configuration asks for; 0: none */
	unsigned waiting;
	uint64_t memory;             /* bytes of the node's that those take */
	char reason[ERROR_TEXT_MAX]; /* why some are missing; "": it is a matter of time */
};

struct provider_ops {
	nsec_t hello_limit; /* from create() to the answer to hello */
	/* Why it has come to nothing where that limit passes; NULL: "its keeper did not answer". */
	const char *no_answer;
	nsec_t stop_grace; /* from the word that it shall end to kill() */
	/* Of one that lives: the leaves of its group that have processes, and the sockets in its
	 * directory. Each ends with NULL. */
	const char *const *leaves;
	const char *const *more_leaves; /* that it may have; NULL: none */
	const char *const *sockets;

	/* Changes nothing. 0, or ERROR_PRECONDITION and why none can be made on this host. */
	int (*plan)(struct provider *p, struct error *err);
	/* The same of one in an instance of this kind, where that can have some: as what size, for
	 * the wish, within what `around` has. NULL: none can. Its disk for the keeper of `around`
	 * as a descriptor, or ERROR_PRECONDITION where nobody has made it. */
	int (*plan_nested)(struct provider *p, const struct instance *around,
			   const struct instance_size *wish, struct instance_machine *ret,
			   struct error *err);
	int (*open_tools)(struct provider *p, struct error *err);
	/* Whether one is made where nobody asked for a kind; ret says why, or why not, in a
	 * sentence. NULL: it is what there is where no other kind is preferred. */
	bool (*is_preferred)(struct provider *p, char *ret, size_t size);

	/* Its id (i->id), before anybody knows of it. Where one was made ahead of need it is that:
	 * i->ahead, its state, its group and its process are set then. 0 or a negative errno. */
	int (*draw)(struct instance *i);
	/* It was drawn, and will not be: nothing of it is left. */
	void (*withdraw)(struct instance *i);
	/* The ids of those that were made ahead, whose directories and groups are named as those of
	 * instance/spare.h; NULL behind the last. NULL: none, or spare.h has them. */
	const char *(*ahead)(struct provider *p, size_t n);
	/* Statistics of the warm pool, for display. NULL: none are told. */
	void (*look)(struct provider *p, struct provider_warm *ret);
	/* Makes it, unless it was made ahead: directory, group and processes. Where that takes a
	 * while it returns 1, and tells the end of it later: by instance_made() (link.h), or by
	 * instance_break() (end.h), also for what fails behind that.
	 *
	 * Once it is made, i->pid is what the record is to find it again by, and i->pidfd, which
	 * the provider watches, is the process that it ends with: instance_ended() then, with the
	 * reason. */
	int (*create)(struct instance *i, struct error *err);
	/* Once it was made: connects to its keeper. ret_fd_fd: the channel for descriptors; -1
	 * where there is none. ERROR_UNAVAILABLE where nobody listens. */
	int (*connect)(struct instance *i, int *ret_rpc_fd, int *ret_fd_fd, struct error *err);
	/* From the record of an earlier life, up to its open peer. ERROR_UNAVAILABLE: it has ended,
	 * and err says how. */
	int (*adopt)(struct instance *i, pid_t pid, unsigned long long start_time,
		     struct error *err);
	/* Only where no descriptor reaches it: the file becomes a disk of the instance, read-only,
	 * and one for all that name it the same, until drop_disk() was called for each. done
	 * follows where this returns 0, not before that, and not once the daemon ends. */
	int (*put_disk)(struct instance *i, const char *name, int fd,
			char ret_serial[INSTANCE_SERIAL_SIZE], peer_done_fn done, void *userdata,
			struct error *err);
	/* Likewise, and in the turn in which it was adopted: one user more of what was put in an
	 * earlier life. One that nobody claims is dropped. */
	int (*claim_disk)(struct instance *i, const char *name, struct error *err);
	/* One user less of what was put, once that is done, or claimed. */
	void (*drop_disk)(struct instance *i, const char *name);
	/* Its keeper has just been asked to end it: what else is to be tried before stop_grace is
	 * over. NULL: nothing. */
	void (*stopping)(struct instance *i);
	/* Its keeper, which was asked to end it, has closed the connection. NULL: the end of its
	 * process tells. */
	void (*left)(struct instance *i);
	/* Likewise, of one that was made with `volumes`, else ERROR_PRECONDITION: a detached mount,
	 * taken over also where this fails, becomes a volume that its keeper finds by the name, and
	 * goes with the instance. read_only: also where the instance does not obey. */
	int (*put_volume)(struct instance *i, const char *name, int mount_fd, bool read_only,
			  peer_done_fn done, void *userdata, struct error *err);
	/* It is not used in there any more, once put_volume() was done. NULL: it goes with the
	 * instance. */
	void (*drop_volume)(struct instance *i, const char *name);
	/* Now, and whatever it does: the end of i->pidfd follows, unless that is -1. */
	void (*kill)(struct instance *i);
	/* It has ended, or the daemon does: closes what create() and adopt() keep in i->own. NULL:
	 * nothing. */
	void (*close)(struct instance *i);
};

struct provider {
	const struct provider_ops *ops;
};

#endif
