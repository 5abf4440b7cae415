/* SPDX-License-Identifier: Apache-2.0 */
#include "provider/vm_machine.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault/failpoint.h"
#include "base/file/fd.h"
#include "base/memory/buf.h"
#include "base/text/str.h"
#include "instance/model.h"
#include "isolate/cgroup/cgroup.h"

/* The user that it has, so that nobody else gets it. */
static void machine_find_uid(struct machine *m)
{
	_cleanup_(buf_done) struct buf b = BUF_INIT;
	_cleanup_str_ char *status = NULL;
	char name[64];
	const char *line;

	if (str_printf(name, sizeof(name), "/proc/%d/status", (int)m->instance->pid) < 0 ||
	    fd_read_file(AT_FDCWD, name, 16384, &b) < 0)
		return;
	status = buf_take_str(&b);
	line = status ? strstr(status, "\nUid:\t") : NULL;
	if (line)
		m->uid = (uid_t)strtoul(line + strlen("\nUid:\t"), NULL, 10);
}

int machine_adopt(struct machine *m, struct error *err)
{
	const struct gate_config config = machine_gate_config(m);
	const struct share_config share = machine_share_config(m);
	const struct vms_config *c = &m->vms->config;
	_cleanup_fd_ int leaf_fd = -1;
	int r;

	FAILPOINT_BEFORE("vm.adopt");
	m->has_nic = true;
	leaf_fd = cgroup_make(m->instance->cgroup_fd, "vmm", err);
	if (leaf_fd < 0)
		return leaf_fd;
	r = c->driver->adopt(&m->vm, c->loop, config.dir_fd, leaf_fd, m->vms->steps->vm_events, m,
			     err);
	if (r == -ESRCH)
		return error_refuse(err, ERROR_UNAVAILABLE,
				    "its machine ended while the daemon was away");
	if (r == 0)
		r = machine_take_process(m, err);
	if (r < 0)
		return r;
	machine_find_uid(m);
	m->asks_slots = true;
	r = vm_volumes_adopt(&m->volumes, &share, m->instance->cgroup_fd, err);
	if (r < 0)
		return r;
	r = gate_connect(&m->gate, &config, m->vms->steps->gate_events, m, err);
	FAILPOINT_AFTER("vm.adopt");
	return r < 0 ? error_wrap(err, r, "its gate") : 0;
}
