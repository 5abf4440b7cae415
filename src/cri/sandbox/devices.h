/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_CRI_DEVICES_H
#define NACRE_CRI_DEVICES_H

#include "api/cri.pb-c.h"
#include "base/log/error.h"
#include "base/memory/arena.h"

/* Devices by the names of their vendors: those of the field, and those of the annotations that
 * kubelets had before it ("cdi.k8s.io/…", names parted by commas), each once. In the arena. */

#define CRI_FIELD_DEVICES "config.CDI_devices"

int cri_container_devices(struct arena *a, const Runtime__V1__ContainerConfig *config, char ***ret,
			  size_t *ret_n, struct error *err);

#endif
