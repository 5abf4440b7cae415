/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CLOUDS_MODEL_H
#define NACRE_CLOUDS_MODEL_H

#include "base/memory/buf.h"
#include "base/memory/map.h"
#include "clouds/clouds.h"
#include "clouds/helper.h"
#include "loop/loop.h"
#include "store/root.h"

/* Private to this area. */

#define CLOUD_TAG_CLUSTER "nacre-cluster"
#define CLOUD_TAG_NODE "nacre-node"
#define CLOUD_TAG_VM "nacre-vm"
#define CLOUD_TAG_POD "nacre-instance"
#define CLOUD_TAG_WORKLOAD "nacre-pod"
#define CLOUD_TAG_LEASE "nacre-lease"
#define CLOUD_TOKEN_MAX 63

enum cloud_wanted { CLOUD_WANT_RUN, CLOUD_WANT_STOP, CLOUD_WANT_REMOVE, CLOUD_WANTED_COUNT };

/* Events of a machine. */
enum cloud_event {
	CLOUD_MADE,
	CLOUD_REFUSED,
	CLOUD_SEEN_PENDING,
	CLOUD_SEEN_RUNNING,
	CLOUD_SEEN_STOPPED,
	CLOUD_SEEN_GOING,
	CLOUD_SEEN_GONE,
	CLOUD_UNWANTED,
	CLOUD_EVENT_COUNT
};

/* Somebody who waits for the end of a machine, or of its record. */
struct cloud_waiter {
	struct list link;
	bool removal;
	cloud_done_fn done;
	void *userdata;
};

struct cloud_vm {
	struct list link; /* clouds.list */
	struct clouds *all;
	char id[ID_SIZE];
	char owner[ID_SIZE];    /* the instance that it is, by its tag; "": none */
	char workload[ID_SIZE]; /* likewise the workload */
	char name[NAME_LABEL_MAX + 1];
	struct buf words; /* of the create call, from verb on; as cloudmsg_read() takes them */
	struct cloudmsg request;
	char token[CLOUD_TOKEN_MAX + 1];
	char instance[64], address[CLOUDMSG_TEXT_MAX + 1], zone[CLOUDMSG_TEXT_MAX + 1];
	char reason[ERROR_TEXT_MAX];
	enum cloud_state state;
	enum cloud_wanted wanted;
	uint64_t created_at, ended_at;

	/* The record: at most one write is on its way. Further work waits until the disk has all of
	 * it. */
	bool recorded, writing, dirty, dropping;

	struct cloud_question *question; /* about this machine, on its way */
	struct loop_timer again;         /* armed: what failed is tried again then */
	bool waiting;
	nsec_t pause;
	struct loop_defer step;

	uint64_t lease;  /* its end, as the cloud has it: seconds; 0: none is known */
	uint64_t renews; /* its new end, once the call that renews it succeeds; 0: none is made */

	nsec_t since;         /* by the monotonic clock: taken up, or made */
	nsec_t terminated;    /* likewise: the cloud was told last; 0: not yet */
	bool seen;            /* in a list */
	bool tried;           /* a create call may have made it, whatever the next one says */
	bool doubt;           /* only a list can say whether it was made */
	bool elsewhere;       /* in another region than this node is configured for */
	uint64_t born, round; /* of lists: made in, seen last in */
	unsigned missed;      /* lists, one after the other, that did not have it */

	/* The callback of the caller that has asked for it, until it is made. */
	cloud_done_fn run_done;
	void *run_userdata;
	struct error failure;
	enum error_kind failure_kind; /* of the last refusal */
	struct list waiters;
};

struct cloud_watch {
	cloud_watch_fn fn; /* NULL: nobody watches */
	void *userdata;
};

struct clouds {
	struct clouds_config config;
	char *program;
	char node[ID_SIZE];
	struct cloud_helper *helper; /* NULL: no cloud is configured */
	struct list list;
	struct map by_token;
	size_t n;
	struct list calls;                       /* under way (calls.c) */
	struct cloud_watch instances, workloads; /* who watches machines that are such */
	size_t n_calls;

	struct loop_timer look;
	nsec_t look_due; /* by the monotonic clock; 0: nobody looks */
	struct cloud_question *looking;
	bool look_soon; /* there was a reason while one was on its way */
	bool look_failed;
	uint64_t round;

	struct cloud_question *renewing; /* leases (lease.c) */
	nsec_t renewed;                  /* by the monotonic clock: the last such call */
	bool lease_failed;
};

/* set.c */

/* Between two looks where a machine comes or goes, unless settings.poll is shorter. */
#define CLOUD_LOOK_SOON (2 * NSEC_PER_SEC)

static inline bool cloud_vm_has_ended(const struct cloud_vm *vm)
{
	return vm->state == CLOUD_EXITED || vm->state == CLOUD_FAILED;
}

/* The states of all machines are looked at, now or when it is time. */
void clouds_look(struct clouds *all, bool soon);
/* A look in so long; one that is due before stays so. NSEC_NEVER: none. */
void clouds_arm(struct clouds *all, nsec_t pause);
/* How long nobody need look; NSEC_NEVER: there is nothing to be seen. */
nsec_t clouds_pause(const struct clouds *all);
/* A list is to show it. */
bool cloud_vm_is_watched(const struct cloud_vm *vm);
/* A list's tags of a node. -ENOMEM. */
int clouds_put_tags(struct clouds *all, struct buf *b, const char *node);

/* lease.c */

/* The tag with a new lease. -ENOMEM. */
int clouds_put_lease(const struct clouds *all, struct buf *b);
/* Of a machine that a list shows; 0: it has none. */
uint64_t cloud_lease_of(const struct cloudmsg *m);
/* Renews what is due, unless that was just done: after each list. */
void clouds_renew(struct clouds *all);

/* calls.c: waiters are told err. */
void clouds_end_calls(struct clouds *all, const struct error *err);

/* vm.c */

/* One with its words (taken over), CREATING, not in any list yet; NULL without memory. */
struct cloud_vm *cloud_vm_new(struct clouds *all, struct buf *words);
struct cloud_vm *cloud_vm_free(struct cloud_vm *vm);
void cloud_vm_save(struct cloud_vm *vm);
/* Everybody who waits for it hears err. */
void cloud_vm_give_up(struct cloud_vm *vm, const struct error *err);
/* The one writer of the state. */
void cloud_vm_on(struct cloud_vm *vm, enum cloud_event e);
/* Takes its entry in a list. */
void cloud_vm_seen(struct cloud_vm *vm, const struct cloudmsg *m);
/* A list that was begun after it was made does not have it. */
void cloud_vm_missed(struct cloud_vm *vm);
/* From a record; ERROR_FAULT where a word is unknown. */
int cloud_vm_read(struct clouds *all, const struct root_cloud_vm *record, struct error *err);

#endif
