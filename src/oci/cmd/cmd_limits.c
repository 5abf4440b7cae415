/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/parse.h"
#include "base/text/str.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/cgroup_watch.h"
#include "isolate/cgroup/devices.h"
#include "isolate/cgroup/limits.h"
#include "oci/cmd/handlers.h"
#include "oci/config/convert.h"
#include "oci/config/given.h"
#include "oci/launch/container.h"

#define FREEZE_MS 10000

/* The group of a container that is in one of two states. */
static int limits_open(struct container *c, const struct oci *oci, const char *id,
		       enum container_status a, enum container_status b, const char *what,
		       struct error *err)
{
	enum container_status status;
	int r;

	r = container_open(c, oci->root, id, err);
	if (r < 0)
		return r;
	status = container_status(c);
	if (status != a && status != b)
		return error_refuse(err, ERROR_PRECONDITION,
				    "container not running: cannot %s "
				    "\"%s\", which is %s",
				    what, c->id, container_status_name(status));
	return container_cgroup(c, err);
}

int oci_pause(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_fd_ int group = limits_open(&c, oci, args->operands[0], CONTAINER_RUNNING,
					     CONTAINER_CREATED, "pause", err);
	int r;

	if (group < 0)
		return group;
	r = cgroup_freeze(group, FREEZE_MS, err);
	return r < 0 ? r : EXIT_SUCCESS;
}

int oci_resume(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	_cleanup_fd_ int group = limits_open(&c, oci, args->operands[0], CONTAINER_PAUSED,
					     CONTAINER_PAUSED, "resume", err);
	int r;

	if (group < 0)
		return group;
	r = cgroup_thaw(group, FREEZE_MS, err);
	return r < 0 ? r : EXIT_SUCCESS;
}

/* ---- update ---- */

/* What the single options set, as the parts of a resources document. */
struct update {
	struct oci_memory memory;
	struct oci_cpu cpu;
	struct oci_pids pids;
	struct oci_block_io block_io;
	bool has_memory, has_cpu, has_pids, has_block_io;
};

static const struct update_option {
	const char *name;
	bool is_signed;
	size_t offset;
	size_t has;
} update_options[] = {
#define UPDATE(word, sign, member, part)                                                           \
	{                                                                                          \
		word, sign, offsetof(struct update, member), offsetof(struct update, part)         \
	}
	UPDATE("blkio-weight", false, block_io.weight, has_block_io),
	UPDATE("cpu-period", false, cpu.period, has_cpu),
	UPDATE("cpu-quota", true, cpu.quota, has_cpu),
	UPDATE("cpu-burst", false, cpu.burst, has_cpu),
	UPDATE("cpu-share", false, cpu.shares, has_cpu),
	UPDATE("cpu-rt-period", false, cpu.realtime_period, has_cpu),
	UPDATE("cpu-rt-runtime", true, cpu.realtime_runtime, has_cpu),
	UPDATE("cpu-idle", true, cpu.idle, has_cpu),
	UPDATE("memory", true, memory.limit, has_memory),
	UPDATE("memory-reservation", true, memory.reservation, has_memory),
	UPDATE("memory-swap", true, memory.swap, has_memory),
	UPDATE("kernel-memory", true, memory.kernel, has_memory),
	UPDATE("kernel-memory-tcp", true, memory.kernel_tcp, has_memory),
	UPDATE("pids-limit", true, pids.limit, has_pids),
#undef UPDATE
};

static int update_number(struct update *u, const struct update_option *o, const char *text,
			 struct error *err)
{
	bool negative = o->is_signed && text[0] == '-';
	void *at = (char *)u + o->offset;
	uint64_t n = 0;

