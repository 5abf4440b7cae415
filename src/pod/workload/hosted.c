/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/hosted.h"

#include <stdlib.h>
#include <string.h>

#include "base/file/fd.h"
#include "base/text/str.h"

struct hosted_wish *hosted_wish_new(void)
{
	struct hosted_wish *wish = calloc(1, sizeof(*wish));

	if (!wish)
		return NULL;
	wish->spec.kernel_fd = wish->spec.initrd_fd = wish->spec.vars_fd = -1;
	wish->spec.disks = wish->disks;
	for (size_t i = 0; i < VM_DISKS_MAX; i++)
		wish->disks[i].fd = wish->bases[i].fd = -1;
	return wish;
}

struct hosted_wish *hosted_wish_free(struct hosted_wish *wish)
{
	if (!wish)
		return NULL;
	(void)fd_close(wish->spec.kernel_fd);
	(void)fd_close(wish->spec.initrd_fd);
	(void)fd_close(wish->spec.vars_fd);
	for (size_t i = 0; i < VM_DISKS_MAX; i++) {
		(void)fd_close(wish->disks[i].fd);
		(void)fd_close(wish->bases[i].fd);
	}
	strv_free(wish->words);
	free(wish);
	return NULL;
}

const char *hosted_cloud_image(const char *image, const char **ret_provider)
{
	static const struct {
		const char *scheme, *provider;
	} clouds[] = { { "ami://", "ec2" }, { "gce://", "gce" }, { "vsphere://", "vsphere" } };

	for (size_t i = 0; i < ARRAY_SIZE(clouds); i++) {
		if (!str_has_prefix(image, clouds[i].scheme))
			continue;
		if (ret_provider)
			*ret_provider = clouds[i].provider;
		return image + strlen(clouds[i].scheme);
	}
	return NULL;
}

bool hosted_is_in_cloud(const struct workload *w)
{
	return w->kind == WORKLOAD_VM && !str_empty(w->containers[0]->image_name) &&
	       hosted_cloud_image(w->containers[0]->image_name, NULL) != NULL;
}
