/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/start/mount_manner.h"

#include "base/macros.h"
#include "base/text/str.h"
#include "isolate/mount/bind.h"
#include "pod/storage/volume.h"

int mount_refuse(const char *field, const char *member, const char *reason, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.%s", field, member);
	return error_field(err, ERROR_INVALID, name, "%s", reason);
}

static const struct {
	const char *word;
	enum mount_propagation propagation;
} mount_propagations[] = {
	{ "", MOUNT_PRIVATE },          { "private", MOUNT_PRIVATE },
	{ "rprivate", MOUNT_PRIVATE },  { "slave", MOUNT_FROM_HOST },
	{ "rslave", MOUNT_FROM_HOST },  { "shared", MOUNT_BOTH_WAYS },
	{ "rshared", MOUNT_BOTH_WAYS },
};

static int mount_take_propagation(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
				  const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	for (size_t i = 0; i < ARRAY_SIZE(mount_propagations); i++) {
		if (!str_eq(m->propagation, mount_propagations[i].word))
			continue;
		to->mount.propagation = mount_propagations[i].propagation;
		if (to->mount.propagation != MOUNT_PRIVATE && (!to->source || to->is_volume))
			return mount_refuse(field, "propagation", "only of a path of the node",
					    err);
		return 0;
	}
	(void)str_printf(name, sizeof(name), "%s.propagation", field);
	return error_field(err, ERROR_INVALID, name,
			   "\"%.40s\" is none of rprivate, rslave and rshared", m->propagation);
}

static int mount_take_relabel(const Aurae__Runtime__V0__Mount *m, const char *field,
			      struct error *err)
{
	char name[ERROR_FIELD_MAX];

	if (str_empty(m->relabel))
		return 0;
	(void)str_printf(name, sizeof(name), "%s.relabel", field);
	if (!str_eq(m->relabel, "shared") && !str_eq(m->relabel, "private"))
		return error_field(err, ERROR_INVALID, name,
				   "\"%.40s\" is neither shared nor private", m->relabel);
	if (isolate_has_selinux())
		return error_field(err, ERROR_PRECONDITION, name,
				   "this node labels nothing for SELinux, which this host has: "
				   "label it with chcon -t container_file_t");
	return 0;
}

int mount_take_manner(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
		      const char *field, struct error *err)
{
	int r;

	if (m->no_copy && !to->is_volume)
		return mount_refuse(field, "no_copy", "only of a volume", err);
	if (!str_empty(m->sub_path) && !to->is_volume && !to->image)
		return mount_refuse(field, "sub_path", "only of a volume or an image", err);
	if (!str_empty(m->sub_path) && m->sub_path[0] == '/')
		return mount_refuse(field, "sub_path", "must be relative", err);
	if (m->chown && (m->tmpfs || to->read_only))
		return mount_refuse(field, "chown", "not of a tmpfs, nor what is read-only", err);
	to->no_copy = m->no_copy;
	to->sub_path = str_empty(m->sub_path) ? NULL : m->sub_path;
	to->chown = m->chown;
	r = mount_take_propagation(to, m, field, err);
	return r < 0 ? r : mount_take_relabel(m, field, err);
}
