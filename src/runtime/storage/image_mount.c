/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/storage/image_mount.h"

#include "base/text/str.h"

int image_mount_take(struct pod_mount_spec *to, const Aurae__Runtime__V0__Mount *m,
		     const char *field, struct error *err)
{
	char name[ERROR_FIELD_MAX];

	(void)str_printf(name, sizeof(name), "%s.image", field);
	if (!str_empty(m->source) || !str_empty(m->volume) || m->anonymous || m->tmpfs ||
	    m->identity || m->n_secrets)
		return error_field(
			err, ERROR_INVALID, name,
			"not beside a source, a volume, a tmpfs, secrets or an identity");
	to->image = m->image;
	to->read_only = true;
	return 0;
}
