/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_KUBELET_MOUNT_H
#define NACRE_CRI_KUBELET_MOUNT_H

#include <stdbool.h>

/*
 * What a kubelet makes for a pod on its node, recognised by its path below ROOT/pods/UID:
 *
 *   volumes/kubernetes.io~empty-dir/NAME   an emptyDir, which the containers of the pod share
 *   containers/CONTAINER/ATTEMPT           the file for the termination message of one container
 *   etc-hosts                              the file of the pod's names
 */
enum cri_kubelet_kind { CRI_KUBELET_EMPTY_DIR, CRI_KUBELET_TERMINATION, CRI_KUBELET_HOSTS };

#define CRI_KUBELET_NAME_SIZE 65

struct cri_kubelet_mount {
	enum cri_kubelet_kind kind;
	/* Of the first two: one for each path of the pod, as a machine's own volume is called
	 * (isolate/mount/scratch_dir.h). */
	char name[CRI_KUBELET_NAME_SIZE];
};

/* uid: of the pod. false: it is none of these, or its name is none that a kubelet gives. */
bool cri_kubelet_mount_parse(const char *path, const char *uid, struct cri_kubelet_mount *ret);

#endif
