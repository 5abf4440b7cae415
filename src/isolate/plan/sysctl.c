/* SPDX-License-Identifier: Apache-2.0 */
#include "isolate/plan/sysctl.h"

#include <errno.h>
#include <string.h>

#include "base/macros.h"
#include "base/text/str.h"

/* A path that ends with a slash stands for everything below it. */
static const struct {
	const char *path;
	enum isolate_ns kind;
} sysctl_kinds[] = {
	{ "net/", ISOLATE_NS_NET },
	{ "fs/mqueue/", ISOLATE_NS_IPC },
	{ "kernel/msgmax", ISOLATE_NS_IPC },
	{ "kernel/msgmnb", ISOLATE_NS_IPC },
	{ "kernel/msgmni", ISOLATE_NS_IPC },
	{ "kernel/sem", ISOLATE_NS_IPC },
	{ "kernel/shmall", ISOLATE_NS_IPC },
	{ "kernel/shmmax", ISOLATE_NS_IPC },
	{ "kernel/shmmni", ISOLATE_NS_IPC },
	{ "kernel/shm_rmid_forced", ISOLATE_NS_IPC },
	{ "kernel/hostname", ISOLATE_NS_UTS },
	{ "kernel/domainname", ISOLATE_NS_UTS },
	{ "user/", ISOLATE_NS_USER },
};

static const char sysctl_alphabet[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789_-+@:./";

static int sysctl_check(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");

		if (len == 0 || (path[0] == '.' && (len == 1 || (len == 2 && path[1] == '.'))))
			return -EINVAL;
		path += len;
		if (*path && !*++path)
			return -EINVAL;
	}
	return 0;
}

int sysctl_path(char *to, size_t size, const char *name)
{
	size_t first = strcspn(name, "./");
	bool dots = name[first] == '.';
	size_t len = strlen(name);

	if (len == 0 || len > SYSCTL_NAME_MAX || len >= size ||
	    strspn(name, sysctl_alphabet) != len)
		return -EINVAL;
	for (size_t i = 0; i <= len; i++) {
		to[i] = name[i];
		if (dots && name[i] == '.')
			to[i] = '/';
		else if (dots && name[i] == '/')
			to[i] = '.';
	}
	return sysctl_check(to);
}

enum isolate_ns sysctl_kind(const char *path)
{
	for (size_t i = 0; i < ARRAY_SIZE(sysctl_kinds); i++) {
		const char *known = sysctl_kinds[i].path;

		if (str_has_suffix(known, "/") ? str_has_prefix(path, known) : str_eq(path, known))
			return sysctl_kinds[i].kind;
	}
	return ISOLATE_NS_COUNT;
}
