/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_SETTINGS_H
#define NACRE_RUNTIME_SETTINGS_H

#include "api/nacre.pb-c.h"
#include "api/runtime.pb-c.h"
#include "base/log/error.h"
#include "pod/workload/make.h"

/*
 * The settings of a container beyond the defaults: its mounts, its root, its limits. They go from
 * the request to the specification, and to the text that the node keeps with the record and shows
 * as it was asked for. The text is a message KeptSettings in hexadecimal digits, with the labels
 * behind a ',', of a pod with what is kept of its network behind a '.', and what another family of
 * the API keeps behind a '~'; nobody else reads it.
 */

struct arena;

#define SETTINGS_VOLUMES_MAX 64
#define SETTINGS_MOUNTS_MAX 256 /* of all containers of a workload together */

/* The names and the forms of the volumes; "volumes[1].name" is to blame where one is wrong. */
int settings_check_volumes(Aurae__Runtime__V0__Volume *const *volumes, size_t n, struct error *err);

/* Whether something can be mounted there (cell/start/mounts.h). */
int settings_check_target(const char *field, const char *target, struct error *err);

/* The settings that all containers of a workload have in common. */
struct settings_whole {
	Aurae__Runtime__V0__Volume *const *volumes;
	size_t n_volumes;
	Aurae__Runtime__V0__Resources *resources;
	int base_fd;      /* resources_words() */
	bool host_ipc;    /* each has the node's /dev/shm, unless something else goes there */
	const char *init; /* path of the program for Container.init */
	const Aurae__Runtime__V0__PodSecurity *security; /* NULL: nothing was said */
};

/* Fills in the members of `to` that are about this, all in the arena. field: "containers[1]".
 * n_used: mounts of the workload so far. ERROR_INVALID, ERROR_NOT_FOUND and ERROR_PRECONDITION name
 * the field. */
int settings_take(struct arena *a, struct pod_container_spec *to,
		  const Aurae__Runtime__V0__Container *from, const char *field,
		  const struct settings_whole *whole, size_t *n_used, struct error *err);
/* The limits of the workload itself; "resources". */
int settings_take_whole(struct arena *a, struct workload_spec *to,
			const struct settings_whole *whole, struct error *err);

/* The text for limits alone. NULL without memory. */
char *settings_of_resources(struct arena *a, Aurae__Runtime__V0__Resources *resources);
/* A text with the limits of `added` over what it says. NULL without memory. */
char *settings_add(struct arena *a, const char *settings, const char *added);

/* Puts labels into a text (NULL: none), in the arena; meta may be NULL. 0 or -ENOMEM with err. */
int settings_add_labels(struct arena *a, const char **settings,
			const Aurae__Runtime__V0__Meta *meta, struct error *err);
/* The metadata that the text keeps; NULL for none. */
Aurae__Runtime__V0__Meta *settings_meta(struct arena *a, const char *settings);

/* A text (NULL: none) with the network of a pod put in place of the one that it had. NULL without
 * memory. */
char *settings_with_network(struct arena *a, const char *settings,
			    const Nacre__V1__WorkloadNetwork *network);
/* NULL for none. */
Nacre__V1__WorkloadNetwork *settings_network(struct arena *a, const char *settings);

/* A text (NULL: none) with this message behind it, in place of the one that another family of the
 * API kept there. NULL without memory. */
char *settings_with_record(struct arena *a, const char *settings, const ProtobufCMessage *record);
/* That message; NULL: there is none, or it is of another type. */
void *settings_record(struct arena *a, const char *settings,
		      const ProtobufCMessageDescriptor *type);

/* Any message as such a text, and back. NULL without memory, or (back) where it is none of the
 * type. */
char *settings_text(struct arena *a, const ProtobufCMessage *m);
void *settings_message(struct arena *a, const ProtobufCMessageDescriptor *type, const char *text);

/* The settings in the text, for a start from the record; zeroes where it has none. The mounts have
 * the names and paths that they stand for. An error where the text cannot be read: no setting is
 * left out silently. */
struct settings_kept {
	Aurae__Runtime__V0__Resources *resources;
	Aurae__Runtime__V0__Mount **mounts;
	size_t n_mounts;
	Nacre__V1__WorkloadNetwork *network;
	Aurae__Runtime__V0__HealthCheck *health;
	Aurae__Runtime__V0__Security *security; /* NULL: nothing was said */
};
int settings_read(struct arena *a, const char *settings, struct settings_kept *ret,
		  struct error *err);

/* Puts the settings in the text into the container as it is shown. */
void settings_show(struct arena *a, Nacre__V1__Container *to, const char *settings);
/* The security settings that the containers of a pod share; NULL for none. */
Aurae__Runtime__V0__PodSecurity *settings_security(struct arena *a, const char *settings);
/* Its limits; NULL for none. */
Aurae__Runtime__V0__Resources *settings_resources(struct arena *a, const char *settings);

#endif
