/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NACRE_RUNTIME_RUN_SPEC_H
#define NACRE_RUNTIME_RUN_SPEC_H

#include "api/nacre.pb-c.h"
#include "instance/model.h"
#include "pod/workload/make.h"
#include "runtime/start/settings.h"

/*
 * From the requests RunCell and RunPod to the specification of a workload: when they come, and
 * again from the record of one that is started once more.
 */

struct arena;
struct cdi_changes;
struct runtime_service;

/* The containers and common settings that RunCell and RunPod start. */
struct run_what {
	Aurae__Runtime__V0__Container **containers;
	size_t n_containers;
	struct settings_whole whole;
	const struct cdi_changes *devices; /* of each container; NULL: none was looked up */
};

/* The fields that their requests have in common. */
struct run_request {
	const ProtobufCMessage *message;
	const Aurae__Runtime__V0__Meta *meta;
	const char *id, *name, *parent, *network;
	const Aurae__Runtime__V0__PodNetwork *pod_network;
	Aurae__Runtime__V0__FurtherNetwork *const *further;
	size_t n_further;
	const Aurae__Runtime__V0__PodSecurity *security;
	bool auto_remove, remove_failed;
	const Aurae__Runtime__V0__RestartPolicy *restart;
	const char *userns; /* of a cell */
	bool create_only;
	enum instance_kind wish; /* of a pod; INSTANCE_KIND_COUNT: none */
	bool cold;
	Aurae__Runtime__V0__Nic **nics;
	size_t n_nics;
	struct run_what what;
};

const char *run_meta_name(const Aurae__Runtime__V0__Meta *meta);
/* The fields of a message; `wish` is left out. */
struct run_request run_cell_request(const struct runtime_service *s,
				    const Aurae__Runtime__V0__RunCellRequest *q);
struct run_request run_pod_request(const struct runtime_service *s,
				   const Aurae__Runtime__V0__RunPodRequest *q);

/* The instance of a path, NULL for the node; ERROR_INVALID and ERROR_NOT_FOUND name `field`. */
int run_parent(const struct runtime_service *s, const char *field, const char *path,
	       struct instance **ret, struct error *err);
/* The kind of an instance; an error names `kind`. */
int run_choose(const struct runtime_service *s, const struct instance *parent,
	       enum instance_kind wish, struct instance_choice *ret, struct error *err);

/* The word of its network; spec->kind is there. */
int run_take_network(const struct run_request *q, struct workload_spec *spec, struct error *err);
/* All else, in the arena; spec->kind, its name and network are there. nic lasts as long as spec.
 * The error names the field. */
int run_specify(const struct runtime_service *s, struct arena *a, const struct run_request *q,
		struct workload_spec *spec, struct instance_nic *nic, struct error *err);

/* The specification that the recorded request of a workload (workload_wish()) asks for, made anew
 * because the workload is to be started again. devices: of run_wanted_containers(), or NULL. */
int run_specify_again(const struct runtime_service *s, struct arena *a, const struct workload *w,
		      const char *wish, const struct cdi_changes *devices,
		      struct workload_spec *spec, struct instance_nic *nic, struct error *err);
/* The containers of that request, as they were asked for. */
int run_wanted_containers(const struct runtime_service *s, struct arena *a,
			  const struct workload *w, const char *wish,
			  Aurae__Runtime__V0__Container ***ret, size_t *ret_n, struct error *err);
/* The same for one container more of a workload that runs: `own`, completed from what its request
 * says of `target`, as DebugRequest has it. spec has that container alone; an error names the field
 * below "spec". */
int run_specify_debug(const struct runtime_service *s, struct arena *a,
		      struct pod_container *target, const char *wish,
		      const Nacre__V1__DebugRequest *own, struct workload_spec *spec,
		      struct error *err);
/* Gives an error about containers[0] the name of the field that this has there. */
void run_debug_blame(struct error *err);

#endif
