/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SETTINGS_H
#define NACRE_RUNTIME_SETTINGS_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/error.h"
#include "pod/make.h"

/*
 * What a container may do and reach beside what each does: its mounts and its root. From the
 * request to the specification, and to the text that the node keeps with the record and shows as it
 * was asked for. The text is the message of the API in hexadecimal digits; nobody else reads it.
 */

struct arena;

#define SETTINGS_VOLUMES_MAX 64
#define SETTINGS_MOUNTS_MAX 256 /* of all containers of a workload together */

/* The names and the forms of the volumes; "volumes[1].name" is to blame where one is wrong. */
int settings_check_volumes(Aurae__Runtime__V0__Volume *const *volumes, size_t n, struct error *err);

/* Fills in mounts, n_mounts, read_only_root and settings of `to`, all in the arena. field:
 * "containers[1]". n_used: mounts of the workload so far. ERROR_INVALID and ERROR_NOT_FOUND name
 * the field. */
int settings_take(struct arena *a, struct pod_container_spec *to,
		  Aurae__Runtime__V0__Container *from, const char *field,
		  Aurae__Runtime__V0__Volume *const *volumes, size_t n_volumes, size_t *n_used,
		  struct error *err);

/* Puts them into what is shown; -ENOMEM. */
int settings_show(struct arena *a, Nacre__V1__Container *to, const char *settings);

#endif