	if (parse_u64(text + negative, 0, INT64_MAX, &n) < 0)
		return error_refuse(err, ERROR_INVALID, "--%s: \"%.40s\" is no whole number",
				    o->name, text);
	if (o->is_signed)
		*(struct json_int *)at =
			(struct json_int){ .set = true,
					   .value = negative ? -(int64_t)n : (int64_t)n };
	else
		*(struct json_uint *)at = (struct json_uint){ .set = true, .value = n };
	*(bool *)((char *)u + o->has) = true;
	return 0;
}

static int update_read(struct oci_resources **ret, struct arena *arena, const char *path,
		       struct error *err)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	int r;

	r = str_eq(path, "-") ? fd_read_all(STDIN_FILENO, OCI_CONFIG_SIZE_MAX, &b)
			      : given_read(path, OCI_CONFIG_SIZE_MAX, &b);
	if (r < 0)
		return error_set(err, r, "--resources: read %s", path);
	r = oci_resources_read(ret, arena, buf_data(&b), b.len, err);
	return r < 0 ? error_wrap(err, r, "--resources") : 0;
}

static int update_options_read(struct update *u, struct oci_resources *res, const struct args *args,
			       struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(update_options); i++) {
		const char *text = args_value(args, update_options[i].name);
		int r = text ? update_number(u, &update_options[i], text, err) : 0;

		if (r < 0)
			return r;
	}
	u->cpu.cpus = args_value(args, "cpuset-cpus");
	u->cpu.mems = args_value(args, "cpuset-mems");
	if (u->has_memory)
		res->memory = &u->memory;
	if (u->has_cpu || u->cpu.cpus || u->cpu.mems)
		res->cpu = &u->cpu;
	if (u->has_pids)
		res->pids = &u->pids;
	if (u->has_block_io)
		res->block_io = &u->block_io;
	return 0;
}

/* The rules for devices first, since they can be had back as they were: limits_apply() leaves
 * nothing behind where it fails. */
static int update_both(int group, int program, const struct isolate_limits *limits,
		       struct error *err)
{
	_cleanup_fd_ int before = devices_present(group);
	int r;

	if (before < 0 && before != -ENOENT)
		return error_set(err, before, "look at the rules for devices");
	r = devices_attach(group, program, err);
	if (r < 0)
		return r;
	r = limits_apply(group, limits, err);
	if (r < 0 && before >= 0)
		(void)devices_attach(group, before, NULL);
	else if (r < 0)
		(void)devices_detach(group, program);
	return r;
}

static int update_apply(struct container *c, int group, const struct oci_resources *res,
			struct error *err)
{
	const struct device_rule *rules = NULL;
	_cleanup_fd_ int program = -1;
	struct isolate_limits limits;
	size_t n_rules = 0;
	int r;

	r = convert_limits(&limits, &c->arena, res, err);
	if (r < 0)
		return r;
	if (res->n_devices == 0)
		return limits_apply(group, &limits, err);
	r = convert_device_rules(&rules, &n_rules, &c->arena, c->config->os, res, err);
	if (r < 0)
		return r;
	program = devices_load(rules, n_rules, err);
	return program < 0 ? program : update_both(group, program, &limits, err);
}

int oci_update(const struct oci *oci, const struct args *args, struct error *err)
{
	_cleanup_(container_done) struct container c = CONTAINER_INIT;
	struct oci_resources none = { .n_devices = 0 }, *res = &none;
	struct update u = { .has_cpu = false };
	_cleanup_fd_ int group = -1;
	int r;

	r = container_open(&c, oci->root, args->operands[0], err);
	if (r < 0)
		return r;
	if (container_status(&c) == CONTAINER_STOPPED)
		return error_refuse(err, ERROR_PRECONDITION,
				    "container not running: cannot update \"%s\"", c.id);
	group = container_cgroup(&c, err);
	if (group < 0)
		return group;
	r = args_value(args, "resources")
		    ? update_read(&res, &c.arena, args_value(args, "resources"), err)
		    : update_options_read(&u, &none, args, err);
	if (r == 0)
		r = update_apply(&c, group, res, err);
	return r < 0 ? r : EXIT_SUCCESS;
}
