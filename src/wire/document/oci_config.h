/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_WIRE_OCI_CONFIG_H
#define NACRE_WIRE_OCI_CONFIG_H

#include "base/log/error.h"
#include "base/memory/arena.h"
#include "wire/document/jsonread.h"

/*
 * config.json of an OCI bundle (runtime-spec 1.0 to 1.3, the parts for Linux) as plain structs in
 * an arena. Reading is strict about types, required members and limits, and ignores members that it
 * does not know, as the specification wants. Words that stand for numbers of the kernel
 * ("CAP_CHOWN", "RLIMIT_NOFILE", mount options) stay words here: oci/config/convert.c knows them.
 *
 * Pointers are NULL and counts 0 where a member is missing.
 */

#define OCI_CONFIG_SIZE_MAX ((size_t)16 << 20)
#define OCI_CONFIG_ARENA_MAX ((size_t)64 << 20)
#define OCI_ARGS_MAX 65536
#define OCI_MOUNTS_MAX 4096
#define OCI_ID_MAPS_MAX 340
#define OCI_DEVICES_MAX 4096
#define OCI_GROUPS_MAX 65536
#define OCI_HOOKS_MAX 256
#define OCI_HOOK_ARGS_MAX 1024
#define OCI_SYSCALLS_MAX 4096

struct oci_id_map {
	struct json_uint inside, outside, size;
};

struct oci_user {
	struct json_uint uid, gid, umask;
	const uint64_t *groups;
	size_t n_groups;
};

struct oci_caps {
	const char **bounding, **effective, **inheritable, **permitted, **ambient;
	size_t n_bounding, n_effective, n_inheritable, n_permitted, n_ambient;
};

struct oci_rlimit {
	const char *type;
	struct json_uint soft, hard;
};

struct oci_scheduler {
	const char *policy;
	const char **flags;
	size_t n_flags;
	struct json_int nice, priority;
	struct json_uint runtime, deadline, period;
};

struct oci_io_priority {
	const char *class;
	struct json_int priority;
};

struct oci_affinity {
	const char *initial, *final;
};

struct oci_console_size {
	struct json_uint width, height;
};

struct oci_process {
	struct json_int terminal, no_new_privs, oom_score_adj;
	const struct oci_console_size *console_size;
	struct oci_user *user;
	const char **args, **env;
	size_t n_args, n_env;
	const char *cwd;
	const struct oci_caps *caps;
	const struct oci_rlimit *rlimits;
	size_t n_rlimits;
	const char *apparmor, *selinux;
	const struct oci_scheduler *scheduler;
	const struct oci_io_priority *io_priority;
	const struct oci_affinity *affinity;
};

struct oci_root {
	const char *path;
	struct json_int readonly;
};

struct oci_mount {
	const char *destination, *type, *source;
	const char **options;
	size_t n_options;
	const struct oci_id_map *uid_maps, *gid_maps;
	size_t n_uid_maps, n_gid_maps;
};

struct oci_hook {
	const char *path;
	const char **args, **env;
	size_t n_args, n_env;
	struct json_int timeout;
};

enum oci_hook_kind {
	OCI_HOOK_PRESTART,
	OCI_HOOK_CREATE_RUNTIME,
	OCI_HOOK_CREATE_CONTAINER,
	OCI_HOOK_START_CONTAINER,
	OCI_HOOK_POSTSTART,
	OCI_HOOK_POSTSTOP,
	OCI_HOOK_KIND_COUNT
};

/* Their names in the document. */
extern const char *const oci_hook_names[OCI_HOOK_KIND_COUNT];

struct oci_hook_list {
	const struct oci_hook *hooks;
	size_t n;
};

struct oci_hooks {
	struct oci_hook_list lists[OCI_HOOK_KIND_COUNT];
};

struct oci_namespace {
	const char *type, *path;
};

struct oci_device {
	const char *path, *type;
	struct json_int major, minor;
	struct json_uint mode, uid, gid;
};

struct oci_net_device {
	const char *from, *name; /* name: NULL, as it was */
};

struct oci_device_rule {
	struct json_int allow, major, minor;
	const char *type, *access;
};

struct oci_memory {
	struct json_int limit, reservation, swap, kernel, kernel_tcp;
	struct json_uint swappiness;
	struct json_int disable_oom_killer, use_hierarchy, check_before_update;
};

struct oci_cpu {
	struct json_uint shares, burst, period, realtime_period;
	struct json_int quota, realtime_runtime, idle;
	const char *cpus, *mems;
};

struct oci_pids {
	struct json_int limit;
};

