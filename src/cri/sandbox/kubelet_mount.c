/* SPDX-License-Identifier: Apache-2.0 */
#include "cri/sandbox/kubelet_mount.h"

#include <ctype.h>
#include <string.h>

#include "base/text/str.h"

#define KUBELET_EMPTY_DIR "volumes/kubernetes.io~empty-dir/"
#define KUBELET_CONTAINERS "containers/"
#define KUBELET_HOSTS "etc-hosts"

/* Behind ROOT/pods/UID/; NULL: it is not there. */
static const char *kubelet_rest(const char *path, const char *uid)
{
	static const char pods[] = "/pods/";
	const char *at = path;
	size_t len = strlen(uid);

	if (path[0] != '/' || len == 0)
		return NULL;
	for (at = strstr(at, pods); at; at = strstr(at + 1, pods)) {
		const char *rest = at + strlen(pods);

		if (strncmp(rest, uid, len) == 0 && rest[len] == '/')
			return rest + len + 1;
	}
	return NULL;
}

/* A DNS label, as names of volumes and containers are. */
static bool kubelet_is_label(const char *name, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (!islower((unsigned char)name[i]) && !isdigit((unsigned char)name[i]) &&
		    name[i] != '-')
			return false;
	return len > 0 && name[0] != '-';
}

static bool kubelet_name(struct cri_kubelet_mount *ret, char letter, const char *name)
{
	return kubelet_is_label(name, strlen(name)) &&
	       str_printf(ret->name, sizeof(ret->name), "%c%s", letter, name) >= 0;
}

/* Its attempt is a random number, and no other container's. */
static bool kubelet_termination(struct cri_kubelet_mount *ret, const char *rest)
{
	const char *slash = strchr(rest, '/');

	ret->kind = CRI_KUBELET_TERMINATION;
	return slash && kubelet_is_label(rest, (size_t)(slash - rest)) &&
	       kubelet_name(ret, 't', slash + 1);
}

bool cri_kubelet_mount_parse(const char *path, const char *uid, struct cri_kubelet_mount *ret)
{
	const char *rest = kubelet_rest(path, uid);

	if (!rest)
		return false;
	*ret = (struct cri_kubelet_mount){ .kind = CRI_KUBELET_EMPTY_DIR };
	if (str_has_prefix(rest, KUBELET_EMPTY_DIR))
		return kubelet_name(ret, 'e', rest + strlen(KUBELET_EMPTY_DIR));
	if (str_has_prefix(rest, KUBELET_CONTAINERS))
		return kubelet_termination(ret, rest + strlen(KUBELET_CONTAINERS));
	ret->kind = CRI_KUBELET_HOSTS;
	return str_eq(rest, KUBELET_HOSTS);
}
