/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_VM_TRIAL_H
#define NACRE_VM_TRIAL_H

#include <sys/types.h>

#include "base/log/error.h"
#include "vm/driver/driver.h"
#include "vm/probe/probe_record.h"

/*
 * The trial of hardware virtualization on a node: a guest of its own set is booted once for each
 * kernel of the host, each QEMU and each set, in the background, and the verdict is written to the
 * root directory (vm/probe/probe_record.h). A caller gets the verdict that is known by then, and
 * never waits.
 */

struct trial;

struct trial_config {
	struct loop *loop;
	const struct vm_driver *driver;
	int root_fd;       /* of the node: guest sets and the record */
	int run_fd;        /* a directory "trial" is made there while one is under way */
	const char *guest; /* the set; "": the default; copied */
	uid_t uid;         /* nobody else's */
	gid_t gid;
	bool never; /* nothing is tried, and nothing holds that was tried before */
};

/* Starts nothing, takes away what one has left that did not come to its end. */
int trial_new(struct trial **ret, const struct trial_config *config, struct error *err);
/* Ends a trial that is under way, and records nothing of it. */
struct trial *trial_free(struct trial *t);

/* The verdict that is known now. Where there is none, a trial begins, unless something is missing
 * for it or one is under way: the verdict is PROBE_UNTRIED then, and its text says which. The disk
 * is read at most once in TRIAL_LOOK. */
#define TRIAL_LOOK (2 * NSEC_PER_SEC)
const struct probe_record *trial_ask(struct trial *t);

#endif