struct oci_weight_device {
	struct json_int major, minor;
	struct json_uint weight, leaf_weight;
};

struct oci_throttle_device {
	struct json_int major, minor;
	struct json_uint rate;
};

enum oci_throttle {
	OCI_READ_BPS,
	OCI_WRITE_BPS,
	OCI_READ_IOPS,
	OCI_WRITE_IOPS,
	OCI_THROTTLE_COUNT
};

struct oci_throttle_list {
	const struct oci_throttle_device *devices;
	size_t n;
};

struct oci_block_io {
	struct json_uint weight, leaf_weight;
	const struct oci_weight_device *weight_devices;
	size_t n_weight_devices;
	struct oci_throttle_list throttles[OCI_THROTTLE_COUNT];
};

struct oci_huge_page {
	const char *page_size;
	struct json_uint limit;
};

struct oci_interface_priority {
	const char *name;
	struct json_uint priority;
};

struct oci_network {
	struct json_uint class_id;
	const struct oci_interface_priority *priorities;
	size_t n_priorities;
};

struct oci_rdma {
	const char *name;
	struct json_uint handles, objects;
};

struct oci_resources {
	const struct oci_device_rule *devices;
	size_t n_devices;
	const struct oci_memory *memory;
	const struct oci_cpu *cpu;
	const struct oci_pids *pids;
	const struct oci_block_io *block_io;
	const struct oci_huge_page *huge_pages;
	size_t n_huge_pages;
	const struct oci_network *network;
	const struct oci_rdma *rdma;
	size_t n_rdma;
	const struct json_pair *unified;
	size_t n_unified;
};

struct oci_syscall_arg {
	struct json_uint index, value, value_two;
	const char *op;
};

struct oci_syscall {
	const char **names;
	size_t n_names;
	const char *action;
	struct json_uint errno_ret;
	const struct oci_syscall_arg *args;
	size_t n_args;
};

struct oci_seccomp {
	const char *default_action;
	struct json_uint default_errno_ret;
	const char **architectures, **flags;
	size_t n_architectures, n_flags;
	const char *listener_path, *listener_metadata;
	const struct oci_syscall *syscalls;
	size_t n_syscalls;
};

struct oci_intel_rdt {
	const char *clos_id, *l3_cache, *mem_bw;
	const char **schemata;
	size_t n_schemata;
	struct json_int monitoring;
};

struct oci_mem_policy {
	const char *mode, *nodes;
	const char **flags;
	size_t n_flags;
};

struct oci_personality {
	const char *domain;
	const char **flags;
	size_t n_flags;
};

struct oci_time_offset {
	const char *clock;
	struct json_int sec;
	struct json_uint nsec;
};

struct oci_linux {
	const struct oci_id_map *uid_maps, *gid_maps;
	size_t n_uid_maps, n_gid_maps;
	const struct json_pair *sysctls;
	size_t n_sysctls;
	const struct oci_resources *resources;
	const char *cgroups_path;
	const struct oci_namespace *namespaces;
	size_t n_namespaces;
	const struct oci_device *devices;
	size_t n_devices;
	const struct oci_net_device *net_devices;
	size_t n_net_devices;
	const struct oci_seccomp *seccomp;
	const char *root_propagation;
	const char **masked_paths, **readonly_paths;
	size_t n_masked_paths, n_readonly_paths;
	const char *mount_label;
	const struct oci_intel_rdt *intel_rdt;
	const struct oci_mem_policy *mem_policy;
	const struct oci_personality *personality;
	const struct oci_time_offset *time_offsets;
	size_t n_time_offsets;
};

struct oci_config {
	const char *version;
	struct oci_process *process;
	const struct oci_root *root;
	const char *hostname, *domainname;
	const struct oci_mount *mounts;
	size_t n_mounts;
	const struct oci_hooks *hooks;
	const struct json_pair *annotations;
	size_t n_annotations;
	const struct oci_linux *os; /* never NULL: cleared where it is missing */
};

/* Of a whole document. ERROR_INVALID names the member, ERROR_EXHAUSTED one with too many elements.
 */
int oci_config_read(struct oci_config **ret, struct arena *arena, const void *data, size_t len,
		    struct error *err);
/* A process document alone (exec --process). */
int oci_process_read(struct oci_process **ret, struct arena *arena, const void *data, size_t len,
		     struct error *err);
/* A resources document alone (update --resources). */
int oci_resources_read(struct oci_resources **ret, struct arena *arena, const void *data,
		       size_t len, struct error *err);

/* The value of an annotation, or NULL. */
const char *oci_annotation(const struct oci_config *c, const char *name);

#endif
