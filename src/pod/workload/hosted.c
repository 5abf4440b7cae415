/* SPDX-License-Identifier: Apache-2.0 */
#include "pod/workload/hosted.h"

#include <stdlib.h>

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

void hosted_leave(struct workload *w)
{
	w->machine = foreign_free(w->machine);
	w->wish = hosted_wish_free(w->wish);
}
