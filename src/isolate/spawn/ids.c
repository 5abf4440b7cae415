/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/spawn/ids.h"

#include <errno.h>
#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel takes capabilities over files out of the effective set of who leaves user 0 so; they
 * are permitted still. */
static int ids_raise(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	for (unsigned i = 0; i < _LINUX_CAPABILITY_U32S_3; i++)
		data[i].effective = data[i].permitted;
	return syscall(SYS_capset, &head, data) < 0 ? -errno : 0;
}

int isolate_ids_enter(const struct isolate_ids *ids, struct error *err)
{
	int r;

	if (!isolate_ids_are_set(ids))
		return 0;
	/* Neither call says whether it has failed: the next one with an id that is none does. */
	(void)setfsgid(ids->gid);
	(void)setfsuid(ids->uid);
	r = ids_raise();
	if (r == 0 &&
	    ((uid_t)setfsuid((uid_t)-1) != ids->uid || (gid_t)setfsgid((gid_t)-1) != ids->gid))
		r = -EPERM;
	if (r == 0)
		return 0;
	isolate_ids_leave(ids);
	return error_set(err, r, "make files as user %u", ids->uid);
}

void isolate_ids_leave(const struct isolate_ids *ids)
{
	if (!isolate_ids_are_set(ids))
		return;
	(void)setfsuid(geteuid());
	(void)setfsgid(getegid());
}
