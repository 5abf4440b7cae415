/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_ISOLATE_DEVICES_H
#define NACRE_ISOLATE_DEVICES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/log/error.h"

/*
 * Which devices the processes of a cgroup may open and make, whatever their capabilities: a program
 * of the kernel (BPF_PROG_TYPE_CGROUP_DEVICE) on the group. It works on every group of version 2,
 * also where no controller is there. All of it needs CAP_SYS_ADMIN in the host's user namespace.
 *
 * The rules are read in order, and a later one overrides an earlier one for each of read, write and
 * mknod alone; what no rule names is denied. So an open for reading and writing needs both. The
 * programs of the groups above have their say as well.
 */

#define DEVICE_READ 1U
#define DEVICE_WRITE 2U
#define DEVICE_MKNOD 4U
#define DEVICE_ALL 7U

#define DEVICE_ANY (-1) /* every major or minor number */
#define DEVICE_NUMBER_MAX 0xffffffffLL

#define DEVICE_RULES_MAX 1024

struct device_rule {
	bool allow;
	char type; /* 'c', 'b'; 'a': both, and then with every number */
	int64_t major, minor;
	unsigned access; /* DEVICE_READ, ...; not 0 */
};

/* The devices that every container gets: null, zero, full, random, urandom, tty, console, ptmx,
 * pts. */
extern const struct device_rule device_rules_default[];
extern const size_t device_rules_default_count;

/* Whether the rules make sense. Pure. ERROR_INVALID, as "[I]: ...". */
int devices_check(const struct device_rule *rules, size_t n, struct error *err);

/* The program as a descriptor: for as many groups as one likes. ERROR_INVALID as devices_check(),
 * ERROR_PRECONDITION where the host does not let us. */
int devices_load(const struct device_rule *rules, size_t n, struct error *err);

/* Puts a program of devices_load() on the group, in the place of the one that devices_attach() put
 * there before; programs of others stay. A failure leaves the group as it was. */
int devices_attach(int cgroup_fd, int program_fd, struct error *err);

/* The program of devices_attach() that is on the group, or -ENOENT. */
int devices_present(int cgroup_fd);
/* Takes it off again. 0 or a negative errno. */
int devices_detach(int cgroup_fd, int program_fd);

/* The devices that a container was given beside those of every one, put behind the n rules that are
 * there: the device that fd is of, or those in the directory that it is of and below. Other files
 * are passed over. ERROR_EXHAUSTED past DEVICE_RULES_MAX. */
int devices_add_given(int fd, unsigned access, struct device_rule rules[DEVICE_RULES_MAX],
		      size_t *n, struct error *err);

/* Both: what becomes of a group that was made, or whose rules change. */
int devices_apply(int cgroup_fd, const struct device_rule *rules, size_t n, struct error *err);

#endif
