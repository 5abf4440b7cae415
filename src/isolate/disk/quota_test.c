/* SPDX-License-Identifier: Apache-2.0 */

/* What needs no file system with quotas; tests/guest/quota.c has the rest. */

#include "isolate/disk/quota.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/file/fd.h"
#include "unit.h"

static bool has_cap(void)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = { { 0 } };

	CHECK(syscall(SYS_capget, &head, data) == 0);
	return data[CAP_TO_INDEX(CAP_SYS_RESOURCE)].effective & CAP_TO_MASK(CAP_SYS_RESOURCE);
}

static void obeys_for_a_while(void)
{
	bool before = has_cap();
	int had = -1, again = -1;

	CHECK_INT(quota_obey(&had), 0);
	CHECK_INT(had, before);
	CHECK(!has_cap());
	/* Within each other: the inner one gives nothing back. */
	CHECK_INT(quota_obey(&again), 0);
	CHECK_INT(again, 0);
	quota_ignore(again);
	CHECK(!has_cap());
	quota_ignore(had);
	CHECK_INT(has_cap(), before);
}

static void knows_what_has_none(void)
{
	static const char *const places[] = { "/proc", "/sys", "/dev" };
	struct error err = ERROR_INIT;
	struct quota_use use;

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		_cleanup_fd_ int fd = open(places[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		CHECK(fd >= 0);
		CHECK_INT(quota_is_enforced(fd), 0);
		CHECK_INT((int)quota_project(fd), 0);
		CHECK_INT(quota_look(fd, &use), -ENOENT);
		CHECK_INT(quota_stretch(fd), -ENOENT);
		/* Nothing of ours: nothing to free. */
		CHECK_INT(quota_free(fd), 0);
	}
	CHECK(quota_give(-1, "x", 4096, &err) < 0);
	CHECK(strstr(err.text, "find a free project id") != NULL);
}

UNIT_MAIN({ "a thread obeys quotas for a while", obeys_for_a_while },
	  { "most file systems have none", knows_what_has_none })
