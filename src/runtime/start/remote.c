/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/remote.h"

#include "base/text/str.h"
#include "pod/workload/make.h"

bool remote_will_be(const struct instance *parent, const struct instance_choice *choice)
{
	return parent ? instance_is_remote(parent)
		      : choice && !instance_kind_can(choice->kind, INSTANCE_LOCAL_PROCESS);
}

static int remote_check_propagation(const struct pod_container_spec *c, struct error *err)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].mount.propagation != MOUNT_PRIVATE)
			return error_field(err, ERROR_UNSUPPORTED, c->mounts[i].field,
					   "mounts do not propagate into an instance with a kernel "
					   "of its own: leave the propagation out");
	return 0;
}

static int remote_check_volumes(const struct pod_container_spec *c, struct error *err)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].source)
			return error_field(err, ERROR_UNSUPPORTED, c->mounts[i].field,
					   "nothing of the node can be mounted in an instance that "
					   "is there and has a kernel of its own: only what a pod "
					   "was made with is");
	return 0;
}

/* What of the node no machine can have. */
static int remote_check_own(const struct pod_container_spec *c, struct error *err)
{
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].mount.access)
			return error_field(err, ERROR_UNSUPPORTED, c->mounts[i].field,
					   "an instance of kind \"vm\" has the devices of its own "
					   "machine, and none of the node");
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].is_identity)
			return error_field(err, ERROR_UNSUPPORTED, c->mounts[i].field,
					   "the socket of the Workload API does not reach into an "
					   "instance with a kernel of its own");
	return 0;
}

/* Refuses mounts that a machine cannot provide in which nothing of the node is mounted:
 * what is small and read-only is sent (pod/storage/mirror.h). */
static int remote_check_sent(const struct pod_container_spec *c, enum instance_kind kind,
			     struct error *err)
{
	/* The program is a file of the node, which each machine would be sent. */
	if (c->init)
		return error_field(
			err, ERROR_UNSUPPORTED, "init",
			"an instance of kind \"%s\" has no such program: put one into the "
			"image, such as tini",
			instance_kind_word(kind));
	for (size_t i = 0; i < c->n_mounts; i++)
		if (c->mounts[i].source &&
		    (!c->mounts[i].read_only || c->mounts[i].source[0] != '/'))
			return error_field(err, ERROR_UNSUPPORTED, c->mounts[i].field,
					   "an instance of kind \"%s\" takes of the node only "
					   "directories and files that are mounted read-only, of "
					   "at most 256 files and 1 MiB",
					   instance_kind_word(kind));
	return 0;
}

int remote_check_run(const struct workload_spec *spec, struct error *err)
{
	const struct instance_choice *choice = spec->kind == WORKLOAD_POD ? &spec->choice : NULL;
	int r = 0;

	if (!remote_will_be(spec->parent, choice))
		return 0;
	for (size_t i = 0; r == 0 && i < spec->n_containers; i++)
		r = remote_check_own(&spec->containers[i], err);
	for (size_t i = 0; r == 0 && i < spec->n_containers; i++)
		r = remote_check_propagation(&spec->containers[i], err);
	for (size_t i = 0; choice && !instance_kind_can(choice->kind, INSTANCE_NODE_MOUNTS) &&
			   r == 0 && i < spec->n_containers;
	     i++)
		r = remote_check_sent(&spec->containers[i], choice->kind, err);
	/* The devices of a machine are those that it began with. */
	for (size_t i = 0; spec->parent && r == 0 && i < spec->n_containers; i++)
		r = remote_check_volumes(&spec->containers[i], err);
	return r;
}

int remote_refuse(const struct instance *i, const char *field, const char *what, struct error *err)
{
	if (!i || !instance_is_remote(i))
		return 0;
	return error_field(err, ERROR_UNSUPPORTED, field, "%s has a kernel of its own, %s", i->path,
			   what);
}
