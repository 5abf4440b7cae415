/* SPDX-License-Identifier: Apache-2.0 */
#include "cell/container/leaf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/log/log.h"
#include "base/macros.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "cell/spec.h"
#include "isolate/cgroup/cgroup.h"
#include "isolate/cgroup/devices.h"
#include "isolate/cgroup/flat.h"
#include "isolate/cgroup/limits_words.h"

#define LEAF_FILE_MAX 4096
#define LEAF_TEXT(number) LEAF_TEXT_OF(number)
#define LEAF_TEXT_OF(number) #number

static const struct leaf_default {
	const char *file, *text;
} leaf_defaults[] = {
	{ "pids.max", LEAF_TEXT(LEAF_PIDS_MAX) },
	{ "memory.oom.group", "1" },
};

static int leaf_set_up(int fd, int devices_fd, struct error *err)
{
	for (size_t i = 0; i < ARRAY_SIZE(leaf_defaults); i++) {
		const struct leaf_default *d = &leaf_defaults[i];
		int r = fd_write_file(fd, d->file, d->text);

		/* ENOENT: its controller is not there. */
		if (r < 0 && r != -ENOENT)
			return error_set(err, r, "write %s to %s", d->text, d->file);
	}
	return devices_fd >= 0 ? devices_attach(fd, devices_fd, err) : 0;
}

int leaf_load_devices(void)
{
	struct error err = ERROR_INIT;
	int fd = devices_load(device_rules_default, device_rules_default_count, &err);

	if (fd < 0)
		log_warn("containers are limited in devices by their capabilities alone",
			 LOG_ERR(&err));
	return fd < 0 ? -1 : fd;
}

int leaf_make(int cell_fd, const char *name, bool walled, int devices_fd, char *const *limits,
	      struct error *err)
{
	_cleanup_fd_ int fd = cgroup_make(cell_fd, name, err);
	int r;

	if (fd < 0)
		return fd;
	r = walled ? leaf_set_up(fd, devices_fd, err) : 0;
	if (r >= 0)
		r = limits_words_apply(fd, limits, err);
	if (r < 0) {
		(void)cgroup_remove(cell_fd, name);
		return error_wrap(err, r, "the cgroup of container %s", name);
	}
	return TAKE_FD(fd);
}

static int leaf_apply_given(int fd, const struct container_spec *spec,
			    const struct container_fds *fds, struct error *err)
{
	struct device_rule *rules = calloc(DEVICE_RULES_MAX, sizeof(*rules));
	size_t n = device_rules_default_count;
	int r = 0;

	if (!rules)
		return error_set(err, -ENOMEM, "rules for devices");
	memcpy(rules, device_rules_default, n * sizeof(*rules));
	for (size_t i = 0; i < spec->n_mounts && i < fds->n_mounts && r == 0; i++)
		if (spec->mounts[i].access && fds->mounts[i] >= 0)
			r = devices_add_given(fds->mounts[i], spec->mounts[i].access, rules, &n,
					      err);
	if (r == 0)
		r = devices_apply(fd, rules, n, err);
	free(rules);
	return r;
}

int leaf_allow_devices(int fd, const struct container_spec *spec, const struct container_fds *fds,
		       struct error *err)
{
	static const struct device_rule all = { true, 'a', DEVICE_ANY, DEVICE_ANY, DEVICE_ALL };
	bool any = false;

	if (spec->security.all_devices)
		return devices_apply(fd, &all, 1, err);
	for (size_t i = 0; i < spec->n_mounts; i++)
		any = any || spec->mounts[i].access;
	return any ? leaf_apply_given(fd, spec, fds, err) : 0;
}

bool leaf_is_out_of_memory(int leaf_fd)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *text = NULL;

	if (leaf_fd < 0 || fd_read_file(leaf_fd, "memory.events", LEAF_FILE_MAX, &b) < 0)
		return false;
	text = buf_take_str(&b);
	return text && flat_value(text, "oom_kill") > 0;
}
