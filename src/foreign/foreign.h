/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_FOREIGN_FOREIGN_H
#define NACRE_FOREIGN_FOREIGN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"
#include "vm/driver/driver.h"

/*
 * A machine with a system of the user's in it. There is no nacre inside: no keeper, no gate, no RPC
 * server. Its parts: the machine (vm/driver/driver.h), a process that reads its console and its
 * guest agent (vm/driver/relay.h), each with a user and a leaf of the machine's group for itself, a
 * directory "machines/ID" in the run directory with the sockets of both, and, where it has a
 * network, one of its own (net/port/segment.h), in which the node's end has SEGMENT_NODE_ADDRESS.
 *
 * Both processes outlive the daemon. Its disks are open files, which their maker has closed.
 */

struct foreign;
struct foreigns;
struct loop;
struct pool;

struct foreigns_config {
	struct loop *loop;
	struct pool *pool;
	const struct vm_driver *driver;
	const char *program; /* path of nacre-gate; copied */
	int run_fd;          /* "machines" is made in there */
	int cgroup_fd;       /* the node's base group: "vm.NAME" is made in there */
	bool nested;         /* guests may use hardware virtualization themselves */
	/* Whether hardware virtualization has booted a guest on this host. */
	bool (*is_fast)(void *userdata);
	void *userdata;
};

int foreigns_new(struct foreigns **ret, const struct foreigns_config *config, struct error *err);
/* Machines go on. */
struct foreigns *foreigns_free(struct foreigns *all);
/* Takes away directories and groups of machines that `known` does not know; by id, and by the name
 * of the group. At the start of a daemon, once all are taken up. */
void foreigns_sweep(struct foreigns *all, bool (*knows_id)(void *userdata, const char *id),
		    bool (*knows_name)(void *userdata, const char *name), void *userdata);

/* The specification of a machine; all of it lives, and its descriptors stay open, until on_up,
 * on_end or foreign_free(). */
struct foreign_spec {
	enum vm_firmware firmware;
	unsigned memory_mib, cpus;
	int kernel_fd, initrd_fd, vars_fd;
	const char *const *words;
	const struct vm_disk *disks;
	size_t n_disks;
	bool network;
};

#define FOREIGN_CONSOLE_MAX 320

/* Each comes from the loop, none within the call that causes it. */
struct foreign_events {
	/* It runs, as far as its monitor knows. */
	void (*on_up)(void *userdata, pid_t pid);
	/* Its processors stand still (an error of a disk), or go on. */
	void (*on_paused)(void *userdata, bool paused);
	/* Its monitor could not read or write one of its disks: once for each of those and of the
	 * two. What the guest reports is its own affair. */
	void (*on_io_error)(void *userdata, const struct vm_io_error *e);
	/* The machine is gone: the last event. console: the end of what it said, for a sentence. */
	void (*on_end)(void *userdata, const struct vm_end *end, const char *console);
};

/* title: its path; name: the last label of that. Where it fails, foreign_clean() is due. */
int foreign_start(struct foreign **ret, struct foreigns *all, const char *id, const char *title,
		  const struct foreign_spec *spec, const struct foreign_events *events,
		  void *userdata, struct error *err);
/* Takes up one that an earlier daemon has made: as after on_up. ERROR_UNAVAILABLE: it has ended. */
int foreign_adopt(struct foreign **ret, struct foreigns *all, const char *id, const char *title,
		  const struct foreign_events *events, void *userdata, struct error *err);
/* Lets go of it; it goes on. Takes NULL, returns NULL. */
struct foreign *foreign_free(struct foreign *f);

/* Asks it to power off, by its agent, and where none answers by the power button (ACPI); what the
 * guest makes of it is the guest's. */
void foreign_ask_to_end(struct foreign *f);
/* on_end follows, also of one that has not begun yet. */
void foreign_kill(struct foreign *f);

/* A connection to its console (vm/driver/relay.h). ERROR_UNAVAILABLE. */
int foreign_console(struct foreigns *all, const char *id, bool replay, struct error *err);

/* Kills what is left of one, and removes its directory and its group: 0, or -EBUSY for a moment.
 * Not while a struct foreign of it is there. */
int foreign_clean(struct foreigns *all, const char *id, const char *title);

/* "vm.NAME", below the node's group, and the leaf of its monitor in there. 0 or -E2BIG. */
int foreign_group(char *ret, size_t size, const char *title);
int foreign_monitor_group(char *ret, size_t size, const char *title);

#endif
