/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_MACHINE_POD_H
#define NACRE_RUNTIME_MACHINE_POD_H

#include <stdbool.h>

#include "api/runtime.pb-c.h"

struct rpc_call;
struct runtime_service;

/*
 * RunPod whose only container has the image of a machine: that machine is the pod, and what runs in
 * it is its own (pod/workload/hosted.h). "disk:///PATH" is a disk image of the node, "disk://NAME"
 * a kept disk, both for a machine here; "ami://", "gce://" and "vsphere://" are images of a cloud.
 */
bool machine_pod_is(const Aurae__Runtime__V0__RunPodRequest *request);
void machine_pod_run(struct rpc_call *call, const Aurae__Runtime__V0__RunPodRequest *q,
		     struct runtime_service *service);

#endif
