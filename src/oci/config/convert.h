/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_OCI_CONVERT_H
#define NACRE_OCI_CONVERT_H

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "isolate/cgroup/devices.h"
#include "isolate/cgroup/limits.h"
#include "isolate/plan/plan.h"
#include "wire/document/oci_config.h"

/*
 * From what config.json says to what isolate does. Descriptors that a plan needs are opened here,
 * and belong to the conversion; everything else is in the arena.
 */

struct seccomp_filter;

#define CONVERT_FDS_MAX 2048

struct convert {
	struct arena *arena;
	const struct oci_config *config;
	const char *bundle;
	struct isolate_plan plan;
	struct isolate_cap_sets caps;
	struct isolate_sched sched;
	struct isolate_mempolicy mempolicy;
	struct isolate_cpus cpus;
	struct isolate_notes *notes; /* of the plan; NULL where nothing can be noted */
	struct seccomp_filter *seccomp;
	int *fds;
	size_t n_fds;
	int cgroup_fd; /* of the container: what a mount of type cgroup shows without a cgroup
			  namespace; borrowed */
};

#define CONVERT_INIT(a, c, b)                                                                      \
	{                                                                                          \
		.arena = (a), .config = (c), .bundle = (b), .cgroup_fd = -1                        \
	}

/* Closes the descriptors. */
void convert_done(struct convert *c);
/* Hands a descriptor over to the conversion; it is closed where that fails. */
int convert_own(struct convert *c, int fd, struct error *err);

int convert_id_maps(struct convert *c, const struct oci_id_map *maps, size_t n,
		    const struct isolate_id_map **ret, size_t *ret_n, struct error *err);
/* The namespaces, new or joined. A path that is none of the right type is refused. */
int convert_namespaces(struct convert *c, struct error *err);
/* The first process of the container, or one more (exec): everything that a process has. */
int convert_process(struct convert *c, const struct oci_process *p, struct error *err);
int convert_seccomp(struct convert *c, struct error *err);
/* The mount of systemd's hierarchy that the container asks for (oci/launch/named.h), whose source
 * may still be something else; NULL: it asks for none. */
const struct oci_mount *convert_named_mount(const struct oci_config *config);
/* The tree: root, mounts, devices, masked paths. */
int convert_tree(struct convert *c, const char *rootfs, struct error *err);
/* The settings of the whole container: names, sysctls, clocks, memory policy. */
int convert_container(struct convert *c, struct error *err);
/* Warns of what the kernel took only in part, once the process has got as far as its program. */
void convert_report_notes(const struct convert *c);

/* linux.resources in the words of cgroup v2. A setting that v2 does not have is refused by name. */
int convert_limits(struct isolate_limits *ret, struct arena *arena, const struct oci_resources *res,
		   struct error *err);
/* Takes out what a new group has anyway, and what therefore needs no controller. */
void convert_limits_of_new(struct isolate_limits *limits);
/* The rules for devices: those of the resources, then what every container gets, and that the nodes
 * of linux.devices may be made. These must have been looked at (convert_devices_check()). */
int convert_device_rules(const struct device_rule **ret, size_t *ret_n, struct arena *arena,
			 const struct oci_linux *os, const struct oci_resources *res,
			 struct error *err);
/* Whether each of linux.devices is one: a type that there is, with its numbers. */
int convert_devices_check(const struct oci_linux *os, struct error *err);

/* The names of all mount options, for `features`; ends with NULL. */
const char *convert_mount_option(size_t i);

#endif
